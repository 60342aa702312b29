"""Reading a label from a judge's answer: from the declared place, by a closed list.

    labels = LabelList(("Insider", "Outsider"))
    reader = SentinelReader(labels, place="end", judged=(response,))
    reader.read('It looks ##Insider##, yet it says "they". ##Outsider## <|END|>').value.label

An answer in sentinels marks its label as ``##Label##``. Where that stands is declared:

- ``end``: the last thing of the answer, but for an end token;
- ``last_line``: as ``end``, and no other label stands on that line;
- ``start``: the first thing of the answer, before an explanation.

The place holds one label, or the answer is unparsed: two labels, a label that is not of the list,
one that is denied ("not ##Insider##", "Non-##Generalizing##"), or words where the label should be
are never guessed at; nor is an answer that ends and then goes on to end with another label. A label without hashes counts only alone on
its line. Capitals, spaces, hyphens and underscores do not tell labels apart; full-width characters,
markdown, code fences, end tokens of chat templates and a leading think block do not matter.

A judged text must not label itself. Nothing is read from block quotes and fenced quotations, or in
front of one; a label inside quotation marks, closed or not, counts only alone on its line, and
neither there nor in a fence where the judged text marks it; and a label that stands there with
the words that lead up to it in the judged text is a quotation. What this cannot tell is a judged text
that is nothing but a verdict, from a judge that gives that verdict and no reason.

The module does not know what a label means, or what a judge is; labels in JSON are read by
:mod:`habitus.agents.fields`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Literal

from habitus.agents.marks import LabelList, Token, marked_labels
from habitus.agents.quotations import end_tokens, letters_of, normal_text, own_text
from habitus.agents.structured import Reading

LabelPlace = Literal["end", "last_line", "start"]
END_TOKEN = "<|END|>"  # noqa: S105  (no password: what an answer ends with)

_MARKS = r"[\s*_`~#]*"
_LEAD = (
    r"(?:(?:my|the|so)\s+)?(?:final\s+)?(?:final|verdict|label|answer|category|classification"
    r"|conclusion|judge?ment|result|decision)(?:\s+is)?\s*:?"
)
_BEFORE_ALONE = re.compile(
    rf"[\s*_`#>(\[\"'\u201c\u2018«•-]*(?:{_LEAD})?[\s*_`(\[\"'\u201c\u2018«-]*", re.IGNORECASE
)
_AFTER_ALONE = re.compile(r"[\s*_`#)\]\"'\u201d\u2019».,;!]*")
_OPENERS = re.compile(r"[(\[\"'\u201c\u2018«]")
_CLOSERS = re.compile(r"[)\]\"'\u201d\u2019»]")
_AFTER = re.compile(r"[\s*_`.!]*")
_BETWEEN = re.compile(
    r"(?:[\s*_`.,;:/|&\"'\u201c\u201d()\[\]-]|\b(?:or|and|vs|versus|nor|but|not|either|then)\b)*",
    re.IGNORECASE,
)
_OPENED = re.compile(r"(?:[\u201c\u2018\u00ab([]|(?<!\S)[\"'])[*_`]*\Z")
_DENIED = re.compile(
    r"(?:\b(not|non|never|hardly|neither|nor|no|than|instead of)|n['\u2019]t)(?:[ \t*_`]+|-)"
    r"(?:(?:an?|the)[ \t*_`]+)?\Z|\w[-\u2010\u2011]\Z",
    re.IGNORECASE,
)
_WORD = re.compile(r"([^\s*_`#]+)[ \t*_`]+\Z")
_NOT_A_LABEL = re.compile(  # of a sentinel, or of a field of JSON
    r"##(.+)## is not a label of the list|[^:]+: ['\"](.+)['\"] is not one of \[.*", re.DOTALL
)
_EDGES = re.compile(r"^[\W_]+|[\W_]+$")
_SENTENCE_END = re.compile(r"[.!?;][\"'\u201d\u2019)]*\s")
_LEAD_ROOM = 80  # characters that marks and a leading word may take
_LED = 12  # letters of lead-in that a quotation shares with the judged text


@dataclass(frozen=True, slots=True)
class Verdict:
    """A label of the list, what was said beside it, and other labels marked elsewhere.

    ``alias`` holds the words that were given, where they are another word for the label.
    """

    label: str
    reasoning: str = ""
    others: tuple[str, ...] = ()
    alias: str = ""


@dataclass(frozen=True)
class SentinelReader:
    """Reads ``##Label##`` from the declared place of an answer.

    Args:
        labels: the closed list.
        place: where the label stands.
        end: the token that may end the answer; it may be missing.
        judged: the texts that the judge was shown, so that a quotation of them is known as one.
    """

    labels: LabelList
    place: LabelPlace = "end"
    end: str = END_TOKEN
    judged: Sequence[str] = ()
    schema: ClassVar[None] = None

    @property
    def again(self) -> str:
        """How the answer is to be given, where it could not be read."""
        where = "first" if self.place == "start" else "last"
        return f"in the form that was asked for, with one label between double hashes {where}"

    def read(self, text: str) -> Reading[Verdict]:
        """The verdict, or None with the reason; it never raises, whatever the text."""
        own, problem = own_text(text, self.end, self._alone)
        if problem:
            return Reading(None, problem)
        tokens = marked_labels(own, self.labels)
        found, problem = (
            self._at_start(own, tokens) if self.place == "start" else self._at_end(own, tokens)
        )
        if found is None or found.label is None:
            return Reading(None, problem)
        fault = self._fault(own, found, tokens)
        if fault:
            return Reading(None, f"##{found.words}## {fault}")
        if self._quoted(own, found) or self._quoted_whole(normal_text(text), found.label):
            return Reading(None, f"##{found.words}## stands there as in the judged text")
        said = own[found.end :] if self.place == "start" else _reasons(own[: found.start])
        others, alias = self._others(text, found.label), self.labels.alias(found.words)
        return Reading(Verdict(found.label, said.strip(), others, alias))

    def _alone(self, line: str) -> bool:
        """Whether a line holds a label and nothing else, and the judged text does not mark it."""
        tokens = marked_labels(line, self.labels)
        alone = len(tokens) == 1 and _stands_alone(line, tokens[0])
        return alone and tokens[0].label not in self._shown

    @cached_property
    def _shown(self) -> frozenset[str | None]:
        """Labels that the judged text marks, or has on a line of their own in whatever marks."""
        texts = [normal_text(text) for text in self.judged]
        lines = (line for text in texts for line in text.split("\n") if len(line) < _LEAD_ROOM)
        bare = (self.labels.find(_EDGES.sub("", line)) for line in lines)
        return frozenset(
            [*(t.label for text in texts for t in marked_labels(text, self.labels)), *bare]
        )

    def _fault(self, own: str, token: Token, tokens: Sequence[Token]) -> str:
        """Why a label at the end is no answer, although it is the only one there."""
        if self.place == "start":
            return ""
        before = own[max(0, token.start - _LEAD_ROOM) : token.start]
        alone = _stands_alone(own, token) and token.label not in self._shown
        if not alone and _OPENED.search(before):
            return "stands in a quotation"
        denied = _DENIED.search(before)
        if denied and not (denied[1] and self.labels.find(denied[1])):
            return "is denied, or a part of another word"
        word = _WORD.search(before)
        if word and self.labels.find(word[1]) not in {None, token.label}:
            return f"stands behind {word[1]}"
        others = [other for other in tokens if other.label not in {None, token.label}]
        if any(self._ends(own, other) for other in others):
            return "is not the label that the answer ended with first"
        return ""

    def _ends(self, own: str, token: Token) -> bool:
        """Whether the end token and a line break follow a label."""
        rest = own[token.end : token.end + _LEAD_ROOM].lstrip(" \t*_`.").casefold()
        behind = next(
            (rest[len(end) :] for end in end_tokens(self.end) if rest.startswith(end)), ""
        )
        return behind.lstrip(" \t*_`.").startswith("\n")

    def _at_end(self, own: str, tokens: Sequence[Token]) -> tuple[Token | None, str]:
        last = tokens[-1] if tokens else None
        if last is None or not _AFTER.fullmatch(own, _answer_end(own, last)):
            return None, "there is no label at its end"
        place = [last]
        for token in reversed(tokens[:-1]):
            if not self._together(own, token, place[-1]):
                break
            place.append(token)
        return _only(last, place)

    def _together(self, own: str, token: Token, later: Token) -> bool:
        """Whether two labels stand in one place: side by side, or in one sentence."""
        gap = own[token.end : later.start]
        if token.label is None and "\n" in gap:
            return False  # a heading
        if _BETWEEN.fullmatch(gap):
            return "\n" not in gap or not _is_mention(own, token)
        return "\n" not in gap and (self.place == "last_line" or not _SENTENCE_END.search(gap))

    def _at_start(self, own: str, tokens: Sequence[Token]) -> tuple[Token | None, str]:
        first = tokens[0] if tokens else None
        if first is None or not _leads(own, 0, first) or _opens_quotation(own, first):
            return None, "there is no label at its start"
        place = [first]
        for token in tokens[1:]:
            if not _BETWEEN.fullmatch(own, place[-1].end, token.start):
                break
            place.append(token)
        return _only(first, place)

    def _quoted(self, own: str, token: Token) -> bool:
        """Whether the judged text has the same label behind (or before) the same words."""
        starts = self.place == "start"
        said = _near(own, token, after=starts)
        for shown in map(normal_text, self.judged):
            for other in marked_labels(shown, self.labels):
                if other.label == token.label and _same(said, _near(shown, other, after=starts)):
                    return True
        return False

    def _quoted_whole(self, text: str, label: str) -> bool:
        """The same for the whole answer, as a quotation may hold what is not read as own words."""
        marked = [token for token in marked_labels(text, self.labels) if token.label == label]
        return bool(marked) and self._quoted(text, marked[0 if self.place == "start" else -1])

    def _others(self, text: str, label: str) -> tuple[str, ...]:
        found = (token.label for token in marked_labels(normal_text(text), self.labels))
        return tuple(dict.fromkeys(other for other in found if other and other != label))


def _reasons(said: str) -> str:
    """What stands before a label, without a last line such as "Final:"."""
    before, _, last = said.rpartition("\n")
    leads = len(last) <= _LEAD_ROOM and _BEFORE_ALONE.fullmatch(last)
    return before if leads else said


def _only(token: Token, place: Sequence[Token]) -> tuple[Token | None, str]:
    """The one label of a place, or why there is none."""
    unknown = next((other for other in place if other.label is None), None)
    if unknown is not None:
        return None, f"##{unknown.words}## is not a label of the list"
    labels = list(dict.fromkeys(str(other.label) for other in place))
    if len(labels) > 1:
        return None, f"more than one label stands there: {', '.join(sorted(labels))}"
    return token, ""


def _line_of(text: str, token: Token) -> tuple[int, int]:
    """Where the line of a token starts and ends."""
    end = text.find("\n", token.end)
    return text.rfind("\n", 0, token.start) + 1, end if end >= 0 else len(text)


def _stands_alone(text: str, token: Token) -> bool:
    """Whether a token fills its line, but for marks and a word such as "Final:"."""
    start, end = _line_of(text, token)
    after = _AFTER_ALONE.fullmatch(text, token.end, end)
    if after is None or not _leads(text, start, token):
        return False
    return bool(_OPENERS.search(text, start, token.start)) == bool(_CLOSERS.search(after[0]))


def _answer_end(text: str, token: Token) -> int:
    """Where a label ends, with the marks around it where it stands alone."""
    return _line_of(text, token)[1] if _stands_alone(text, token) else token.end


def _opens_quotation(text: str, token: Token) -> bool:
    """Whether a quotation opens before a token and does not close right behind it."""
    opens = _OPENERS.search(text, 0, token.start)
    return bool(opens) and not re.match(rf"[*_`#]*{_CLOSERS.pattern}", text[token.end :][:20])


def _is_mention(text: str, token: Token) -> bool:
    """Whether a token is a part of a sentence, and not an answer at its end or alone."""
    start = text.rfind("\n", 0, token.start) + 1
    before = text[start : token.start].rstrip(" \t*_`#\"'([\u201c\u2018")
    return not _leads(text, start, token) and before[-1:] not in {"", ".", "!", "?", ":", ";"}


def _leads(text: str, start: int, token: Token) -> bool:
    """Whether nothing but marks and a word such as "Final:" stand before a token."""
    near = token.start - start <= _LEAD_ROOM
    return near and _BEFORE_ALONE.fullmatch(text, start, token.start) is not None


def _near(text: str, token: Token, *, after: bool) -> str:
    """The words next to a token, nearest first."""
    room = 4 * _LED
    if after:
        return " ".join(text[token.end : token.end + room].split())
    return " ".join(text[max(0, token.start - room) : token.start].split())[::-1]


def _same(said: str, shown: str) -> bool:
    """Whether what was said next to a label repeats what the judged text has there."""
    lead = re.fullmatch(rf"{_MARKS}(?:{_LEAD})?{_MARKS}", shown[::-1], re.IGNORECASE)
    if lead or not any(character.isalnum() for character in shown):
        return False
    return letters_of(said).startswith(letters_of(shown)[:_LED])


def unreadable_label(problem: str) -> str | None:
    """The words of a label that was given but is not of the list, from a reading's problem."""
    match = _NOT_A_LABEL.fullmatch(problem)
    return next(filter(None, match.groups())) if match else None
