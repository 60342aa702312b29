"""The filter: what the verifier says of a session, what is kept, and what a history shows."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from habitus.histories import (
    AgentSimulator,
    FilterRules,
    SessionFilter,
    SessionPlan,
    Verifier,
    make_history,
)
from habitus.histories.verifier import contradictions, transcript
from habitus.models import Recorded
from habitus.records import (
    Attempt,
    History,
    NormCheck,
    Outcome,
    Reply,
    Request,
    SessionCheck,
    Turn,
)
from people import STATEMENTS, Seat, checked, lexicon, portrait, prompt, stance

LABELS = portrait().labels
PLAN = SessionPlan("maori-01", 1, "domain", "d1", " Is five too early? ", 2)


def session(text: str = "My boys do.", number: int = 1, attempt: int = 0) -> Attempt:
    return Attempt(
        id=f"maori-01/s{number:02d}/a{attempt}",
        persona="maori-01",
        number=number,
        attempt=attempt,
        kind="domain",
        opener="d1",
        turns=(Turn(speaker="persona", text=text), Turn(speaker="assistant", text="I see.")),
    )


def verifier(seat: Seat, **options: bool | int) -> Verifier:
    return Verifier(seat.role, prompt("verifier"), lexicon(), 1, **options)  # type: ignore[arg-type]


class TestVerifier:
    async def test_answers_are_joined_by_label_whatever_their_order(self) -> None:
        answer = checked(N1=True, N2=True, N3=False)
        seat = Seat(json.dumps(dict(reversed(answer.items()))))
        check = await verifier(seat).check(portrait(), session())
        assert check.outcome is Outcome.OK
        assert [c.norm for c in check.norms] == list(STATEMENTS)
        assert [c.stance for c in check.norms] == [1, 1, -1, 0]
        assert check.contradicted == ("maori_2",)  # N3 is neutral and contradicts nothing
        assert check.explicit_reveal is False
        assert check.culture_guess == "unknown"

    async def test_it_sees_labels_and_statements_and_neither_ids_nor_states(self) -> None:
        seat = Seat(json.dumps(checked()))
        await verifier(seat).check(portrait(), session())
        shown = seat.seen()
        assert "maori" not in shown.lower()
        assert "- N2: The person tries [oils, teas] before pills.\n" in shown
        assert "PERSON: My boys do.\n\nASSISTANT: I see." in shown
        assert "rejects it." not in shown
        assert "follows it." not in shown

    async def test_the_published_form_sees_the_states_too(self) -> None:
        seat = Seat(json.dumps(checked()))
        await verifier(seat, sees_states=True).check(portrait(), session())
        assert "- N2: The person tries [oils, teas] before pills. The person rejects it." in (
            seat.seen()
        )
        assert "- N3: The person decides alone. The person has no stance." in seat.seen()

    async def test_explanations_come_before_verdicts_or_not_at_all(self) -> None:
        seat = Seat(json.dumps(checked()))
        await verifier(seat).check(portrait(), session())
        schema = seat.requests[0].schema
        assert schema is not None
        assert next(iter(schema.body["properties"]["N1"]["properties"])) == "explanation"

        bare = {k: v for k, v in stance(None).items() if k != "explanation"}
        seat = Seat(json.dumps(checked() | dict.fromkeys(("N1", "N2", "N3", "N4"), bare)))
        check = await verifier(seat, explanation=0).check(portrait(), session())
        assert check.outcome is Outcome.OK
        assert len(seat.requests) == 1

    async def test_each_session_is_judged_by_its_own_text(self) -> None:
        """Also with a prompt that puts everything into one part."""
        seat = Seat(json.dumps(checked()))
        whole = verifier(seat)
        whole.prompt = type(whole.prompt)(
            "p", (("user", "{{norms}} {{session}}"),), frozenset({"norms", "session"})
        )
        await whole.check(portrait(), session("first"))
        await whole.check(portrait(), session("second"))
        assert "first" in seat.seen(0)
        assert "second" in seat.seen(1)
        assert "first" not in seat.seen(1)

    @pytest.mark.parametrize(
        ("missing", "unread"),
        [
            (("N2",), "maori_2"),
            (("explicit_culture_revealed",), "explicit_culture_revealed"),
            (("N1", "culture_guess"), "maori_1, culture_guess"),
        ],
    )
    async def test_a_partial_answer_is_an_unparsed_check_that_keeps_what_was_read(
        self, missing: tuple[str, ...], unread: str
    ) -> None:
        answer = {k: v for k, v in checked(N4=False).items() if k not in missing}
        seat = Seat(json.dumps(answer))
        check = await verifier(seat).check(portrait(), session())
        assert (check.outcome, check.reason) == (
            Outcome.UNPARSED,
            f"no readable answer for {unread}",
        )
        assert check.contradicted == ("maori_4",)
        assert len(seat.requests) == len(check.calls) == 2

    async def test_a_reveal_is_read_though_the_guess_is_not(self) -> None:
        answer = json.dumps(checked(reveal=True) | {"culture_guess": None})
        check = await verifier(Seat(answer)).check(portrait(), session())
        assert check.reveals
        assert check.outcome is Outcome.UNPARSED

    async def test_a_failed_call_is_the_checks_outcome_and_no_verdict(self) -> None:
        seat = Seat(Reply(Outcome.OVERFLOW, "", "too long"))
        check = await verifier(seat).check(portrait(), session("I am Testish."))
        assert (check.outcome, check.reason, check.norms) == (Outcome.OVERFLOW, "too long", ())
        assert check.explicit_reveal is None
        assert check.lexical_reveals == ("i am testish",)

    async def test_the_lexical_check_reads_both_sides_and_tells_each_phrase_once(self) -> None:
        turns = [
            ("persona", "I am testish"),
            ("assistant", "You said: I am  Testish. I am testish"),
        ]
        attempt = session().model_copy(
            update={
                "turns": tuple(Turn.model_validate({"speaker": s, "text": t}) for s, t in turns)
            }
        )
        check = await verifier(Seat(json.dumps(checked()))).check(portrait(), attempt)
        assert check.lexical_reveals == ("i am testish",)
        attempt = attempt.model_copy(update={"turns": attempt.turns[1:]})
        check = await verifier(Seat(json.dumps(checked()))).check(portrait(), attempt)
        assert check.lexical_reveals == ("i am testish",)

    async def test_another_attempt_is_another_call(self) -> None:
        seat = Seat(json.dumps(checked()))
        for number in (0, 1):
            await verifier(seat).check(portrait(), session(attempt=number))
        assert seat.requests[0].seed != seat.requests[1].seed

    @pytest.mark.parametrize(
        ("state", "told", "shown", "contradicts"),
        [
            (1, True, False, True),
            (-1, True, True, True),
            (1, True, True, False),
            (0, True, True, False),
            (0, True, False, False),
            (1, False, False, False),
            (1, True, None, False),
        ],
    )
    def test_a_contradiction_is_the_opposite_of_a_stance(
        self, state: int, told: bool, shown: bool | None, contradicts: bool
    ) -> None:
        person = portrait(states={"maori_1": state})  # type: ignore[dict-item]
        check = NormCheck(
            norm="maori_1", inferrable_from_text=True, implicitly_inferrable=told, adherence=shown
        )
        assert contradictions(person, (check,)) == (("maori_1",) if contradicts else ())

    def test_a_transcript_names_the_sides(self) -> None:
        assert transcript(session()) == "PERSON: My boys do.\n\nASSISTANT: I see."


class Sessions:
    """A simulator that holds each attempt as it is told to."""

    def __init__(self, *attempts: str | Outcome) -> None:
        self.attempts = attempts
        self.numbers: list[int] = []

    async def simulate(self, portrait: object, plan: SessionPlan, attempt: int) -> Attempt:
        self.numbers.append(attempt)
        told = self.attempts[min(attempt, len(self.attempts) - 1)]
        if isinstance(told, Outcome):
            failed = session("-", plan.number, attempt)
            return failed.model_copy(update={"outcome": told, "reason": "no", "turns": ()})
        held = session(told, plan.number, attempt)
        opening = (
            Turn(speaker="persona", text=plan.text),
            Turn(speaker="assistant", text="Go on."),
        )
        return held.model_copy(update={"turns": (*opening, *held.turns)})


CLEAN = json.dumps(checked(N1=True))
REVEAL = json.dumps(checked(reveal=True))
CONTRA = json.dumps(checked(N1=False))
CONTRA_TWICE = json.dumps(checked(N1=False, N4=False))
NO_CHECK = Reply(Outcome.REFUSED, "", "filter")


async def filtered(
    checks: Sequence[Reply | str],
    sessions: Sequence[str | Outcome] = ("My boys.",),
    **rules: bool | int,
) -> tuple[Attempt, ...]:
    """The attempts at one session, whose n-th held attempt has the n-th check."""
    stage = SessionFilter(
        Sessions(*sessions),
        verifier(Seat(*checks)),
        FilterRules(**rules),  # type: ignore[arg-type]
    )
    return await stage.session(portrait(), PLAN)


def decisions(attempts: Sequence[Attempt]) -> list[str]:
    return [attempt.decision for attempt in attempts]


class TestFilter:
    async def test_a_clean_first_attempt_is_accepted(self) -> None:
        (attempt,) = await filtered([CLEAN])
        assert (attempt.decision, attempt.rejected_for) == ("accepted", ())
        assert attempt.check is not None

    @pytest.mark.parametrize(
        ("check", "first", "reason"),
        [
            (REVEAL, "My boys.", "explicit reveal (verifier)"),
            (CLEAN, "I am testish.", "explicit reveal (lexical)"),
            (CONTRA, "My boys.", "contradicts the persona"),
            (NO_CHECK, "My boys.", "check refused"),
            (CLEAN, Outcome.TRUNCATED, "dialogue truncated"),
        ],
    )
    async def test_what_is_rejected_is_simulated_again_and_recorded(
        self, check: Reply | str, first: str | Outcome, reason: str
    ) -> None:
        attempts = await filtered([check, CLEAN], [first, "My boys."])
        assert decisions(attempts) == ["rejected", "accepted"]
        assert attempts[0].rejected_for == (reason,)
        assert [a.attempt for a in attempts] == [0, 1]
        assert [a.id for a in attempts] == ["maori-01/s01/a0", "maori-01/s01/a1"]

    async def test_every_reason_is_recorded(self) -> None:
        both = json.dumps(checked(reveal=True, N1=False))
        attempts = await filtered([both], ["I am testish."])
        assert attempts[0].rejected_for == (
            "explicit reveal (verifier)",
            "explicit reveal (lexical)",
            "contradicts the persona",
        )

    @pytest.mark.parametrize(
        ("checks", "kept"),
        [
            ([CONTRA_TWICE, CONTRA, CONTRA_TWICE], 1),
            ([CONTRA, CONTRA, CONTRA_TWICE], 0),
            ([REVEAL, CONTRA_TWICE, REVEAL], 1),
            ([NO_CHECK, CONTRA_TWICE, NO_CHECK], 1),
        ],
    )
    async def test_after_three_attempts_the_one_with_fewest_contradictions_is_kept_and_flagged(
        self, checks: Sequence[Reply | str], kept: int
    ) -> None:
        attempts = await filtered(checks)
        assert decisions(attempts) == ["flagged" if i == kept else "rejected" for i in range(3)]
        assert all(a.rejected_for for a in attempts)

    @pytest.mark.parametrize(
        ("checks", "sessions"),
        [
            ([REVEAL], ["My boys."]),
            ([CLEAN], ["I am testish."]),
            ([NO_CHECK], ["I am testish."]),
            ([NO_CHECK], ["My boys."]),
            ([CLEAN], [Outcome.ERROR]),
        ],
        ids=["reveal", "lexical reveal", "lexical reveal, no check", "no check", "no dialogue"],
    )
    async def test_a_reveal_or_a_failure_is_never_kept(
        self, checks: Sequence[Reply | str], sessions: Sequence[str | Outcome]
    ) -> None:
        assert decisions(await filtered(checks, sessions)) == ["rejected"] * 3

    async def test_the_number_of_attempts_is_a_rule(self) -> None:
        assert len(await filtered([REVEAL], attempts=5)) == 5
        assert len(await filtered([REVEAL], attempts=1)) == 1

    async def test_contradictions_may_stay_as_published(self) -> None:
        (attempt,) = await filtered([CONTRA], contradictions=False)
        assert attempt.decision == "accepted"
        assert attempt.check is not None
        assert attempt.check.contradicted == ("maori_1",)
        assert len(await filtered([REVEAL, CLEAN], contradictions=False)) == 2

    @pytest.mark.parametrize("check", [CLEAN, REVEAL, CONTRA, NO_CHECK])
    async def test_report_only_keeps_the_first_dialogue_and_says_what_was_found(
        self, check: Reply | str
    ) -> None:
        (attempt,) = await filtered([check], report_only=True)
        assert attempt.decision == "accepted"
        assert bool(attempt.rejected_for) == (check != CLEAN)

    async def test_report_only_keeps_no_dialogue_that_failed(self) -> None:
        attempts = await filtered([CLEAN], [Outcome.ERROR], report_only=True)
        assert set(decisions(attempts)) == {"rejected"}
        attempts = await filtered([CLEAN], [Outcome.ERROR, "Hi"], report_only=True)
        assert decisions(attempts) == ["rejected", "accepted"]

    async def test_attempts_are_calls_of_their_own(self) -> None:
        """A second attempt that found the first one's stored answers would change nothing."""
        keys: dict[bytes, Reply] = {}

        class Log:
            def find(self, key: bytes) -> Reply | None:
                return keys.get(key)

            async def add(self, key: bytes, request: Request, reply: Reply, model: str) -> None:
                keys[key] = reply

        persona, assistant, judge = Seat("My boys."), Seat("Why?", "I see."), Seat(REVEAL)
        log = Log()
        speaking, answering, checking = (
            replace(seat.role, model=Recorded(seat.model, name, log))
            for name, seat in (("p", persona), ("a", assistant), ("v", judge))
        )
        simulator = AgentSimulator(
            speaking, answering, prompt("persona"), prompt("assistant"), seed=1
        )
        check = Verifier(checking, prompt("verifier"), lexicon(), 1)
        await SessionFilter(simulator, check, FilterRules()).session(portrait(), PLAN)
        assert len(keys) == 3 * (3 + 1)
        assert len(judge.requests) == 3


