"""Runs of other versions: earlier ones open with every command, later ones are refused and left alone.

The earlier runs were made by the commits that their archives are named after (``make.sh`` beside them).
"""

from __future__ import annotations

import json
import sqlite3
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zstandard

import habitus
from habitus.experiments import RunRequest, Stage, run_experiment
from habitus.store import RunDir
from habitus.store.canonical import digest
from study_fixture import Terminal, calls_of, set_options, study_of, terminal_in

OLD = Path(__file__).parent / "data" / "old_runs"
COMMITS = ("7ce8ddc", "4f24b56")
SET = {
    "personas": 2,
    "history.exchanges": [2, 2],
    "history.domain_sessions": 1,
    "history.everyday_sessions": 0,
    "results.draws": 100,
    "settings": ["none", "hist", "norms"],
}


@pytest.fixture
def terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Terminal:
    return terminal_in(tmp_path, monkeypatch, capsys)


def unpacked(folder: Path, commit: str) -> Path:
    with tarfile.open(OLD / f"{commit}.tar.gz") as archive:
        for member in archive:
            found = archive.extractfile(member)
            if found is not None:
                path = folder / member.name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(found.read())
    return folder


def files(folder: Path) -> dict[str, bytes]:
    """Every file below a folder; an empty lock is none."""
    found = {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}
    return {name: data for name, data in found.items() if data or name != "lock"}


class TestEarlierVersions:
    @pytest.mark.parametrize("commit", COMMITS)
    @pytest.mark.parametrize(
        "words",
        [
            ["status", "whole"],
            ["status", "part"],
            ["results", "whole"],
            ["results", "whole", "--filter"],
            ["results", "part", "--filter"],
            ["report", "whole", "--out", "report.html"],
            ["report", "part", "--out", "report.html"],
            ["view", "whole", "--plain"],
            ["view", "part", "--plain"],
        ],
        ids=" ".join,
    )
    def test_every_command_reads_them(
        self, tmp_path: Path, terminal: Terminal, commit: str, words: list[str]
    ) -> None:
        unpacked(tmp_path, commit)
        before = files(tmp_path / words[1])
        code, out, err = terminal(*words)
        assert (code, "rror" in err) == (0, False)
        assert out or words[0] == "report"
        assert files(tmp_path / words[1]) == before

    @pytest.mark.parametrize("commit", COMMITS)
    def test_nothing_of_them_counts_as_damaged(
        self, tmp_path: Path, terminal: Terminal, commit: str
    ) -> None:
        unpacked(tmp_path, commit)
        for run in ("whole", "part"):
            assert terminal.json("status", run, "--verify", "--json")["damage"] == []

    @pytest.mark.parametrize("commit", COMMITS)
    def test_what_is_made_up_is_synthetic(
        self, tmp_path: Path, terminal: Terminal, commit: str
    ) -> None:
        """The first version kept no list of who makes answers up."""
        unpacked(tmp_path, commit)
        rows = terminal.json("results", "whole", "--json")["rows"]
        assert {row["synthetic"] for row in rows} == {True}

    @pytest.mark.parametrize("commit", COMMITS)
    def test_they_go_on(self, tmp_path: Path, terminal: Terminal, commit: str) -> None:
        """Whole ones ask nothing, others what is left; both come to the same."""
        unpacked(tmp_path, commit)
        asked = {run: calls_of(tmp_path / run) for run in ("whole", "part")}
        for run in asked:
            command = ["run", "study/experiments/first.yaml", "--out", run, "--quiet"]
            code, _, err = terminal(*command, *set_options(SET))
            assert code == 0, err
        assert calls_of(tmp_path / "whole") == asked["whole"] == calls_of(tmp_path / "part")
        assert asked["part"] < asked["whole"]
        results = {(tmp_path / run / "results.json").read_bytes() for run in asked}
        assert len(results) == 1
        assert terminal.json("status", "part", "--verify", "--json")["damage"] == []

    def test_labels_are_read_and_made_anew(self, tmp_path: Path, terminal: Terminal) -> None:
        unpacked(tmp_path, "4f24b56")
        asked = calls_of(tmp_path / "labels")
        for words in (
            ["status", "labels", "--verify"],
            ["analyze", "labels"],
            ["report", "labels", "--out", "labels.html"],
            ["view", "labels", "--plain"],
        ):
            code, _, err = terminal(*words)
            assert code == 0, err
        code, _, err = terminal("export", "labels", "--to", "consensus", "--out", "c.csv")
        assert (code, "a consensus needs two or more" in err) == (2, True)
        again = ["judge", "whole", "--model", "./judge.yaml", "--judges", "positioning"]
        code, _, err = terminal(*again, "--out", "labels", "--quiet")
        assert (code, "nothing left to do" in err) == (0, True)
        assert calls_of(tmp_path / "labels") == asked

    def test_replayed_answers_are_not_taken_for_real(
        self, tmp_path: Path, terminal: Terminal
    ) -> None:
        """Where the first version left open whether they are, the way to know it is told."""
        run = unpacked(tmp_path, "7ce8ddc") / "whole"
        reconfigure(run, lambda config: config["models"]["main"].update(backend="replay"))
        code, out, err = terminal("results", "whole")
        assert (code, out) == (2, "")
        assert "give its command once more, which asks nothing" in err


