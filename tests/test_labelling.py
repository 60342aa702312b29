"""Labelling: what is asked in which order, what is asked again, and what is left behind."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from habitus.errors import ConfigChangedError, HabitusError, StoreError, UsageError
from habitus.judges import choose
from habitus.labelling import Manner, count_labels, make_tasks, open_source, read_labelling
from habitus.models import ChatModel
from habitus.models.entry import Factory
from habitus.records import Outcome, Reply, Request
from habitus.running import RunStoppedError, together, windowed
from habitus.store import RunDir
from labelling_fixture import (
    MADE_UP,
    REAL,
    answers,
    job_of,
    kept,
    labelled,
    labels,
    written,
)
from study_fixture import Answering, calls_of, failing, helpers, opening
from test_judges import GOOD, PROMPT

FRANZ = 15
BATCHED = 4
THREE = ("positioning", "maxims.manner", "generalizing")
N = 6  # answers
ALL = N * len(THREE)


def verdict_of(request: Request) -> str:
    """The judge and variant that a request is for."""
    judge, variant = request.context["judge"], request.context.get("variant")
    return f"{judge}.{variant}" if variant else str(judge)


@dataclass
class Watched:
    """The helpers, who let all others begin before they answer, and note when they did.

    ``events`` holds ``+`` or ``-``, the verdict and the item, in their order.
    """

    name: str = "small"
    events: list[tuple[str, str, str]] = field(default_factory=list)
    meet: Callable[[], Any] | None = None

    async def complete(self, request: Request) -> Reply:
        what = verdict_of(request), request.record
        self.events.append(("+", *what))
        if self.meet is not None:
            await self.meet()
        for _ in range(30):
            await asyncio.sleep(0)
        self.events.append(("-", *what))
        return await helpers().complete(request)

    async def aclose(self) -> None:
        """Nothing to give back."""

    def begun(self) -> list[tuple[str, str]]:
        """Verdict and item of every request in the order in which they came."""
        return [(verdict, item) for sign, verdict, item in self.events if sign == "+"]


def by_name(models: Mapping[str, ChatModel]) -> Factory:
    """Opens a model of its own for each entry."""
    return lambda name, _entry, _opening: models[name]


def meeting(parties: int) -> Callable[[], Any]:
    """Where so many wait for each other; whoever comes later need not wait."""
    barrier = asyncio.Barrier(parties)
    waited: list[int] = []

    async def meet() -> None:
        if len(waited) < parties:
            waited.append(1)
            async with asyncio.timeout(60):  # only ever over when the test fails
                await barrier.wait()

    return meet


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return written(tmp_path, answers(N))


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Labels of eight answers that nothing happened to."""
    folder = tmp_path_factory.mktemp("undisturbed")
    job = job_of(written(folder, answers(N)), THREE)
    labelled(folder / "run", job, opener=opening(helpers()))
    return folder / "run"


class TestOrder:
    def test_judge_by_judge_the_first_alone_then_as_many_as_fit(
        self, file: Path, tmp_path: Path
    ) -> None:
        model = Watched()
        models = {"small": REAL.model_copy(update={"concurrency": 2})}
        labelled(tmp_path / "run", job_of(file, THREE, models), opener=opening(model))
        ids = [f"{i:03}/llama-9" for i in range(N)]
        assert model.begun() == [(verdict, item) for verdict in THREE for item in ids]
        blocks = [model.events[2 * N * i : 2 * N * (i + 1)] for i in range(3)]
        for verdict, block in zip(THREE, blocks, strict=True):
            assert {event[1] for event in block} == {verdict}
            assert [event[0] for event in block[:2]] == ["+", "-"]
            assert most_at_once(block) == 2 * 2

    def test_variants_in_one_call_are_one_block(self, file: Path, tmp_path: Path) -> None:
        model = Watched()
        job = job_of(file, ("maxims", "positioning"), manner=Manner(batched=True))
        labelled(tmp_path / "run", job, opener=opening(model))
        assert [verdict for verdict, _ in model.begun()] == ["maxims"] * N + ["positioning"] * N
        assert [sign for sign, *_ in model.events[:2]] == ["+", "-"]

    def test_models_run_side_by_side(self, file: Path, tmp_path: Path) -> None:
        """Each waits for the other before it answers."""
        meet = meeting(2)
        models = {name: Watched(name, meet=meet) for name in ("small", "large")}
        job = job_of(
            file,
            ("positioning", "generalizing"),
            dict.fromkeys(models, REAL),
            own={"generalizing": "large"},
        )
        labelled(tmp_path / "run", job, opener=by_name(dict(models)))
        assert {verdict for verdict, _ in models["small"].begun()} == {"positioning"}
        assert {verdict for verdict, _ in models["large"].begun()} == {"generalizing"}
        assert len(models["small"].begun()) == len(models["large"].begun()) == N
        with RunDir.open(tmp_path / "run", write=False) as run:
            notes = {v.judge: v.model for v in read_labelling(run).verdicts}
        assert notes == {"positioning": "small", "generalizing": "large"}