def group(*attempts: Attempt) -> tuple[Attempt, ...]:
    return attempts


def kept(
    number: int = 1,
    decision: str = "accepted",
    text: str = "Hi",
    shows: Mapping[str, bool] | None = None,
) -> Attempt:
    stances = shows or {}
    norms = tuple(
        NormCheck(
            norm=norm,
            inferrable_from_text=True,
            implicitly_inferrable=stances.get(label) is not None,
            adherence=stances.get(label),
        )
        for norm, label in LABELS.items()
    )
    return session(text, number).model_copy(
        update={"check": SessionCheck(norms=norms), "decision": decision}
    )


def lost(number: int, *reveals: bool | None) -> tuple[Attempt, ...]:
    """A session with no attempt kept: each revealed, did not, or could not be held (None)."""
    return tuple(
        session("Hi", number, i).model_copy(
            update={"outcome": Outcome.ERROR, "turns": ()}
            if reveal is None
            else {"check": SessionCheck(outcome=Outcome.UNPARSED, explicit_reveal=reveal)}
        )
        for i, reveal in enumerate(reveals)
    )


class TestHistory:
    def test_sessions_stand_in_order_with_the_attempt_that_was_kept(self) -> None:
        second = kept(2, "flagged").model_copy(update={"id": "maori-01/s02/a2"})
        history = make_history(portrait(), [group(kept(1)), group(session("x", 2), second)])
        assert [(s.number, s.attempt, s.flagged) for s in history.sessions] == [
            (1, "maori-01/s01/a0", False),
            (2, "maori-01/s02/a2", True),
        ]
        assert (history.outcome, history.removed, history.missing) == (Outcome.OK, (), ())

    @pytest.mark.parametrize(
        ("reveals", "removed", "missing"),
        [
            ((True, True, True), (2,), ()),
            ((None, True, None), (2,), ()),
            ((None, None, None), (), (2,)),
            ((False, None, False), (), (2,)),
        ],
    )
    def test_a_session_without_an_attempt_was_removed_or_is_missing(
        self, reveals: tuple[bool | None, ...], removed: tuple[int, ...], missing: tuple[int, ...]
    ) -> None:
        history = make_history(portrait(), [group(kept(1)), lost(2, *reveals)])
        assert (history.removed, history.missing) == (removed, missing)
        assert (history.outcome is Outcome.OK) == (not missing)
        assert bool(history.reason) == bool(missing)
        assert [s.number for s in history.sessions] == [1]

    def test_a_history_of_which_nothing_is_left_is_none(self) -> None:
        history = make_history(portrait(), [lost(1, True)])
        assert history.outcome is Outcome.ERROR
        assert history.reason == "every session was removed for a reveal"

    @pytest.mark.parametrize(
        ("sessions", "shown"),
        [
            ([{}], ()),
            (
                [{"N1": True, "N2": False, "N3": True, "N4": True}],
                ("maori_1", "maori_2", "maori_4"),
            ),
            ([{"N1": False, "N2": True}], ()),
            ([{"N1": False}, {"N1": True}], ("maori_1",)),
            ([{"N4": True}, {"N1": True}], ("maori_1", "maori_4")),
        ],
    )
    def test_a_norm_is_shown_where_one_session_agrees_with_the_persona(
        self, sessions: list[dict[str, bool]], shown: tuple[str, ...]
    ) -> None:
        groups = [group(kept(i, shows=stances)) for i, stances in enumerate(sessions, start=1)]
        assert make_history(portrait(), groups).shown == shown

    def test_a_rejected_attempt_shows_nothing(self) -> None:
        rejected = kept(1, "rejected", shows={"N1": True})
        assert make_history(portrait(), [group(rejected, kept(1, shows={"N4": True}))]).shown == (
            "maori_4",
        )

    def test_the_digest_names_the_visible_turns_session_by_session(self) -> None:
        def digest(*groups: tuple[Attempt, ...]) -> str:
            return make_history(portrait(), groups).digest

        base = digest(group(kept(1)), group(kept(2)))
        same = kept(2, "flagged", shows={"N1": True}).model_copy(
            update={"id": "other", "calls": ("x",)}
        )
        assert digest(group(kept(1)), group(same)) == base
        assert len(base) == 32
        joined = kept(1).model_copy(update={"turns": kept(1).turns * 2})
        others = [
            digest(group(kept(1)), group(kept(2, text="Hi."))),
            digest(group(kept(1))),
            digest(group(joined)),
            digest(group(kept(1)), group(kept(2, text="\ud800"))),
        ]
        assert len({base, *others}) == 5

    def test_the_order_of_a_history_is_that_of_its_sessions(self) -> None:
        def build(*groups: tuple[Attempt, ...]) -> History:
            return make_history(portrait(), groups)

        one, two = group(kept(1, text="a")), group(kept(2, text="b"))
        assert build(one, two).digest != build(two, one).digest