def reconfigure(run: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Another configuration, as another version would have written it."""
    config = json.loads((run / "experiment.json").read_bytes())
    change(config)
    (run / "experiment.json").write_text(json.dumps(config))
    manifest = json.loads((run / "manifest.json").read_bytes())
    manifest["config"] = digest(config)
    (run / "manifest.json").write_text(json.dumps(manifest))
    (run / "digests.json").unlink(missing_ok=True)


def setting(*keys: str, to: object) -> Callable[[Path], None]:
    def change(config: dict[str, Any]) -> None:
        for key in keys[:-1]:
            config = config[key]
        config[keys[-1]] = to

    return lambda run: reconfigure(run, change)


def executing(statement: str) -> Callable[[Path], None]:
    def change(run: Path) -> None:
        database = sqlite3.connect(run / "run.sqlite")
        database.executescript(statement)
        database.close()

    return change


def with_field(table: str, path: tuple[str, ...] = ()) -> Callable[[Path], None]:
    """The last record of a table gets a field, or what is nested in it does."""

    def change(run: Path) -> None:
        database = sqlite3.connect(run / "run.sqlite")
        sql = "SELECT rowid, body FROM records WHERE stage = ? ORDER BY id DESC LIMIT 1"
        row, body = database.execute(sql, (table,)).fetchone()
        record = json.loads(zstandard.decompress(body))
        part = record
        for key in path:
            part = part[key][0] if isinstance(part[key], list) else part[key]
        part["mood"] = "calm"
        body = zstandard.compress(json.dumps(record).encode())
        database.execute("UPDATE records SET body = ? WHERE rowid = ?", (body, row))
        database.commit()
        database.close()

    return change


def newer_manifest(run: Path) -> None:
    manifest = json.loads((run / "manifest.json").read_bytes())
    (run / "manifest.json").write_text(json.dumps({**manifest, "store": 2}))


NEWER: dict[str, tuple[Callable[[Path], None], str]] = {
    "format of the manifest": (newer_manifest, "store format 2"),
    "format of the database": (executing("PRAGMA user_version=2"), "store format 2"),
    "table": (executing("CREATE TABLE moods (id TEXT)"), "has moods.id"),
    "column": (executing("ALTER TABLE kinds ADD COLUMN mood TEXT"), "has kinds.mood"),
    "records": (
        executing("INSERT INTO records VALUES ('moods', 'a', 'ok', '', x'00')"),
        "holds records of moods",
    ),
    "field of a record": (with_field("responses"), "mood: Extra inputs"),
    "nested field": (with_field("evaluations", ("verdicts",)), "verdicts.0.mood: Extra"),
    "key": (setting("mood", to=1), "has the key mood"),
    "key of limits": (setting("limits", "mood", to=1), "has the key limits.mood"),
    "key of results": (setting("results", "mood", to=1), "has the key results.mood"),
    "key of a model": (setting("models", "main", "mood", to=1), "has the key models.main.mood"),
    "key of quirks": (setting("models", "main", "quirks", "mood", to=1), "main.quirks.mood"),
    "word": (setting("overflow", to="summarise"), "has the key overflow"),
}
OF_RECORDS = {"field of a record", "nested field"}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small run, whole, and its workspace."""
    folder = tmp_path_factory.mktemp("made")
    run_experiment(study_of(folder, SET), RunRequest(out=folder / "run"))
    return folder


def copied(made: Path, folder: Path) -> Path:
    for name, data in files(made).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return folder / "run"


class TestLaterVersions:
    @pytest.mark.parametrize("what", NEWER)
    def test_they_are_refused_with_what_to_do_and_left_as_they_are(
        self, tmp_path: Path, terminal: Terminal, made: Path, what: str
    ) -> None:
        run = copied(made, tmp_path)
        change, words = NEWER[what]
        change(run)
        before = files(run)
        command = ["run", "experiments/first.yaml", "--out", "run", "--quiet", "--limit", "1"]
        for given in (
            [*command, *set_options(SET)],
            ["results", "run"],
            ["report", "run", "--out", "report.html"],
            ["status", "run"],
            ["view", "run", "--plain"],
        ):
            if what in OF_RECORDS and given[0] in {"status", "view", "results", "report"}:
                continue  # they need not read that record
            code, out, err = terminal(*given)
            assert (code, out) == (2, ""), given
            assert words in err
            assert "use the version that" in err
            assert len(err.strip().splitlines()) <= 2
            assert files(run) == before, given

    @pytest.mark.parametrize("what", OF_RECORDS)
    def test_who_reads_such_a_record_says_so(
        self, tmp_path: Path, terminal: Terminal, made: Path, what: str
    ) -> None:
        run = copied(made, tmp_path)
        NEWER[what][0](run)
        words = ["judge", "run", "--model", "{backend: scripted, options: {script: helpers}}"]
        code, out, err = (
            terminal(*words) if what == "field of a record" else terminal("results", "run")
        )
        assert (code, out) == (2, "")
        assert NEWER[what][1] in err
        assert "use the version that wrote the run (manifest.json names it), or a newer one" in err

    @pytest.mark.parametrize("what", ["key", "records", "table"])
    def test_labels_too(self, tmp_path: Path, terminal: Terminal, what: str) -> None:
        unpacked(tmp_path, "4f24b56")
        NEWER[what][0](tmp_path / "labels")
        before = files(tmp_path / "labels")
        judge = ["judge", "whole", "--model", "./judge.yaml", "--judges", "positioning"]
        for given in (
            ["analyze", "labels"],
            [*judge, "--out", "labels", "--quiet", "--limit", "1"],
        ):
            code, out, err = terminal(*given)
            assert (code, out) == (2, ""), given
            assert "use the version that" in err
            assert files(tmp_path / "labels") == before

    def test_a_record_in_the_middle_is_found_where_another_version_wrote(
        self, tmp_path: Path, terminal: Terminal, made: Path
    ) -> None:
        run = copied(made, tmp_path)
        with_field("responses")(run)
        executing(
            "INSERT INTO records SELECT stage, 'zz' || id, outcome, reason, body FROM records "
            "WHERE stage = 'responses' ORDER BY id LIMIT 1"
        )(run)
        manifest = json.loads((run / "manifest.json").read_bytes())
        manifest["sessions"].append({**manifest["sessions"][0], "habitus": "9.0.0"})
        (run / "manifest.json").write_text(json.dumps(manifest))
        before = files(run)
        command = ["run", "experiments/first.yaml", "--out", "run", "--quiet"]
        code, _, err = terminal(*command, *set_options(SET))
        assert (code, "mood: Extra inputs" in err) == (2, True)
        assert files(run) == before
        assert terminal.json("status", "run", "--json")["versions"] == ["0.1.0", "9.0.0"]
        assert "worked on by habitus 0.1.0, then 9.0.0" in terminal("status", "run")[1]


class TestSessions:
    def test_the_manifest_names_the_version_of_every_session(self, tmp_path: Path) -> None:
        study = study_of(tmp_path, SET)
        for until in (Stage.HISTORIES, Stage.RESPONSES, Stage.VERDICTS, Stage.VERDICTS):
            run_experiment(study, RunRequest(out=tmp_path / "run", until=until))
        with RunDir.open(tmp_path / "run", write=False) as run:
            (note,) = run.sessions
            assert run.verify().problems == ()
        assert (note["habitus"], note["sessions"]) == (habitus.__version__, 3)
        assert note["first"] <= note["last"]

    def test_another_version_is_named_beside(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with RunDir.create(tmp_path / "run", {}) as run:
            run.note_session()
        monkeypatch.setattr(habitus, "__version__", "0.2.0")
        for _ in range(2):
            with RunDir.open(tmp_path / "run") as run:
                run.note_session()
        with RunDir.open(tmp_path / "run", write=False) as run:
            told = [(note["habitus"], note["sessions"]) for note in run.sessions]
        assert told == [("0.1.0", 1), ("0.2.0", 2)]
