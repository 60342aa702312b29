"""A persona that leaves its role: which words show it, which do not, and where it is counted."""

from __future__ import annotations

from pathlib import Path

import pytest

from habitus.experiments import RunRequest, run_experiment
from habitus.histories.roles import role_breaks
from habitus.records import Turn
from study_fixture import FAST, Terminal, study_of, terminal_in


@pytest.fixture
def terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Terminal:
    return terminal_in(tmp_path, monkeypatch, capsys)


BROKEN = [
    ("ASSISTANT", "As an AI language model, I have no body."),
    ("ASSISTANT", "I'm an AI, so I don't sleep."),
    ("ASSISTANT", "I am just an AI and cannot feel that."),
    ("ASSISTANT", "As an AI assistant I would advise rest."),
    ("ASSISTANT", "As a language model, I cannot see a doctor."),
    ("ASSISTANT", "I'm only a chatbot."),
    ("ASSISTANT", "As your virtual assistant, let me help."),
    ("ASSISTANT", "I\u2019m a helpful assistant."),
    ("ASSISTANT", "How may I assist you today?"),
    ("ASSISTANT", "You're welcome! Is there anything else I can help you with?"),
    ("ASSISTANT", "I'm here to help you with any question."),
    ("ASSISTANT", "I was trained by OpenAI."),
    ("ASSISTANT", "I don't have personal experiences, but many people say so."),
    ("ASSISTANT", "I do not have a physical body."),
    ("ASSISTANT", "That is not in my training data."),
    ("ASSISTANT", "I'm unable to provide medical advice."),
    ("ASSISTANT", "As an artificial intelligence, I see it so."),
    ("ASSISTANT", "As a large language model developed in a lab, no."),
    ("BOTH", "It hurts.\nASSISTANT: Where does it hurt?"),
    ("BOTH", "**User:** It hurts."),
    ("BOTH", "Thanks.\n\nAI: You are welcome."),
    ("BOTH", "[Assistant]: Try tea."),
    ("BOTH", "User: ok\nAssistant: fine"),
    ("BOTH", "### Assistant: rest"),
    ("BOTH", "Human: well\n"),
    ("BOTH", "ok\nThe assistant: rest more."),
    ("BOTH", "ok\nAssistant's reply: rest more."),
    ("BOTH", "I ask again.\nThe assistant replies that I should rest."),
    ("BOTH", "*The AI responds with care*"),
    ("BOTH", "Vale.\nAsistente: Descanse."),
    ("BOTH", "Gut.\nAssistent: Ruhen Sie."),
    ("BOTH", "好的。\n助手\uff1a请休息。"),
    ("BOTH", "Thanks\nChatbot: bye"),
    ("BOTH", "User (me): it hurts"),
    ("BOTH", 'Ok.\nYou reply: "rest more"'),
    ("OUT", "I will stay in character."),
    ("OUT", "Staying in character: it hurts."),
    ("OUT", "(OOC: shall I go on?)"),
    ("OUT", "[out of character] is this right?"),
    ("OUT", "Breaking character for a moment: is this fine?"),
    ("OUT", "I can't continue this roleplay."),
    ("OUT", "In this role-play I am a nurse."),
    ("OUT", "The persona would not say that."),
    ("OUT", "According to my persona sheet I like tea."),
    ("OUT", "As the persona, I would decline."),
    ("OUT", "The character I'm playing would say no."),
    ("OUT", "I'm playing a character who is tired."),
    ("OUT", "End of simulation."),
    ("OUT", "Here is my next message:\nIt hurts."),
    ("OUT", "The role I was given is a fisherman."),
    ("OUT", "I must remain in character here."),
]
PLAIN = [
    "As a nurse I assist doctors all day.",
    "My assistant at work said I should rest.",
    "I am an assistant at a law firm.",
    "I work as an assistant nurse.",
    "I'm a teaching assistant and my voice is gone.",
    "As an AI engineer I sit all day.",
    "I'm an AI researcher, so I know how these things fail.",
    "I asked an AI, it was no use.",
    "My son is into AI and robots.",
    "My sister says the assistant at the chemist helped her.",
    "How can I help her?",
    "How can I help my mother with it?",
    "My mother asked: how was work? I said: fine.",
    "My mother said:\nMum: you never call\nMe: I do, every week",
    "She goes:\n- Did you eat?\n- Yes, mum.",
    "Two things: it burns, and it itches.",
    "He is quite a character.",
    "It was out of character for him to shout.",
    "My kids love role-playing games.",
    "We have a role-play group on Fridays.",
    "She has two personas, one for work.",
    "The main character of the book dies.",
    "The user manual says: press twice.",
    "Note to self: buy milk.",
    "My boss is a human being after all.",
    "I'm here to help my dad move.",
    "I don't have feelings for him any more.",
    "I don't have a car.",
    "Is there anything else I should try?",
    "Is there anything else you think of?",
    "You replied so fast, thanks.",
    "The assistant manager says no.",
    "I told the user support about it.",
    "It is not in my character to complain.",
    "My patient: a boy of six. He coughs.",
    "As a human I do get tired.",
    "As an artificial insemination nurse I know.",
    "The bot at the bank keeps asking for my number.",
    "I was trained by a good midwife.",
    "I was created by my parents' love, as they say.",
    "I can't get medical advice here.",
    "Here is my reply to my boss, is it too harsh?",
    "To be the character in that play was hard.",
    "I keep my voice low at night.",
    "The customer: always right, they say at work.",
    "I am happy to help, but not every week.",
]


KINDS = {"ASSISTANT": "speaks as the assistant", "BOTH": "writes both sides", "OUT": "steps out"}


def breaks(said: str) -> tuple[str, ...]:
    turns = (("persona", "Hm."), ("assistant", "As an AI I help."), ("persona", said))
    return role_breaks(Turn.model_validate({"speaker": s, "text": t}) for s, t in turns)


class TestRole:
    @pytest.mark.parametrize(("kind", "said"), BROKEN)
    def test_leaving_it_is_found_and_told_apart(self, kind: str, said: str) -> None:
        (found,) = breaks(said)
        assert found.startswith(KINDS[kind])

    @pytest.mark.parametrize("said", PLAIN)
    def test_staying_in_it_is_not(self, said: str) -> None:
        assert breaks(said) == ()

    def test_a_user_sees_the_count(self, tmp_path: Path, terminal: Terminal) -> None:
        """In the table of the filter, in the status and in the report, with the ends of sessions."""
        rule = {"role": "persona", "reply": "As an AI language model, I cannot feel it. [end]"}
        options = {"script": "helpers", "rules": [rule]}
        changes = {**FAST, "models.main": {"backend": "scripted", "options": options}}
        run_experiment(study_of(tmp_path, changes), RunRequest(out=tmp_path / "run"))
        found = terminal.json("results", "run", "--filter", "--json")
        assert found["played_by"] == {"persona": "main", "assistant": "main"}
        assert found["rows"][-1]["role_break_count"] == 2
        assert found["rows"][-1]["ends"] == {"persona_stop": 2}
        out = terminal("results", "run", "--filter")[1]
        assert "How sessions end" in out
        assert "played: persona by main, assistant by main" in out
        status = terminal("status", "run")[1]
        assert "sessions ended: persona_stop 2; 2 with a persona out of its role" in status
        assert terminal("report", "run", "--out", "report.html")[0] == 0
        html = (tmp_path / "report.html").read_text()
        assert "How sessions end" in html
        assert "speaks as the assistant: as an ai" in html