def most_at_once(events: list[tuple[str, str, str]]) -> int:
    under_way = [0]
    for sign, *_ in events:
        under_way.append(under_way[-1] + (1 if sign == "+" else -1))
    return max(under_way)


class TestWindow:
    async def test_items_are_taken_when_their_turn_comes(self) -> None:
        taken: list[int] = []
        done: list[int] = []

        def items() -> Iterator[int]:
            for i in range(1_000_000):
                taken.append(i)
                yield i

        async def work(item: int) -> None:
            assert len(taken) <= len(done) + 8
            await asyncio.sleep(0)
            done.append(item)
            if item == 500:
                raise StoreError("enough")

        with pytest.raises(StoreError, match="enough"):
            await windowed(items(), work, 8)
        assert sorted(done)[:501] == list(range(501))
        assert len(taken) < 520

    @pytest.mark.parametrize("width", [1, 3, 50, None])
    async def test_all_are_worked_on_once_and_in_order(self, width: int | None) -> None:
        begun: list[int] = []
        most = 0
        under_way = 0

        async def work(item: int) -> None:
            nonlocal most, under_way
            begun.append(item)
            under_way += 1
            most = max(most, under_way)
            await asyncio.sleep(0)
            under_way -= 1

        await windowed(range(20), work, width)
        assert begun == list(range(20))
        assert most == min(width or 20, 20)

    async def test_the_first_exception_ends_the_others(self) -> None:
        ended: list[int] = []

        async def work(item: int) -> None:
            if item == 1:
                raise StoreError("one")
            try:
                await asyncio.Event().wait()
            finally:
                ended.append(item)

        with pytest.raises(StoreError, match="one"):
            await together([0, 1, 2], work)
        assert sorted(ended) in ([0], [0, 2])


