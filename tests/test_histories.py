"""Histories: plans of sessions, and both forms of simulation."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from habitus.errors import UsageError
from habitus.histories import (
    AgentSimulator,
    OpenerPool,
    SessionPlan,
    SingleCallSimulator,
    plan_sessions,
)
from habitus.histories.script import Script, ScriptError, read_script
from habitus.records import (
    Attempt,
    Outcome,
    Reply,
    Turn,
    derive_seed,
)
from people import Seat, portrait, prompt

DOMAIN = OpenerPool("domain", [(f"d{i}", f"Domain {i}?") for i in range(10)], 3)
EVERYDAY = OpenerPool("everyday", [(f"e{i}", f"Everyday {i}.") for i in range(40)], 15)
PLAN = SessionPlan("maori-01", 1, "domain", "d1", " Is five too early? ", 2)


def plans(persona: str = "maori-01", seed: int = 1) -> tuple[SessionPlan, ...]:
    return plan_sessions(persona, [DOMAIN, EVERYDAY], (4, 8), seed)


class TestPlans:
    def test_a_persona_has_every_opener_once(self) -> None:
        sessions = plans()
        assert len({s.opener for s in sessions}) == len(sessions) == 18
        assert [s.number for s in sessions] == list(range(1, 19))
        assert [s.id for s in sessions[:2]] == ["maori-01/s01", "maori-01/s02"]
        assert sum(s.kind == "domain" for s in sessions) == 3
        texts = dict([*DOMAIN.openers, *EVERYDAY.openers])
        assert all(texts[s.opener] == s.text for s in sessions)

    def test_kinds_are_mixed_and_lengths_drawn_evenly(self) -> None:
        many = [plans(f"p-{i:02d}") for i in range(200)]
        first = sum(sessions[0].kind == "domain" for sessions in many)
        assert 15 <= first <= 55  # 200 * 3 / 18 is 33
        lengths = [s.exchanges for sessions in many for s in sessions]
        assert set(lengths) == {4, 5, 6, 7, 8}
        assert all(600 <= lengths.count(n) <= 840 for n in set(lengths))  # 720 each

    def test_plans_hang_on_seed_and_persona_alone(self) -> None:
        alone = plans("maori-02")
        assert alone == {name: plans(name) for name in ("maori-03", "maori-02")}["maori-02"]
        assert [s.opener for s in alone] != [s.opener for s in plans("maori-03")]
        assert [s.opener for s in alone] != [s.opener for s in plans("maori-02", seed=2)]

    def test_plans_are_pinned(self) -> None:
        assert [(s.opener, s.exchanges) for s in plans()[:4]] == [
            ("e23", 7),
            ("d9", 6),
            ("e16", 7),
            ("e8", 8),
        ]

    def test_openers_recur_across_personas(self) -> None:
        used = [s.opener for i in range(10) for s in plans(f"p-{i}")]
        assert len(used) > len(set(used))

    def test_all_openers_of_a_kind_can_be_used_and_no_more(self) -> None:
        all_ten = OpenerPool("domain", DOMAIN.openers, 10)
        assert len(plan_sessions("p", [all_ten], (1, 1), 1)) == 10
        with pytest.raises(UsageError, match=r"11 domain sessions .* there are 10 openers; add"):
            plan_sessions("p", [OpenerPool("domain", DOMAIN.openers, 11)], (1, 1), 1)


LABELS = portrait().labels
SCRIPT = """\
ASSISTANT: Not at all. What wakes you?
PERSONA: My boys do.
They are three and four.
ASSISTANT: Then five it is.
NORM STATES
N1: follow
N2: avoid
N3: neutral
N4: follow
"""
STATED = {"maori_1": 1, "maori_2": -1, "maori_3": 0, "maori_4": 1}
SAID = ["Not at all. What wakes you?", "My boys do.\nThey are three and four.", "Then five it is."]


def rewritten(*pairs: tuple[str, str]) -> str:
    text = SCRIPT
    for old, new in pairs:
        assert old in text
        text = text.replace(old, new)
    return text


SAME_SCRIPTS = {
    "as asked": SCRIPT,
    "bold markers": rewritten(("ASSISTANT:", "**ASSISTANT:**"), ("PERSONA:", "**PERSONA**:")),
    "headings": rewritten(("ASSISTANT:", "### Assistant:"), ("NORM", "## Norm")),
    "small letters": rewritten(("ASSISTANT", "Assistant"), ("PERSONA", "persona")),
    "opener repeated": "PERSONA: Is five\ntoo early?\n" + SCRIPT,
    "words before": "Here is the chat.\n\n" + SCRIPT,
    "words behind": SCRIPT + "\nI hope this helps.\nPERSONA: no more",
    "blank lines": rewritten(("\nPERSONA", "\n\n\nPERSONA"), ("\nNORM", "\n\n\nNORM")),
    "rules between": rewritten(("\nPERSONA", "\n---\nPERSONA"), ("\nNORM", "\n\n***\n\nNORM")),
    "fenced": f"```\n{SCRIPT}```",
    "a last turn without an answer": rewritten(("NORM", "PERSONA: Fine.\nNORM")),
    "list of states": rewritten(("N1: follow", "- **N1**: Follow"), ("N2: avoid", "* `N2`: avoid")),
    "heading with words": rewritten(("NORM STATES", "**NORM STATES (restated):**")),
    "states said twice, alike": SCRIPT + "N1: follow\n",
    "windows line ends": SCRIPT.replace("\n", "\r\n"),
}
NO_SCRIPTS = {
    "empty": ("", "the norm states are not restated"),
    "no restatement": (SCRIPT.partition("NORM")[0], "the norm states are not restated at the end"),
    "no turns": ("Hello.\nNORM STATES\nN1: follow", "no line begins with ASSISTANT: or PERSONA:"),
    "two turns of one side": (
        rewritten(("PERSONA: My", "ASSISTANT: My")),
        "two turns of the assistant in a row",
    ),
    "the persona begins": (
        "PERSONA: Something else.\n" + SCRIPT,
        "the first turn after the opener is not the assistant's",
    ),
    "only the opener": (
        "PERSONA: Is five too early?\nNORM STATES\n",
        "the first turn after the opener is not the assistant's",
    ),
    "an empty turn": (rewritten(("Then five it is.", "")), "a turn without words"),
    "a turn that is a rule": (rewritten(("Then five it is.", "---")), "a turn without words"),
}


class TestScripts:
    @pytest.mark.parametrize("form", SAME_SCRIPTS)
    def test_turns_are_read_and_the_restatement_cut(self, form: str) -> None:
        script = read_script(SAME_SCRIPTS[form], PLAN.text, LABELS)
        assert [t.text.replace("\r\n", "\n") for t in script.turns] == SAID
        assert [t.speaker for t in script.turns] == ["assistant", "persona", "assistant"]
        assert script.states == STATED

    @pytest.mark.parametrize("form", NO_SCRIPTS)
    def test_what_is_no_dialogue_says_why(self, form: str) -> None:
        text, message = NO_SCRIPTS[form]
        with pytest.raises(ScriptError, match=message):
            read_script(text, PLAN.text, LABELS)

    def test_a_state_that_is_not_given_or_given_two_ways_is_not_made_up(self) -> None:
        text = rewritten(("N1: follow", "N1: maybe"), ("N3: neutral", "N4: avoid"), ("N2", "N9"))
        assert read_script(text, PLAN.text, LABELS).states == {}
        text = rewritten(("N4: follow", "maori_4: follow"))
        assert "maori_4" not in read_script(text, PLAN.text, LABELS).states

    def test_the_last_restatement_counts_and_an_earlier_mention_is_talk(self) -> None:
        text = rewritten(("My boys do.", "My boys do.\nNorm states\nsounds odd"))
        script = read_script(text, PLAN.text, LABELS)
        assert script.turns[1].text.splitlines()[1:3] == ["Norm states", "sounds odd"]
        assert script.states == STATED

    @given(
        st.text()
        | st.lists(
            st.sampled_from(
                [
                    "PERSONA:",
                    "ASSISTANT: a",
                    "**Persona**: b\n",
                    "\n",
                    "---",
                    "NORM STATES\n",
                    "N1: follow",
                    "N2:",
                    " ",
                    "\r\n",
                    "x",
                    "```\n",
                ]
            ),
            max_size=20,
        ).map("".join)
        | st.text().map(lambda text: rewritten(("My boys do.", text)))
    )
    @example("NORM STATES" * 1000)
    @example("ASSISTANT:\n" * 1000 + "---\n" * 5000)
    def test_any_text_is_a_good_script_or_none(self, text: str) -> None:
        try:
            script = read_script(text, PLAN.text, LABELS)
        except ScriptError:
            return
        assert isinstance(script, Script)
        assert script.turns[0].speaker == script.turns[-1].speaker == "assistant"
        assert all(a.speaker != b.speaker for a, b in pairwise(script.turns))
        assert all(turn.text.strip() for turn in script.turns)
        assert script.states.keys() <= LABELS.keys()
        assert set(script.states.values()) <= {-1, 0, 1}


def agents(persona: Seat, assistant: Seat, seed: int = 1) -> AgentSimulator:
    return AgentSimulator(
        persona.role, assistant.role, prompt("persona"), prompt("assistant"), seed
    )


class TestSimulators:
    async def test_two_agents_hold_the_planned_session(self) -> None:
        persona, assistant = Seat("My boys."), Seat("Why?", "I see.")
        attempt = await agents(persona, assistant).simulate(portrait(), PLAN, 2)
        assert attempt == Attempt(
            id="maori-01/s01/a2",
            persona="maori-01",
            number=1,
            attempt=2,
            kind="domain",
            opener="d1",
            turns=tuple(
                Turn(speaker="assistant" if i % 2 else "persona", text=text)
                for i, text in enumerate([PLAN.text, "Why?", "My boys.", "I see."])
            ),
            end="complete",
            role_breaks=(),
            calls=("", "", ""),
        )
        assert portrait().sheet in persona.seen()
        assert "[END]" in persona.seen()
        assert "family" not in assistant.seen()

    async def test_the_attempt_is_in_seeds_and_keys(self) -> None:
        seeds = set()
        for number in (0, 1):
            persona, assistant = Seat("My boys."), Seat("Why?", "I see.")
            await agents(persona, assistant).simulate(portrait(), PLAN, number)
            requests = [*persona.requests, *assistant.requests]
            assert {r.attempt for r in requests} == {number}
            seeds |= {r.seed for r in requests}
        assert len(seeds) == 6

    async def test_a_session_that_failed_has_its_outcome(self) -> None:
        refused = Reply(Outcome.REFUSED, "", "filter")
        attempt = await agents(Seat("a"), Seat(refused)).simulate(portrait(), PLAN, 0)
        assert (attempt.outcome, attempt.reason) == (Outcome.REFUSED, "filter")
        assert (attempt.end, len(attempt.turns)) == ("failed", 1)

    async def test_one_call_writes_the_whole_dialogue(self) -> None:
        writer = Seat(SCRIPT)
        simulator = SingleCallSimulator(writer.role, prompt("dialogue"), 1)
        attempt = await simulator.simulate(portrait(), PLAN, 1)
        assert [t.text for t in attempt.turns] == [PLAN.text, *SAID]
        assert attempt.turns[0].speaker == "persona"
        assert attempt.restatement == STATED
        assert (attempt.outcome, attempt.end) == (Outcome.OK, "complete")
        (request,) = writer.requests
        assert request.seed == derive_seed(1, "dialogue", "maori-01/s01/a1", 1)
        assert request.attempt == 1
        assert "maori" not in writer.seen()
        assert all(part in writer.seen() for part in ("N1, N2, N3, N4", PLAN.text, "Write 2"))

    @pytest.mark.parametrize(
        ("reply", "outcome", "reason"),
        [
            (Reply(Outcome.TRUNCATED, SCRIPT, "length"), Outcome.TRUNCATED, "length"),
            ("Hello.", Outcome.UNPARSED, "the norm states are not restated at the end"),
            ("", Outcome.UNPARSED, "empty"),
        ],
    )
    async def test_one_call_without_a_dialogue_is_a_failure(
        self, reply: Reply | str, outcome: Outcome, reason: str
    ) -> None:
        simulator = SingleCallSimulator(Seat(reply).role, prompt("dialogue"), 1)
        attempt = await simulator.simulate(portrait(), PLAN, 0)
        assert (attempt.outcome, attempt.reason) == (outcome, reason)
        assert (attempt.turns, attempt.restatement, attempt.end) == ((), None, "failed")
