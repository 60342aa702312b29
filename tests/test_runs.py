"""Runs: the same bytes whatever happens on the way, and nothing that was answered asked again."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from habitus.errors import ConfigChangedError, HabitusError, ModelError, RunLockedError, StoreError
from habitus.experiments import (
    RunRequest,
    Stage,
    read_materials,
    run_experiment,
    run_results,
)
from habitus.models import ChatModel
from habitus.records import Outcome, Reply, Request, StageRecord
from habitus.running import RunStoppedError, RunSummary
from habitus.store import RunDir
from labelling_fixture import answers, written
from study_fixture import (
    FAST,
    Answering,
    Shuffled,
    calls_of,
    contents,
    failing,
    harbour,
    helpers,
    killed_run,
    opening,
    set_options,
    study_of,
    terminal_in,
)

ENGINE = Path(__file__).parents[1] / "engine"


def run(
    folder: Path,
    changes: Mapping[str, Any] | None = None,
    model: ChatModel | None = None,
    **request: Any,
) -> RunSummary:
    """Run the small study of a folder into ``folder/run``."""
    if model is not None:
        request["opener"] = opening(model)
    request.setdefault("out", folder / "run")
    return run_experiment(study_of(folder, changes), RunRequest(**request))


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of the small study that nothing happened to."""
    folder = tmp_path_factory.mktemp("undisturbed")
    run(folder)
    return folder / "run"


class TestSameBytes:
    @pytest.mark.parametrize("seed", [1, 2])
    def test_whatever_the_order_of_answers(
        self, tmp_path: Path, undisturbed: Path, seed: int
    ) -> None:
        run(tmp_path, model=Shuffled(seed))
        assert contents(tmp_path / "run") == contents(undisturbed)
        assert set(contents(undisturbed)) == {
            "attempts.jsonl", "evaluations.jsonl", "histories.jsonl", "recommendations.jsonl",
            "responses.jsonl", "results.json",
        }  # fmt: skip

    def test_another_seed_gives_others(self, tmp_path: Path, undisturbed: Path) -> None:
        run(tmp_path, {"seed": 2})
        assert contents(tmp_path / "run") != contents(undisturbed)

    def test_in_parts(self, tmp_path: Path, undisturbed: Path) -> None:
        for request in (
            {"until": Stage.HISTORIES},
            {"until": Stage.RESPONSES, "limit": 1},
            {"limit": 1},
            {},
        ):
            summary = run(tmp_path, **request)
            assert not summary.unchanged
        assert contents(tmp_path / "run") == contents(undisturbed)
        assert calls_of(tmp_path / "run") == calls_of(undisturbed)