class TestLabels:
    def test_every_item_has_one_label_of_each_verdict(self, undisturbed: Path) -> None:
        found = labels(undisturbed)
        wanted = {f"{i:03}/llama-9/{verdict}" for i in range(N) for verdict in THREE}
        assert {label.id for label in found} == wanted
        first = next(label for label in found if label.id == "003/llama-9/maxims.manner")
        assert (first.item, first.judge, first.variant) == ("003/llama-9", "maxims", "manner")
        assert (first.label, first.present, first.reasoning) == (
            "CLEAR",
            True,
            "By script.",
        )
        assert len(first.calls) == 1

    def test_the_run_says_what_it_is(self, undisturbed: Path) -> None:
        with RunDir.open(undisturbed, write=False) as run:
            note, counts = count_labels(run)
        assert (note.origin, note.kind, note.made_up) == ("answers.jsonl", "rows", ())
        assert note.totals == {"items": N, "labels": ALL}
        told = {v.variant: (v.judge, v.labels, v.present, v.form) for v in note.verdicts}
        assert told["manner"] == ("maxims", ("CLEAR", "UNCLEAR"), ("CLEAR",), "sentinel")
        assert [(c.items, c.judged, c.present, c.share, c.left) for c in counts] == [
            (N, N, N, 1.0, 0)
        ] * 3

    def test_what_answers_another_word_is_on_record(self, tmp_path: Path) -> None:
        source = written(tmp_path, [{"id": "p", "question": "Where is a museum?"}])
        model = Answering(lambda _: "##Travel## It asks for places. <|END|>")
        labelled(tmp_path / "run", job_of(source, ("post_categories",)), opener=opening(model))
        (label,) = labels(tmp_path / "run")
        assert (label.label, label.alias) == ("Tourism", "Travel")

    @pytest.mark.parametrize("manner", [Manner(question=True), Manner(batched=True)])
    def test_no_judge_is_told_whose_answer_it_reads(self, tmp_path: Path, manner: Manner) -> None:
        row = {"country": "COUNTRY-X", "group": "GROUP-X", "model": "TARGET-X", "id": "ID-X"}
        path = written(tmp_path, [{**answers(1)[0], **row}])
        job = job_of(path, ("franz",), manner=manner)
        labelled(tmp_path / "run", job, opener=opening(helpers()))
        with RunDir.open(tmp_path / "run", write=False) as run:
            calls = list(run.calls.iterate())
            forms = {v.judge: (v.batched, v.form) for v in read_labelling(run).verdicts}
        cues = (True, "json") if manner.batched else (False, "sentinel")
        assert forms == {
            "positioning": (False, "sentinel"), "generalizing": (False, "json"),
            "anthropomorphism": cues, "maxims": cues,
        }  # fmt: skip
        sent = [json.dumps(call.request) for call in calls]
        assert len(sent) == (BATCHED if manner.batched else FRANZ)
        found = labels(tmp_path / "run")
        assert len(found) == FRANZ
        assert len({label.calls for label in found}) == len(sent)
        assert all("So 0." in text for text in sent)
        for secret in ("TARGET-X", "GROUP-X", "COUNTRY-X", "ID-X"):
            assert [text for text in sent if secret in text] == []

    @pytest.mark.parametrize("question", [False, True])
    def test_the_question_goes_to_those_that_see_it(self, tmp_path: Path, question: bool) -> None:
        model = Answering()
        job = job_of(
            written(tmp_path, answers(1)),
            ("positioning", "generalizing", "maxims.manner"),
            manner=Manner(question=question),
        )
        labelled(tmp_path / "run", job, opener=opening(model))
        shown = {
            verdict_of(request).partition(".")[0]: "Why 0?" in request.all_messages[-1].text
            for request in model.asked
        }
        assert shown == {
            "positioning": question, "generalizing": question, "maxims": True,
        }  # fmt: skip


def counts_of(run: Path) -> dict[str, Any]:
    with RunDir.open(run, write=False) as opened:
        _, counts = count_labels(opened)
    return {c.note.variant or c.note.judge: c for c in counts}


