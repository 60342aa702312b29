"""Judges that answer and are never understood: a run stops before it has paid for all of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from habitus.experiments import RunRequest, run_experiment
from habitus.records import Label, Outcome, Recommendation, Request, Response
from habitus.running import RunStoppedError
from habitus.running.unreadable import Unreadable
from habitus.store import RunDir
from labelling_fixture import answers, written
from study_fixture import Answering, Terminal, opening, study_of, terminal_in


@pytest.fixture
def terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Terminal:
    return terminal_in(tmp_path, monkeypatch, capsys)


def label(number: int, outcome: Outcome = Outcome.UNPARSED, **more: object) -> Label:
    given = {"id": f"{number}/j", "item": f"{number}", "judge": "j", "calls": ["k"], **more}
    return Label.model_validate({**given, "outcome": outcome, "reason": f"why {number}"})


class TestCounting:
    def test_the_first_so_many_of_one_judge(self) -> None:
        seen = Unreadable(3)
        assert seen.see(label(1)) is None
        assert seen.see(label(2, judge="other")) is None
        assert seen.see(label(3)) is None
        found = seen.see(label(4))
        assert found is not None
        assert (found.who, found.answers, found.reason) == ("judge j", 3, "why 1")

    def test_one_that_is_read_ends_it(self) -> None:
        seen = Unreadable(2)
        ok = [label(1, Outcome.OK, label="x", present=True)]
        assert not any(map(seen.see, [*ok, *map(label, range(2, 9))]))

    @pytest.mark.parametrize(
        "record",
        [
            label(1, Outcome.ERROR),
            label(1, Outcome.REFUSED),
            label(1, calls=[]),
            Response(id="r", outcome=Outcome.UNPARSED, target="t", setting="ccot", persona="p",
                     query="q", repeat=0),
        ],
        ids=["a failed call", "a refusal", "nothing was asked", "a model under test"],
    )  # fmt: skip
    def test_what_is_another_matter(self, record: Label | Response) -> None:
        seen = Unreadable(2)
        assert not any(seen.see(record) for _ in range(9))

    def test_other_records_are_none(self) -> None:
        made = Recommendation.model_validate(
            {"id": "n/follow/q", "norm": "n", "state": 1, "query": "q", "calls": ["k"]}
        )
        assert Unreadable(1).see(made) is None


def mute(role: str) -> Answering:
    """Roles that answer well, but for one that says nothing that can be read."""
    return Answering(lambda r: "Well." if _role(r) == role else None)


def _role(request: Request) -> str:
    return str(request.context.get("role", ""))


@pytest.mark.parametrize(
    ("role", "who"), [("evaluator", "evaluator"), ("recommender", "recommender")]
)
def test_a_run_stops_and_says_whose_answers_nobody_understands(
    tmp_path: Path, role: str, who: str
) -> None:
    study = study_of(tmp_path, {"limits.alike": 3})
    request = RunRequest(out=tmp_path / "run", opener=opening(mute(role)))
    with pytest.raises(RunStoppedError, match=rf"^{who}: none of the first \d+ answers could be"):
        run_experiment(study, request)
    with RunDir.open(tmp_path / "run", write=False) as run:
        assert sum(count.calls for count in run.calls.counts()) > 0


SILENT = '{backend: scripted, model: m, options: {rules: [{reply: "Nothing."}]}}'


def test_labels_stop_unless_all_may_fail(tmp_path: Path, terminal: Terminal) -> None:
    written(tmp_path, answers(30))
    words = ["judge", "answers.jsonl", "--model", SILENT, "--judges", "positioning"]
    words += ["--out", "labels", "--quiet"]
    code, _, err = terminal(*words)
    assert code == 1
    assert "judge positioning: none of the first " in err
    assert " answers could be read: " in err
    code, _, err = terminal(*words, "--failures", "1")
    assert (code, "none of the first" in err) == (0, False)
