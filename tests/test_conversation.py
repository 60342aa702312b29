"""Two agents talking: who says what, who remembers what, and why it ends."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from habitus.agents import Agent, Conversation, Dialogue, Rules, load_goodbyes
from habitus.content import find
from habitus.histories.roles import role_breaks
from habitus.models.scripted import ScriptedModel
from habitus.records import (
    Failure,
    Message,
    Outcome,
    Prefix,
    Reply,
    Request,
    Sampling,
    derive_seed,
)

OPENER = "  good morning é is 5 too early?\n"
Line = Reply | str


class Side:
    """A scripted side: what it says, turn by turn, and every request that it was asked."""

    def __init__(self, role: str, lines: Iterable[Line], seed: int = 7) -> None:
        self.requests: list[Request] = []
        self._lines = iter(lines)
        model = ScriptedModel(role, self._next)
        system = Prefix((Message("system", f"You are the {role}."),))
        self.agent = Agent(role, model, system, Sampling(temperature=0.7), seed)

    def _next(self, request: Request) -> Line:
        self.requests.append(request)
        return next(self._lines, f"line {len(self.requests)} of {self.agent.role}")


#: What ships.
GOODBYES = load_goodbyes(find("personas", "talk/goodbyes.yaml"))


def sides(persona: Iterable[Line] = (), assistant: Iterable[Line] = ()) -> tuple[Side, Side]:
    return Side("persona", persona), Side("assistant", assistant)


async def talk(
    persona: Side,
    assistant: Side,
    exchanges: int = 3,
    *,
    answer_after_stop: bool = True,
    attempt: int = 0,
) -> Dialogue:
    rules = Rules(exchanges, answer_after_stop=answer_after_stop, goodbyes=GOODBYES)
    conversation = Conversation(persona.agent, assistant.agent, rules)
    return await conversation.run(OPENER, "maori-01/s01/a0", attempt)


def words(dialogue: Dialogue) -> list[str]:
    return [turn.text for turn in dialogue.turns]


class TestTurns:
    async def test_the_opener_comes_first_word_for_word_and_once(self) -> None:
        dialogue = await talk(*sides())
        assert dialogue.turns[0].speaker == "persona"
        assert dialogue.turns[0].text == OPENER
        assert words(dialogue).count(OPENER) == 1

    @pytest.mark.parametrize("exchanges", [1, 2, 3, 8])
    async def test_n_exchanges_have_2n_turns_and_one_call_less(self, exchanges: int) -> None:
        persona, assistant = sides()
        dialogue = await talk(persona, assistant, exchanges)
        assert dialogue.end == "complete"
        assert dialogue.failure is None
        assert len(dialogue.turns) == 2 * exchanges
        assert len(dialogue.calls) == 2 * exchanges - 1
        assert (len(persona.requests), len(assistant.requests)) == (exchanges - 1, exchanges)
        assert [t.speaker for t in dialogue.turns] == ["persona", "assistant"] * exchanges

    async def test_each_side_sees_itself_as_assistant_and_the_other_as_user(self) -> None:
        persona, assistant = sides(["mine"], ["yours", "yours again"])
        await talk(persona, assistant, 2)
        assert persona.requests[0].all_messages == (
            Message("system", "You are the persona."),
            Message("assistant", OPENER),
            Message("user", "yours"),
        )
        assert assistant.requests[1].all_messages == (
            Message("system", "You are the assistant."),
            Message("user", OPENER),
            Message("assistant", "yours"),
            Message("user", "mine"),
        )

    async def test_reasoning_and_sheet_of_one_side_never_reach_the_other(self) -> None:
        secret = [Reply(Outcome.OK, f"hi {i}", reasoning="my secret") for i in range(4)]
        persona, assistant = sides(secret, secret[::-1])
        dialogue = await talk(persona, assistant)
        for request in (*persona.requests, *assistant.requests):
            assert all("secret" not in message.text for message in request.all_messages)
        assert all("persona" not in m.text for r in assistant.requests for m in r.all_messages)
        assert "secret" not in "".join(words(dialogue))

    async def test_calls_are_named_by_turn_and_seeded_by_name_and_attempt(self) -> None:
        persona, assistant = sides()
        await talk(persona, assistant, 2, attempt=1)
        requests = [assistant.requests[0], persona.requests[0], assistant.requests[1]]
        assert [r.record for r in requests] == [f"maori-01/s01/a0/t{i:02d}" for i in (2, 3, 4)]
        assert {r.attempt for r in requests} == {1}
        assert len({r.seed for r in requests}) == 3
        assert requests[1].seed == derive_seed(7, "turn/persona", "maori-01/s01/a0/t03", 1, 0)
        assert [r.context["role"] for r in requests] == ["assistant", "persona", "assistant"]

    async def test_white_space_around_a_turn_is_no_part_of_it(self) -> None:
        dialogue = await talk(*sides([], ["\n  well \n now \n"]), exchanges=1)
        assert words(dialogue)[1] == "well \n now"


class TestStopMarker:
    """The last sentence and the marker come in one message."""

    async def test_text_before_the_marker_is_said_and_answered_once(self) -> None:
        persona, assistant = sides(["Thank you, I will ask my husband first. [END]", "more"])
        dialogue = await talk(persona, assistant, 8)
        assert words(dialogue)[2:] == [
            "Thank you, I will ask my husband first.",
            "line 2 of assistant",
        ]
        assert dialogue.end == "persona_stop"
        assert len(persona.requests) == 1
        heard = assistant.requests[-1].messages[-1].text
        assert heard == "Thank you, I will ask my husband first."

    async def test_the_answer_may_be_left_out(self) -> None:
        persona, assistant = sides(["Thanks. [END]"])
        dialogue = await talk(persona, assistant, 8, answer_after_stop=False)
        assert words(dialogue)[2:] == ["Thanks."]
        assert dialogue.end == "persona_stop"
        assert len(assistant.requests) == 1

    @pytest.mark.parametrize("bare", ["[END]", "\n [END] ", "[END] and then some"])
    async def test_a_bare_marker_adds_no_turn(self, bare: str) -> None:
        persona, assistant = sides([bare])
        dialogue = await talk(persona, assistant, 8)
        assert words(dialogue) == [OPENER, "line 1 of assistant"]
        assert dialogue.end == "persona_stop"
        assert dialogue.failure is None
        assert (len(persona.requests), len(dialogue.calls)) == (1, 2)

    async def test_the_marker_in_the_last_exchange_is_a_stop_too(self) -> None:
        dialogue = await talk(*sides(["So be it. [END]"]), exchanges=2)
        assert len(dialogue.turns) == 4
        assert dialogue.end == "persona_stop"

    async def test_in_the_assistants_mouth_it_is_text(self) -> None:
        persona, assistant = sides([], ["Say [END] when done.", "[END]"])
        dialogue = await talk(persona, assistant, 3)
        assert words(dialogue)[1::2] == ["Say [END] when done.", "[END]", "line 3 of assistant"]
        assert dialogue.end == "complete"

    @pytest.mark.parametrize("answer", ["Goodbye!", "line 1 of assistant"])
    async def test_the_reason_stays_whatever_the_assistant_takes_its_leave_with(
        self, answer: str
    ) -> None:
        dialogue = await talk(*sides(["Thanks, bye! [END]"], ["line 1 of assistant", answer]))
        assert words(dialogue)[-1] == answer
        assert dialogue.end == "persona_stop"

    async def test_another_marker_can_be_chosen(self) -> None:
        persona, assistant = sides(["Ok [END] ###STOP###"])
        conversation = Conversation(persona.agent, assistant.agent, Rules(5, stop="###STOP###"))
        dialogue = await conversation.run("Hi", "r")
        assert words(dialogue)[2] == "Ok [END]"
        assert dialogue.end == "persona_stop"


class TestEndlessTalk:
    """Both sides keep saying goodbye, or the same, until the turn limit."""

    @pytest.mark.parametrize(
        ("persona", "assistant"),
        [
            ("Thanks, bye!", "You're welcome, goodbye!"),
            ("Good night then", "You\u2019re welcome."),
            ("ok see you", "Have a lovely evening, and take care!"),
        ],
    )
    async def test_a_goodbye_loop_ends(self, persona: str, assistant: str) -> None:
        variants = [f"{persona} {'!' * i}" for i in range(40)]
        replies = ["Try tea.", *(f"{assistant} {'!' * i}" for i in range(40))]
        dialogue = await talk(*sides(variants, replies), exchanges=20)
        assert dialogue.end == "farewell"
        assert len(dialogue.turns) == 4
        assert dialogue.failure is None

    @pytest.mark.parametrize(
        ("persona", "assistant"),
        [
            ("Thanks, bye!", "Before you say goodbye: how long have you had it?"),
            ("I do take care of it.", "Take care of it with warm water."),
            ("I want a good night's rest.", "A good night\u2019s rest is worth much."),
            ("bye " * 20, "goodbye " * 20),
            ("Tell me more.", "Goodbye!"),
        ],
        ids=["a question", "take care of", "good night's", "long", "one side only"],
    )
    async def test_what_is_more_than_a_goodbye_goes_on(self, persona: str, assistant: str) -> None:
        dialogue = await talk(*sides([persona], ["Try tea.", assistant]), exchanges=4)
        assert dialogue.end == "complete"
        assert len(dialogue.turns) == 8

    @pytest.mark.parametrize("side", ["persona", "assistant"])
    async def test_a_side_that_repeats_its_own_last_turn_ends_it(self, side: str) -> None:
        same = ["Well."] * 40
        dialogue = await talk(*(sides(same) if side == "persona" else sides((), same)), 20)
        assert dialogue.end == "repetition"
        assert words(dialogue).count("Well.") == 4  # it is short, and may answer two questions

    async def test_an_echo_of_the_other_side_is_no_repetition(self) -> None:
        dialogue = await talk(*sides(["a", "b"], [OPENER, "a", "b"]), exchanges=3)
        assert dialogue.end == "complete"


class TestFailures:
    EMPTY = Reply(Outcome.UNPARSED, "", "empty")

    @pytest.mark.parametrize("empty", ["", "  \n", EMPTY], ids=["", "white space", "unparsed"])
    async def test_an_empty_turn_is_asked_for_once_more(self, empty: Line) -> None:
        persona, assistant = sides([empty, "There."])
        dialogue = await talk(persona, assistant, 2)
        assert words(dialogue)[2] == "There."
        assert dialogue.end == "complete"
        assert len(dialogue.calls) == 4
        one, two = persona.requests
        assert (one.messages, one.record) == (two.messages, two.record)
        assert one.seed != two.seed

    async def test_two_empty_turns_end_it_and_are_no_text(self) -> None:
        persona, assistant = sides(["", self.EMPTY, "never asked"])
        dialogue = await talk(persona, assistant)
        assert dialogue.end == "empty_turn"
        assert dialogue.failure == Failure(Outcome.UNPARSED, "empty turn twice")
        assert words(dialogue) == [OPENER, "line 1 of assistant"]
        assert len(persona.requests) == 2

    @pytest.mark.parametrize(
        "reply",
        [
            Reply(Outcome.REFUSED, "I cannot help.", "content_filter"),
            Reply(Outcome.TRUNCATED, "It is cut in the mid", "length"),
            Reply(Outcome.TRUNCATED, "", "length", reasoning="I thought for too long"),
            Reply(Outcome.OVERFLOW, "", "context length"),
            Reply(Outcome.ERROR, "", "http 500"),
            Reply(Outcome.UNPARSED, "", "no choices"),
        ],
        ids=lambda reply: f"{reply.outcome} {reply.reason}",
    )
    @pytest.mark.parametrize("side", ["persona", "assistant"])
    async def test_a_failed_call_ends_it_with_its_own_outcome(
        self, reply: Reply, side: str
    ) -> None:
        persona, assistant = sides([reply]) if side == "persona" else sides((), [reply])
        dialogue = await talk(persona, assistant)
        assert dialogue.end == "failed"
        assert dialogue.failure == Failure(reply.outcome, reply.reason)
        assert len(dialogue.turns) == (2 if side == "persona" else 1)
        assert len(dialogue.calls) == len(dialogue.turns)

    async def test_a_failure_after_an_empty_turn_is_the_failure(self) -> None:
        dialogue = await talk(*sides(["", Reply(Outcome.ERROR, "", "http 500")]))
        assert (dialogue.end, dialogue.failure) == ("failed", Failure(Outcome.ERROR, "http 500"))

    async def test_a_persona_that_stopped_still_needs_its_answer(self) -> None:
        refused = Reply(Outcome.REFUSED, "", "content_filter")
        dialogue = await talk(*sides(["Thanks [END]"], ["a", refused]))
        assert (dialogue.end, dialogue.failure) == ("failed", refused.failure)


BREAKS = {
    "As an AI language model, I have no body.": "speaks as the assistant: as an ai",
    "Sure! How can I help you today?": "speaks as the assistant: how can i help you",
    "I\u2019m your virtual assistant.": "speaks as the assistant: i'm your virtual assistant",
    "It hurts.\nASSISTANT: Where does it hurt?": "writes both sides: assistant:",
    "**User:** It hurts.": "writes both sides: **user:",
    "I will stay in character.": "steps out of the role: i will stay in character",
    "(OOC: shall I go on?)": "steps out of the role: (ooc",
}


class TestRole:
    """A persona that leaves its role is found by its words; the opener and the assistant are not."""

    @pytest.mark.parametrize(("said", "found"), BREAKS.items())
    async def test_it_is_counted_with_its_words(self, said: str, found: str) -> None:
        dialogue = await talk(*sides([said]), 2)
        assert dialogue.turns[2].text == said
        (told,) = role_breaks(dialogue.turns)
        assert told.startswith(found)

    @pytest.mark.parametrize(
        "said",
        [
            "My sister says the assistant at the chemist helped her.",
            "How can I help her?",
            "I asked an AI, it was no use.",
            "He is quite a character.",
            "Two things: it burns, and it itches.",
        ],
    )
    async def test_plain_talk_is_none(self, said: str) -> None:
        assert role_breaks((await talk(*sides([said]), 2)).turns) == ()

    async def test_opener_and_assistant_may_say_anything(self) -> None:
        assistant = "As an AI assistant: how can I help you? ASSISTANT: Well."
        dialogue = await talk(*sides(["Well."], [assistant] * 2), 2)
        assert role_breaks(dialogue.turns) == ()


REPLIES = st.sampled_from(
    [
        "",
        " ",
        "[END]",
        "So long [END]",
        "Bye!",
        "Goodbye, take care.",
        "Well.",
        "Hm?",
        "PERSONA: me\nASSISTANT: you",
        Reply(Outcome.REFUSED, "no", "filter"),
        Reply(Outcome.TRUNCATED, "cut", "length"),
        Reply(Outcome.UNPARSED, "", "empty"),
    ]
) | st.text(max_size=8)
ENDS = {"complete", "persona_stop", "farewell", "repetition", "empty_turn", "failed"}


@given(
    st.lists(REPLIES, max_size=12), st.lists(REPLIES, max_size=12), st.integers(1, 5), st.booleans()
)
async def test_whatever_is_said_turns_alternate_and_the_limit_is_hard(
    persona: list[Line], assistant: list[Line], exchanges: int, answers: bool
) -> None:
    one, two = sides(persona, assistant)
    dialogue = await talk(one, two, exchanges, answer_after_stop=answers)
    assert dialogue.turns[0].text == OPENER
    assert all(a.speaker != b.speaker for a, b in pairwise(dialogue.turns))
    assert all(turn.text.strip() for turn in dialogue.turns)
    assert all("[END]" not in turn.text for turn in dialogue.turns[::2])
    assert len(dialogue.turns) <= 2 * exchanges
    assert len(dialogue.calls) == len(one.requests) + len(two.requests) <= 4 * exchanges
    assert dialogue.end in ENDS
    assert (dialogue.failure is None) == (dialogue.end not in {"failed", "empty_turn"})
    if dialogue.end == "complete":
        assert len(dialogue.turns) == 2 * exchanges


async def test_requests_hang_on_nothing_but_what_was_said() -> None:
    """The same talk twice asks the same, so that a stored run is found again."""

    async def once() -> list[Request]:
        persona, assistant = sides()
        await talk(persona, assistant)
        return [*persona.requests, *assistant.requests]

    assert await once() == await once()