class TestFailures:
    def test_what_cannot_be_read_is_asked_once_more_and_counted(
        self, file: Path, tmp_path: Path
    ) -> None:
        model = Answering(lambda r: "Hm." if r.record == "002/llama-9" else None)
        summary = labelled(tmp_path / "run", job_of(file), opener=opening(model))
        assert summary.calls == N + 1
        assert [r.attempt for r in model.asked if r.record == "002/llama-9"] == [0, 1]
        label = next(label for label in labels(tmp_path / "run") if label.item == "002/llama-9")
        assert (label.outcome, label.label, label.present) == (Outcome.UNPARSED, None, None)
        assert label.reason == "there is no label at its end"
        assert len(label.calls) == 2
        count = counts_of(tmp_path / "run")["positioning"]
        assert (count.judged, count.present, dict(count.failed), count.left) == (
            N - 1, N - 1, {Outcome.UNPARSED: 1}, 0,
        )  # fmt: skip
        assert count.as_json()["failed"] == {"unparsed": 1}
        assert count.as_json()["counts"] == {"Insider": N - 1, "Outsider": 0}
        again = Answering()
        labelled(tmp_path / "run", job_of(file), opener=opening(again))
        assert again.asked == []

    def test_a_share_of_nothing_is_undefined(self, file: Path, tmp_path: Path) -> None:
        model = Answering(lambda _: failing(Outcome.REFUSED, "filter"))
        labelled(tmp_path / "run", job_of(file), opener=opening(model))
        count = counts_of(tmp_path / "run")["positioning"]
        assert (count.share, count.as_json()["share"]) == (None, None)
        assert dict(count.failed) == {Outcome.REFUSED: N}

    def test_errors_are_asked_again_and_leave_no_trace(
        self, tmp_path: Path, undisturbed: Path, file: Path
    ) -> None:
        down = failing(Outcome.ERROR, "connection reset")
        model = Answering(lambda r: down if r.record == "004/llama-9" else None)
        labelled(tmp_path / "run", job_of(file, THREE), opener=opening(model))
        count = counts_of(tmp_path / "run")["manner"]
        assert (count.judged, dict(count.failed)) == (N - 1, {Outcome.ERROR: 1})
        summary = labelled(tmp_path / "run", job_of(file, THREE), opener=opening(helpers()))
        assert summary.calls == 3
        assert kept(tmp_path / "run") == kept(undisturbed)

    def test_a_run_stops_when_all_first_calls_fail_alike(self, tmp_path: Path) -> None:
        file = written(tmp_path, answers(200))
        model = Answering(lambda _: failing(Outcome.ERROR, "401 no such key"))
        with pytest.raises(RunStoppedError, match=r"first \d+ calls all failed alike: error: 401"):
            labelled(tmp_path / "run", job_of(file), opener=opening(model))
        assert 20 <= len(model.asked) < 40
        assert counts_of(tmp_path / "run")["positioning"].left > 150

    def test_a_response_that_failed_is_counted_and_not_judged(self, tmp_path: Path) -> None:
        rows = answers(4)
        rows[1]["response"] = None
        rows[2]["response"] = " "
        model = Answering()
        labelled(tmp_path / "run", job_of(written(tmp_path, rows)), opener=opening(model))
        assert sorted(r.record for r in model.asked) == ["000/llama-9", "003/llama-9"]
        count = counts_of(tmp_path / "run")["positioning"]
        assert (count.items, count.unanswered, count.judged, count.left) == (4, 2, 2, 0)

    @pytest.mark.parametrize("batched", [False, True])
    def test_an_item_without_a_question_is_unparsed_where_it_is_needed(
        self, tmp_path: Path, batched: bool
    ) -> None:
        """A judge that is shown no question would say something of its own about it."""
        rows = answers(2)
        rows[0]["question"] = " "
        path = written(tmp_path, rows)
        model = Answering()
        judges = ("maxims.relation", "maxims.manner", "positioning")
        job = job_of(path, judges, manner=Manner(batched=batched))
        labelled(tmp_path / "run", job, opener=opening(model))
        assert {verdict_of(r) for r in model.asked if r.record == "000/llama-9"} == {"positioning"}
        found = {label.id: label for label in labels(tmp_path / "run")}
        relation = found["000/llama-9/maxims.relation"]
        assert (relation.outcome, relation.reason) == (Outcome.UNPARSED, "the item has no question")
        assert (relation.label, relation.present, relation.calls) == (None, None, ())
        assert found["000/llama-9/positioning"].label == "Insider"
        assert found["001/llama-9/maxims.manner"].label == "CLEAR"


class Ending:
    """The helpers until the n-th call, where something ends the run."""

    def __init__(self, at: int, end: Callable[[], object]) -> None:
        self.name = "small"
        self._left = at
        self._end = end

    async def complete(self, request: Request) -> Reply:
        self._left -= 1
        if self._left == 0:
            self._end()
            await asyncio.sleep(0.01)  # where an interrupt is delivered
        return await helpers().complete(request)

    async def aclose(self) -> None:
        """Nothing to give back."""


def full_disk() -> None:
    raise StoreError("the disk is full")