class TestGoingOn:
    def test_a_second_run_makes_no_call(self, tmp_path: Path, undisturbed: Path) -> None:
        shutil.copytree(undisturbed, tmp_path / "run")
        model = Answering()
        summary = run(tmp_path, model=model)
        assert (summary.unchanged, summary.calls, model.asked) == (True, 0, [])
        assert contents(tmp_path / "run") == contents(undisturbed)

    def test_without_the_note_that_all_is_done_every_answer_is_found(
        self, tmp_path: Path, undisturbed: Path
    ) -> None:
        shutil.copytree(undisturbed, tmp_path / "run")
        (tmp_path / "run" / "done.json").unlink()
        model = Answering()
        summary = run(tmp_path, model=model)
        assert (summary.unchanged, summary.calls, model.asked) == (False, 0, [])
        assert summary.hits == calls_of(undisturbed)[0]
        assert contents(tmp_path / "run") == contents(undisturbed)

    @pytest.mark.parametrize("note", [b"", b"{", b"[]", b'{"stage": 4}', b'"done"'], ids=str)
    def test_a_damaged_note_is_no_note(
        self, tmp_path: Path, undisturbed: Path, note: bytes
    ) -> None:
        shutil.copytree(undisturbed, tmp_path / "run")
        (tmp_path / "run" / "done.json").write_bytes(note)
        summary = run(tmp_path)
        assert (summary.unchanged, summary.calls) == (False, 0)
        assert contents(tmp_path / "run") == contents(undisturbed)

    @pytest.mark.parametrize(
        ("at", "where"),
        [(40, "call"), (20, "record"), (1, "end")],
    )
    def test_killed_and_begun_again(
        self, tmp_path: Path, undisturbed: Path, at: int, where: str
    ) -> None:
        harbour(tmp_path)
        assert killed_run(tmp_path, at, where) == -signal.SIGKILL
        stored, _ = calls_of(tmp_path / "run")
        assert (stored > 0) == (where != "call" or at > 20)
        model = Answering()
        run(tmp_path, model=model)
        assert contents(tmp_path / "run") == contents(undisturbed)
        total = calls_of(undisturbed)[0]
        assert calls_of(tmp_path / "run") == (total, total)
        assert len(model.asked) == total - stored

    def test_killed_again_and_again(self, tmp_path: Path, undisturbed: Path) -> None:
        harbour(tmp_path)
        for at in (15, 10):
            assert killed_run(tmp_path, at, "call") == -signal.SIGKILL
        run(tmp_path)
        assert contents(tmp_path / "run") == contents(undisturbed)
        total = calls_of(undisturbed)[0]
        assert calls_of(tmp_path / "run") == (total, total)

    @pytest.mark.parametrize(
        "role", ["assistant", "verifier", "recommender", "target", "evaluator"]
    )
    def test_errors_are_asked_again_and_leave_no_trace(
        self, tmp_path: Path, undisturbed: Path, role: str
    ) -> None:
        """Also not in the attempts: one that was made only since another failed is forgotten."""
        down = failing(Outcome.ERROR, "connection reset")

        def script(request: Request) -> Reply | None:
            first = request.attempt == 0
            return down if first and request.context.get("role") == role else None

        run(tmp_path, model=Answering(script))
        assert contents(tmp_path / "run") != contents(undisturbed)
        summary = run(tmp_path)
        assert summary.calls > 0
        assert max(summary.failed_shares.values()) == 0
        assert contents(tmp_path / "run") == contents(undisturbed)

    @pytest.mark.parametrize("outcome", [Outcome.REFUSED, Outcome.TRUNCATED, Outcome.OVERFLOW])
    def test_other_failures_are_answers_and_stay(self, tmp_path: Path, outcome: Outcome) -> None:
        script: Callable[[Request], Reply | None] = lambda r: (  # noqa: E731
            failing(outcome) if r.context.get("role") == "target" else None
        )
        run(tmp_path, model=Answering(script))
        summary = run(tmp_path)
        assert (summary.calls, summary.unchanged) == (0, True)
        assert summary.failed_shares["responses"] == 1

    def test_a_run_that_was_moved(self, tmp_path: Path, undisturbed: Path) -> None:
        shutil.copytree(undisturbed, tmp_path / "elsewhere" / "moved")
        summary = run(tmp_path, out=tmp_path / "elsewhere" / "moved")
        assert summary.unchanged

    def test_one_process_at_a_time(self, tmp_path: Path, undisturbed: Path) -> None:
        shutil.copytree(undisturbed, tmp_path / "run")
        with (
            RunDir.open(tmp_path / "run"),
            pytest.raises(RunLockedError, match=f"process {os.getpid()} is working on this run"),
        ):
            run(tmp_path)