def interrupt() -> None:
    os.kill(os.getpid(), signal.SIGINT)


class TestGoingOn:
    @pytest.mark.parametrize(
        ("at", "end", "error"),
        [
            (1, full_disk, StoreError),
            (9, full_disk, StoreError),
            (2, interrupt, KeyboardInterrupt),
            (ALL, interrupt, KeyboardInterrupt),
        ],
    )
    def test_only_what_is_missing_is_asked(
        self,
        tmp_path: Path,
        file: Path,
        undisturbed: Path,
        at: int,
        end: Callable[[], object],
        error: type[BaseException],
    ) -> None:
        with pytest.raises(error):
            labelled(tmp_path / "run", job_of(file, THREE), opener=opening(Ending(at, end)))
        stored, made = calls_of(tmp_path / "run")
        assert stored == made < ALL
        counts = counts_of(tmp_path / "run").values()
        assert sum(c.judged for c in counts) <= stored
        assert sum(c.left + c.judged for c in counts) == ALL
        model = Answering()
        summary = labelled(tmp_path / "run", job_of(file, THREE), opener=opening(model))
        assert len(model.asked) == summary.calls == ALL - stored
        assert kept(tmp_path / "run") == kept(undisturbed)
        assert calls_of(tmp_path / "run") == calls_of(undisturbed) == (ALL, ALL)

    def test_again_and_again(self, tmp_path: Path, file: Path, undisturbed: Path) -> None:
        for _ in range(2):
            with pytest.raises(StoreError):
                labelled(
                    tmp_path / "run", job_of(file, THREE), opener=opening(Ending(5, full_disk))
                )
        labelled(tmp_path / "run", job_of(file, THREE), opener=opening(helpers()))
        assert kept(tmp_path / "run") == kept(undisturbed)
        assert calls_of(tmp_path / "run") == (ALL, ALL)

    def test_the_same_again_makes_no_call(self, tmp_path: Path, file: Path) -> None:
        labelled(tmp_path / "run", job_of(file), opener=opening(helpers()))
        before = kept(tmp_path / "run")
        model = Answering()
        summary = labelled(tmp_path / "run", job_of(file), opener=opening(model))
        assert (summary.unchanged, summary.calls, model.asked) == (True, 0, [])
        (tmp_path / "run" / "done.json").unlink()
        summary = labelled(tmp_path / "run", job_of(file), opener=opening(model))
        assert (summary.unchanged, summary.hits, model.asked) == (False, N, [])
        assert kept(tmp_path / "run") == before

    def test_the_order_of_rows_leaves_no_trace_in_labels(
        self, tmp_path: Path, undisturbed: Path
    ) -> None:
        file = written(tmp_path, answers(N)[::-1])
        labelled(tmp_path / "run", job_of(file, THREE), opener=opening(helpers()))
        assert kept(tmp_path / "run") == kept(undisturbed)

    def test_limited_and_then_whole(self, tmp_path: Path, file: Path, undisturbed: Path) -> None:
        model = Answering()
        for limit, calls in ((2, 6), (5, 9), (3, 0), (None, 3), (2, 0)):
            job = job_of(file, THREE, limit=limit)
            summary = labelled(tmp_path / "run", job, opener=opening(model))
            assert summary.calls == calls
            assert summary.unchanged is (calls == 0)
        assert len(model.asked) == ALL
        assert kept(tmp_path / "run") == kept(undisturbed)

    def test_a_limit_holds_where_more_was_begun(self, tmp_path: Path, file: Path) -> None:
        with pytest.raises(StoreError):
            labelled(tmp_path / "run", job_of(file), opener=opening(Ending(1, full_disk)))
        model = Answering()
        labelled(tmp_path / "run", job_of(file, limit=2), opener=opening(model))
        assert [request.record for request in model.asked] == ["000/llama-9", "001/llama-9"]
        with RunDir.open(tmp_path / "run", write=False) as run:
            assert read_labelling(run).totals == {"items": N, "labels": N}
        assert counts_of(tmp_path / "run")["positioning"].left == N - 2

    def test_a_judge_is_asked_again(self, tmp_path: Path, file: Path) -> None:
        job = job_of(file, ("positioning", "generalizing"))
        labelled(tmp_path / "run", job, opener=opening(helpers()))
        model = Answering(lambda _: "They. ##Outsider## <|END|>")
        fresh = frozenset({"judge/positioning"})
        summary = labelled(tmp_path / "run", job, opener=opening(model), fresh=fresh)
        assert (summary.calls, summary.hits) == (N, N)
        found = Counter(label.label for label in labels(tmp_path / "run"))
        assert found == {"Outsider": N, "Generalizing": N}

    def test_a_fork_asks_only_what_is_new(
        self, tmp_path: Path, file: Path, undisturbed: Path
    ) -> None:
        first = job_of(file, ("positioning", "maxims.manner"))
        labelled(tmp_path / "first", first, opener=opening(helpers()))
        model = Answering()
        summary = labelled(
            tmp_path / "run", job_of(file, THREE), opener=opening(model), fork=tmp_path / "first"
        )
        assert (summary.calls, summary.hits) == (N, 2 * N)
        assert {verdict_of(r) for r in model.asked} == {"generalizing"}
        assert kept(tmp_path / "run") == kept(undisturbed)

    def test_rows_that_are_added_are_all_that_is_asked(self, tmp_path: Path, file: Path) -> None:
        labelled(tmp_path / "first", job_of(file), opener=opening(helpers()))
        more = written(tmp_path, answers(N + 3), "more.csv")
        model = Answering()
        labelled(tmp_path / "run", job_of(more), opener=opening(model), fork=tmp_path / "first")
        assert sorted(r.record for r in model.asked) == [f"{i:03}/llama-9" for i in range(N, N + 3)]


JUDGE = GOOD.replace("sees: [response]", "sees: [question, response]")
SHOWN = PROMPT.replace("{{response", "{{question}}\n{{response")


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a judge of its own, ``framing``, that runs are made in."""
    folder = tmp_path / "judges" / "framing"
    folder.mkdir(parents=True)
    (folder / "judge.yaml").write_text(JUDGE, encoding="utf-8")
    (folder / "prompt.md").write_text(SHOWN, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two answers and a run that labelled them."""
    folder = tmp_path_factory.mktemp("finished")
    job = job_of(written(folder, answers(2)), ("positioning", "maxims"))
    labelled(folder / "run", job, opener=opening(helpers()))
    return folder


class TestConfiguration:
    @pytest.mark.parametrize(
        ("changes", "field"),
        [
            ({"seed": 2}, "seed: 0 -> 2"),
            ({"manner": Manner(form="json")}, 'judges.0.form: "sentinel" -> "json"'),
            ({"manner": Manner(question=True)}, "judges.0.question: false -> true"),
            ({"manner": Manner(temperature=0.0)}, "judges.1.temperature: 0.7 -> 0"),
            ({"manner": Manner(max_tokens=9)}, "judges.0.max_tokens: 512 -> 9"),
            ({"manner": Manner(batched=True)}, "judges.1.batched: false -> true"),
            ({"models": {"other": REAL}}, 'judges.0.model: "small" -> "other"'),
            ({"models": {"small": MADE_UP}}, 'models.small.backend: "local" -> "scripted"'),
            ({"judges": ("positioning",)}, 'judges.1.judge: "maxims" -> (not set)'),
            ({"judges": ("positioning", "maxims.manner")}, "judges.1.variants.0: "),
            ({"judges": ("positioning", "maxims", "safety")}, "judges.2.judge: "),
        ],
        ids=str,
    )
    def test_a_change_is_refused_with_its_field(
        self, finished: Path, changes: dict[str, Any], field: str
    ) -> None:
        before = kept(finished / "run")
        model = Answering()
        job = job_of(finished / "answers.jsonl", **{"judges": ("positioning", "maxims"), **changes})
        with pytest.raises(ConfigChangedError) as caught:
            labelled(finished / "run", job, opener=opening(model))
        assert f"\n  {field}" in str(caught.value)
        assert "--fork" in str(caught.value)
        assert (kept(finished / "run"), model.asked) == (before, [])

    @pytest.mark.parametrize(
        ("file", "old", "new"),
        [
            ("judge.yaml", "Unclear", "Vague"),
            ("judge.yaml", "present: [Generalizing]", "present: [Unclear]"),
            ("prompt.md", "You judge.", "You judge well."),
        ],
    )
    def test_a_changed_judge_is_refused(
        self, workspace: Path, file: str, old: str, new: str
    ) -> None:
        source = written(workspace, answers(2))
        labelled(workspace / "run", job_of(source, ("framing",)), opener=opening(helpers()))
        path = workspace / "judges" / "framing" / file
        text = path.read_text("utf-8")
        assert old in text
        path.write_text(text.replace(old, new), encoding="utf-8")
        with pytest.raises(ConfigChangedError, match=r"\n  judges\.0\.content: "):
            labelled(workspace / "run", job_of(source, ("framing",)), opener=opening(helpers()))

    def test_what_people_call_a_judge_may_change(self, workspace: Path) -> None:
        source = written(workspace, answers(2))
        labelled(workspace / "run", job_of(source, ("framing",)), opener=opening(helpers()))
        path = workspace / "judges" / "framing" / "judge.yaml"
        path.write_text(JUDGE.replace("Framing of the", "The framing of an"), encoding="utf-8")
        job = job_of(source, ("framing",))
        assert labelled(workspace / "run", job, opener=opening(helpers())).unchanged

    @pytest.mark.parametrize("row", [{"response": "x"}, {"country": "x"}, {"id": "x"}], ids=str)
    def test_changed_answers_are_refused(self, tmp_path: Path, row: dict[str, str]) -> None:
        file = written(tmp_path, answers(2))
        labelled(tmp_path / "run", job_of(file), opener=opening(helpers()))
        written(tmp_path, [*answers(1), {**answers(2)[1], **row}])
        with pytest.raises(ConfigChangedError, match=r"\n  items: "):
            labelled(tmp_path / "run", job_of(file), opener=opening(helpers()))

    def test_the_file_may_be_another_form_of_the_same(self, tmp_path: Path) -> None:
        labelled(tmp_path / "run", job_of(written(tmp_path, answers(2))), opener=opening(helpers()))
        other = job_of(written(tmp_path, answers(2), "moved.csv"))
        assert labelled(tmp_path / "run", other, opener=opening(helpers())).unchanged

    @pytest.mark.parametrize(
        "changes", [{"concurrency": 9}, {"timeout": 5}, {"retries": 0}], ids=str
    )
    def test_what_changes_no_answer_may_change(
        self, tmp_path: Path, changes: dict[str, Any]
    ) -> None:
        file = written(tmp_path, answers(2))
        labelled(tmp_path / "run", job_of(file), opener=opening(helpers()))
        models = {"small": REAL.model_copy(update=changes)}
        job = job_of(file, models=models)
        assert labelled(tmp_path / "run", job, opener=opening(helpers())).unchanged

    def test_models_that_make_answers_up_are_told(self, tmp_path: Path) -> None:
        file = written(tmp_path, answers(2))
        models = {"small": REAL, "fake": MADE_UP}
        job = job_of(file, ("positioning", "generalizing"), models, own={"generalizing": "fake"})
        labelled(tmp_path / "run", job, opener=opening(helpers()))
        with RunDir.open(tmp_path / "run", write=False) as run:
            assert read_labelling(run).made_up == ("fake",)

    @pytest.mark.parametrize("text", [b"", b"[]", b'{"origin": 1}'], ids=repr)
    def test_a_damaged_note_is_told(self, tmp_path: Path, undisturbed: Path, text: bytes) -> None:
        labelled(tmp_path / "run", job_of(written(tmp_path, answers(1))), opener=opening(helpers()))
        (tmp_path / "run" / "labelling.json").write_bytes(text)
        with pytest.raises(StoreError, match=r"labelling\.json is damaged \(.*\); judge again"):
            open_source(tmp_path / "run")

    def test_a_run_of_something_else_holds_no_labels(self, tmp_path: Path) -> None:
        with (
            RunDir.create(tmp_path / "run", {"kind": "other"}) as run,
            pytest.raises(StoreError, match="holds no labels; `habitus judge` makes them"),
        ):
            read_labelling(run)