class TestConfiguration:
    @pytest.mark.parametrize(
        ("changes", "field"),
        [
            ({"seed": 2}, "seed: 1 -> 2"),
            ({"targets.main.temperature": 0.1}, "targets.main.temperature: 0.7 -> 0.1"),
            ({"targets.new": {"model": "main"}}, "targets.new.model: "),
            ({"none": "per_persona"}, "none: "),
            ({"repeats": 2}, "repeats: 1 -> 2"),
            ({"personas": 3}, "personas: 2 -> 3"),
            ({"history.exchanges": [2, 3]}, "history.exchanges.1: 2 -> 3"),
            ({"models.main.options.shown": 0.5}, "models.main.options.shown: "),
            ({"settings": ["none", "hist", "ccot"]}, 'settings.3: "norms" -> (not set)'),
            ({"filter.attempts": 2}, "filter.attempts: 3 -> 2"),
        ],
        ids=str,
    )
    def test_a_change_is_refused_with_its_field(
        self, tmp_path: Path, undisturbed: Path, changes: dict[str, Any], field: str
    ) -> None:
        shutil.copytree(undisturbed, tmp_path / "run")
        with pytest.raises(ConfigChangedError) as caught:
            run(tmp_path, changes)
        assert f"\n  {field}" in str(caught.value)
        assert contents(tmp_path / "run") == contents(undisturbed)

    @pytest.mark.parametrize(
        "changes",
        [
            {"title": "Another title"},
            {"limits.failures": None, "limits.personas_at_once": 1, "limits.alike": 3},
            {"models.main.concurrency": 99, "models.main.timeout": 1, "models.main.retries": 0},
            {"models.main.price": {"input": 1, "output": 2, "currency": "EUR"}},
            {"results.draws": 101, "results.level": 0.5, "results.missing": "not_satisfied"},
        ],
        ids=",".join,
    )
    def test_what_may_change_makes_no_call(
        self, tmp_path: Path, undisturbed: Path, changes: dict[str, Any]
    ) -> None:
        shutil.copytree(undisturbed, tmp_path / "run")
        assert run(tmp_path, changes).unchanged
        (tmp_path / "run" / "done.json").unlink()
        assert run(tmp_path, changes).calls == 0
        found, before = contents(tmp_path / "run"), contents(undisturbed)
        assert (found["results.json"] == before["results.json"]) == ("results.draws" not in changes)
        found.pop("results.json"), before.pop("results.json")
        assert found == before

    def test_an_endpoint_may_change(self, tmp_path: Path) -> None:
        def remote(port: int) -> dict[str, Any]:
            url = f"http://127.0.0.1:{port}/v1"
            return {"models.far": {"backend": "openai", "model": "m", "base_url": url}}

        run(tmp_path, remote(1), limit=1)
        assert run(tmp_path, remote(2), limit=1).unchanged
        with RunDir.open(tmp_path / "run", write=False) as opened:
            assert opened.config["models"]["far"]["base_url"] == "http://127.0.0.1:2/v1"

    @pytest.mark.parametrize(
        ("file", "old", "new"),
        [
            ("norms/health/harbour.yaml", "Thrift", "Care with money"),
            ("checklists/harbour.yaml", "the fish hall", "the market"),
            ("personas/openers/harbour.yaml", "since the weekend", "since Monday"),
            ("experiments/settings/hist.yaml", "then the query", "and then the query"),
            ("personas/prompts/persona.md", "You are playing", "Play"),
            ("judges/history_verifier/lexicon.yaml", "i am {demonym}", "i was {demonym}"),
        ],
    )  # fmt: skip
    def test_a_changed_file_is_refused_by_name(
        self, tmp_path: Path, undisturbed: Path, file: str, old: str, new: str
    ) -> None:
        from habitus.content import shipped_root

        shutil.copytree(undisturbed, tmp_path / "run")
        harbour(tmp_path)
        path = tmp_path / file
        text = (path if path.exists() else shipped_root() / file).read_text(encoding="utf-8")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        assert run(tmp_path).unchanged
        assert old in text
        path.write_text(text.replace(old, new), encoding="utf-8")
        with pytest.raises(ConfigChangedError, match=f'content."{file}"'):
            run(tmp_path)