class TestTasks:
    @pytest.mark.parametrize(
        ("judges", "own", "default", "manner", "message"),
        [
            (["positioning"], {"safety": "m"}, "m", Manner(), "'safety', which is not among"),
            (
                ["positioning", "generalizing", "safety"],
                {"generalizing": "m"},
                "",
                Manner(),
                "no model is given for positioning, safety: add --model MODEL for all",
            ),
            (["maxims"], {}, "m", Manner(question=True), "none of these judges can be shown the q"),
            (["maxims"], {}, "m", Manner("sentinel", batched=True), "always answered in JSON"),
            (["positioning"], {}, "m", Manner(batched=True), "none of these judges has variants"),
            (["maxims.manner"], {}, "m", Manner(batched=True), "none of these judges has variants"),
            (["safety"], {}, "m", Manner("sentinel"), "judge safety answers as json only"),
        ],
    )
    def test_what_cannot_be_asked_is_refused(
        self,
        judges: list[str],
        own: dict[str, str],
        default: str,
        manner: Manner,
        message: str,
    ) -> None:
        with pytest.raises(UsageError, match=message):
            make_tasks(choose(judges), own, default, manner)

    def test_a_judge_without_a_batch_prompt_says_so(self, tmp_path: Path) -> None:
        folder = tmp_path / "judges" / "warmth"
        folder.mkdir(parents=True)
        variants = (
            'variants: [{id: a, name: a, definition: "A."}, {id: b, name: b, definition: "B."}]\n'
        )
        (folder / "judge.yaml").write_text(GOOD.replace("framing", "warmth") + variants, "utf-8")
        (folder / "prompt.md").write_text("{{name}} {{definition}}\n" + "{{response}}", "utf-8")
        members = choose(["warmth"], tmp_path)
        with pytest.raises(UsageError, match=r"warmth cannot be asked .* no batch\.md beside its"):
            make_tasks(members, {}, "m", Manner(batched=True))

    def test_judges_named_twice_are_asked_once(self) -> None:
        members = choose(["maxims.manner", "positioning", "maxims.quality", "franz", "positioning"])
        names = {judge.file.id: variants for judge, variants in members}
        assert list(names) == ["maxims", "positioning", "generalizing", "anthropomorphism"]
        assert names["maxims"] == ("manner", "quality", "quantity", "relation")

    @pytest.mark.parametrize(
        ("name", "message"),
        [
            ("frans", "no judge or set of judges called 'frans'; did you mean 'franz'"),
            ("maxims.maner", "no variant of judge maxims called 'maner'; did you mean 'manner'"),
            ("positioning.x", "no variant of judge positioning called 'x'"),
            ("none/judge.yaml", "none/judge.yaml: cannot be read"),
            ("none.yaml", "none.yaml: cannot be read"),
            ("", "no judge or set of judges called ''"),
        ],
    )
    def test_a_name_that_leads_nowhere(self, name: str, message: str) -> None:
        with pytest.raises(HabitusError, match=message):
            choose([name])

    def test_a_judge_and_a_set_by_their_path(self, workspace: Path) -> None:
        path = workspace / "judges" / "framing" / "judge.yaml"
        ((judge, variants),) = choose([str(path)])
        assert (judge.file.id, variants) == ("framing", ("",))
        set_ = workspace / "mine.yaml"
        set_.write_text(
            "id: mine\nname: Mine\njudges: [{judge: maxims, variants: [manner]}]\n", "utf-8"
        )
        ((judge, variants),) = choose([str(set_)])
        assert (judge.file.id, variants) == ("maxims", ("manner",))