class TestFork:
    def test_takes_the_answers_that_still_hold(self, tmp_path: Path, undisturbed: Path) -> None:
        changes = {"targets.main.temperature": 0.1}
        forked = run(tmp_path, changes, fork=undisturbed)
        fresh = tmp_path / "fresh"
        run(tmp_path, changes, out=fresh)
        assert contents(tmp_path / "run") == contents(fresh)
        responses = 2 + 3 * 2 * 2
        assert 0 < forked.calls <= 2 * responses + 2 * 2  # responses, and what judges them anew
        assert forked.hits > 0

    def test_the_same_command_goes_on(self, tmp_path: Path, undisturbed: Path) -> None:
        changes = {"targets.main.temperature": 0.1}
        run(tmp_path, changes, fork=undisturbed, limit=1)
        again = run(tmp_path, changes, fork=undisturbed)
        assert again.hits > 0
        assert not again.unchanged

    def test_a_run_is_no_fork_of_itself(self, tmp_path: Path, undisturbed: Path) -> None:
        shutil.copytree(undisturbed, tmp_path / "run")
        with pytest.raises(StoreError, match="--out"):
            run(tmp_path, {"seed": 2}, fork=tmp_path / "run")

    def test_of_nothing(self, tmp_path: Path) -> None:
        with pytest.raises(StoreError, match="there is no run at"):
            run(tmp_path, fork=tmp_path / "nothing")
        assert not (tmp_path / "run").exists()


class TestEndings:
    def test_a_model_that_cannot_be_opened_leaves_no_run(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Or the mended file would be refused as another configuration."""
        monkeypatch.delenv("HABITUS_TEST_KEY", raising=False)
        far = {
            "models.far": {
                "backend": "openai",
                "model": "m",
                "base_url": "http://127.0.0.1:1/v1",
                "api_key_env": "HABITUS_TEST_KEY",
            },
            "targets.far": {"model": "far"},
        }
        with pytest.raises(ModelError, match="HABITUS_TEST_KEY"):
            run(tmp_path, far)
        assert not (tmp_path / "run").exists()
        assert run(tmp_path).calls > 0

    def test_a_run_stops_when_all_first_calls_fail_alike(self, tmp_path: Path) -> None:
        model = Answering(lambda r: failing(Outcome.ERROR, "401 no such key"))
        with pytest.raises(RunStoppedError, match="401 no such key") as caught:
            run(tmp_path, {"limits.alike": 5}, model)
        assert caught.value.exit_code == 1
        assert len(model.asked) < 30
        assert run(tmp_path, {"limits.alike": 5}).calls > 0

    @pytest.mark.parametrize("policy", ["resimulate", "report_only"])
    @pytest.mark.parametrize(
        "role", ["persona", "assistant", "verifier", "recommender", "target", "evaluator"]
    )
    def test_whichever_role_fails_alike_the_run_stops(
        self, tmp_path: Path, role: str, policy: str
    ) -> None:
        """Also a verifier whose findings are only recorded, and a model that plays other roles."""
        words = "400 the field is \x1b[31munknown"
        model = Answering(
            lambda r: failing(Outcome.ERROR, words) if r.context["role"] == role else None
        )
        changes = {"limits.alike": 4, "filter.policy": policy, "personas": 4}
        with pytest.raises(RunStoppedError, match=r"first \d+ calls all failed alike") as caught:
            run(tmp_path, changes, model)
        assert words in str(caught.value)
        assert len(model.of(role)) >= 4

    def test_a_full_disk_is_one_message_and_keeps_what_there_is(self, tmp_path: Path) -> None:
        class Full(Answering):
            async def complete(self, request: Request) -> Reply:
                if request.context["role"] == "evaluator":
                    raise StoreError("the disk is full")
                return await super().complete(request)

        with pytest.raises(HabitusError, match="the disk is full"):
            run(tmp_path, model=Full())
        assert (tmp_path / "run" / "records" / "responses.jsonl").stat().st_size
        assert max(run(tmp_path).failed_shares.values()) == 0

    def test_unreadable_verdicts_are_failures_though_their_calls_are_not(
        self, tmp_path: Path
    ) -> None:
        model = Answering(lambda r: "Fine." if r.context["role"] == "evaluator" else None)
        summary = run(tmp_path, model=model)
        assert summary.failed_shares["calls"] == 0
        assert summary.failed_shares["evaluations"] == 1
        assert summary.failed_shares["responses"] == 0

    def test_attempts_that_were_made_up_for_are_no_failures(self, tmp_path: Path) -> None:
        def script(request: Request) -> str | None:
            first = request.record.endswith("/a0")
            return "Once." if first and request.context["role"] == "dialogue" else None

        summary = run(tmp_path, {"history.form": "single_call"}, Answering(script))
        assert summary.records["attempts"] == {Outcome.OK: 2, Outcome.UNPARSED: 2}
        assert max(summary.failed_shares.values()) == 0


PLANTED = '{backend: scripted, model: m, options: {rules: [{reply: "##Insider## <|END|>"}]}}'


class TestInterrupt:
    def test_ctrl_c(
        self,
        tmp_path: Path,
        undisturbed: Path,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        terminal = terminal_in(tmp_path, monkeypatch, capsys)
        harbour(tmp_path)
        slow = {**FAST, "models.main.options.delay": 0.05}
        words = ["run", "first", *set_options(slow), "--out", "my run"]
        process = subprocess.Popen(
            [sys.executable, "-m", "habitus", *words],
            env={**os.environ, "PYTHONPATH": str(ENGINE)},
            stderr=subprocess.PIPE,
            encoding="utf-8",
        )
        self.wait_for_calls(process, tmp_path / "my run")
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
        assert process.returncode == 130
        assert "To go on: habitus run first --out 'my run' --set " in err
        assert err.endswith("--set models.main.options.delay=0.05\n")
        assert "Traceback" not in err
        stored, made = calls_of(tmp_path / "my run")
        assert 0 < stored == made < calls_of(undisturbed)[0]
        assert list((tmp_path / "my run" / "records").glob("*.jsonl"))
        code, _, err = terminal(*words)
        assert code == 0, err
        assert f"{stored} answers were stored already" in err
        assert calls_of(tmp_path / "my run") == calls_of(undisturbed)

    @pytest.mark.parametrize(
        ("shown", "words"),
        [
            ("habitus.cli.results.print_main_table", ["run", "first", *set_options(FAST)]),
            (
                "habitus.cli.judge.print_labels",
                ["judge", "answers.jsonl", "--judges", "positioning", "--model", PLANTED],
            ),
        ],
        ids=["run", "judge"],
    )
    def test_while_results_are_shown_the_way_on_is_told_as_well(
        self,
        shown: str,
        words: list[str],
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        terminal = terminal_in(tmp_path, monkeypatch, capsys)
        harbour(tmp_path)
        written(tmp_path, answers(2))

        def interrupted(*_: object, **__: object) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr(shown, interrupted)
        code, _, err = terminal(*words, "--out", "run")
        assert (code, "To go on: " in err) == (130, True)

    def test_where_python_forgets_it_it_counts(self) -> None:
        """What is raised in a destructor is reported and dropped: the run would go on."""
        program = """
import signal, sys, time
from types import SimpleNamespace
from habitus.cli import main
from habitus.cli.root import new_app

class Ended:
    def __del__(self):
        signal.raise_signal(signal.SIGINT)

app = new_app("")

@app.command()
def long():
    Ended()
    for _ in range(500):
        time.sleep(0.01)

sys.modules["habitus.cli.check"] = SimpleNamespace(app=app)
sys.argv = ["habitus", "check"]
main()
"""
        env = {**os.environ, "PYTHONPATH": str(ENGINE)}
        ended = subprocess.run(
            [sys.executable, "-c", program],
            check=False,
            env=env,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert (ended.returncode, ended.stdout, ended.stderr.strip()) == (130, "", "")

    def wait_for_calls(self, process: subprocess.Popen[str], out: Path) -> None:
        """Wait until the run has an answer on the disk."""
        while process.poll() is None:
            if (out / "manifest.json").exists() and calls_of(out)[0] > 4:
                return
            time.sleep(0.01)
        pytest.fail(f"the run ended by itself: {process.communicate()}")


class Reading:
    """An observer that reads the run as other processes may, at every record."""

    def __init__(self, look: Callable[[Path], None]) -> None:
        self.look = look
        self.path = Path()

    def begin(self, run: RunDir, models: Mapping[str, Any]) -> None:
        self.path = run.path
        self.look(self.path)

    def put(self, table: str, record: StageRecord) -> None:
        self.look(self.path)

    def end(self) -> None:
        self.look(self.path)


class TestReading:
    def test_while_the_run_goes_on(
        self,
        tmp_path: Path,
        undisturbed: Path,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        terminal = terminal_in(tmp_path, monkeypatch, capsys)
        left: list[int] = []

        def look(path: Path) -> None:
            found = terminal.json("status", str(path), "--json")
            left.append(sum(stage["left"] for stage in found["stages"]))
            if len(left) % 10 == 1:
                terminal.json("results", str(path), "--json")

        request = RunRequest(out=tmp_path / "run")
        run_experiment(study_of(tmp_path), request, Reading(look))
        assert left == sorted(left, reverse=True)
        assert (left[0] > 0, left[-1]) == (True, 0)
        assert contents(tmp_path / "run") == contents(undisturbed)

    def test_results_are_those_that_were_written(self, undisturbed: Path) -> None:
        with RunDir.open(undisturbed, write=False) as opened:
            assert run_results(opened).json_bytes() == (undisturbed / "results.json").read_bytes()

    def test_a_run_needs_none_of_the_files_it_was_made_from(self, undisturbed: Path) -> None:
        with RunDir.open(undisturbed, write=False) as opened:
            kept = read_materials(opened)
        assert kept.personas["harbour-01"].states["harbour_4"] == -1
        assert kept.queries["harbour-002"].text.startswith("since they changed my shift")
        assert kept.counts.responses == 2 + 3 * 2 * 2


class TestReplay:
    def test_answers_come_from_the_stored_run_and_stay_synthetic(
        self, tmp_path: Path, undisturbed: Path
    ) -> None:
        model = {"backend": "replay", "options": {"run": str(undisturbed)}}
        summary = run(tmp_path, {"models.main": model})
        assert max(summary.failed_shares.values()) == 0
        with (
            RunDir.open(tmp_path / "run", write=False) as replayed,
            RunDir.open(undisturbed, write=False) as first,
        ):
            found, before = run_results(replayed), run_results(first)
        assert found.json_bytes() == before.json_bytes()
        assert found.synthetic

    def test_what_was_not_asked_there_is_an_error(self, tmp_path: Path, undisturbed: Path) -> None:
        model = {"backend": "replay", "options": {"run": str(undisturbed)}}
        with pytest.raises(RunStoppedError, match="not in the replayed run"):
            run(tmp_path, {"models.main": model, "seed": 2, "limits.alike": 2})


class TestSynthetic:
    @pytest.mark.parametrize(
        ("scripted", "synthetic"),
        [
            ("roles.recommender.model", True),
            ("roles.evaluator.model", True),
            ("targets.main.model", True),
            (None, False),
        ],
        ids=["recommender", "evaluator", "target", "none"],
    )
    def test_results_that_rest_on_a_script_say_so(
        self, tmp_path: Path, scripted: str | None, synthetic: bool
    ) -> None:
        """Every entry answers by the helpers here; what counts is what its entry says it is."""
        roles = ("persona", "assistant", "verifier", "recommender", "evaluator")
        changes: dict[str, Any] = {"models.real": {"backend": "local"}}
        changes |= {f"roles.{role}.model": "real" for role in roles}
        changes |= {"targets.main.model": "real"}
        if scripted:
            changes[scripted] = "main"
        request = RunRequest(out=tmp_path / "run", opener=opening(helpers()))
        run_experiment(study_of(tmp_path, changes), request)
        with RunDir.open(tmp_path / "run", write=False) as opened:
            assert run_results(opened).synthetic is synthetic
