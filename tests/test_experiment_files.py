"""Experiment files and what they refer to: damaged ones are answered by one message with a place."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from habitus.checklists import load_queries
from habitus.cli.kinds import KINDS, schema_files
from habitus.content import schema_line, shipped_root
from habitus.errors import ContentError, UsageError
from habitus.experiments import resolve
from habitus.experiments.settings import load_setting
from habitus.histories import load_lexicon
from habitus.personas import load_openers
from study_fixture import Terminal, harbour, study_of, terminal_in

ROOT = shipped_root()

EXPERIMENT = "experiments/first.yaml"
QUERIES = "checklists/harbour.yaml"
OPENERS = "personas/openers/harbour.yaml"
SETTING = "experiments/settings/brief.yaml"
PROMPT = "experiments/settings/brief.md"
LEXICON = "judges/history_verifier/lexicon.yaml"

# file, what is replaced, by what, where the message points ("line:column"), what it says
DAMAGED: dict[str, tuple[str, str, str, str, str]] = {
    "unknown key": (EXPERIMENT, "seed: 1", "seeds: 1", "8:1", "unknown key 'seeds'"),
    "missing seed": (EXPERIMENT, "seed: 1\n", "", "3:1", "missing key 'seed'"),
    "seed in words": (EXPERIMENT, "seed: 1", "seed: one", "8:7", "seed: "),
    "unknown model": (EXPERIMENT, "evaluator:   {model: main", "evaluator:   {model: gpt", "21:24", "unknown model 'gpt'"),
    "bad target name": (EXPERIMENT, "  main: {model: main, max_tokens: 800}", "  My Model: {model: main}", "24:3", "an id has lower-case"),
    "unknown backend": (EXPERIMENT, "backend: scripted", "backend: oracle", "14:19", "backend"),
    "bad options": (EXPERIMENT, "{script: helpers}", "{script: helper}", "14:38", "'helpers'"),
    "exchanges upside down": (EXPERIMENT, "exchanges: [2, 4]", "exchanges: [4, 2]", "29:14", "least exchanges 4 exceed the most 2"),
    "endless exchanges": (EXPERIMENT, "exchanges: [2, 4]", f"exchanges: [2, {10**30}]", "29:18", "less than or equal to 1000"),
    "one number of exchanges": (EXPERIMENT, "exchanges: [2, 4]", "exchanges: [4]", "29:14", "item 2 is missing"),
    "too many sessions": (EXPERIMENT, "domain_sessions: 2", "domain_sessions: 4", "27:20", "has 3 openers"),
    "unknown culture": (EXPERIMENT, "cultures: [harbour]", "cultures: [harbour, inland]", "6:21", "no persona of 'inland'"),
    "culture twice": (EXPERIMENT, "cultures: [harbour]", "cultures: [harbour, harbour]", "6:21", "'harbour' stands twice"),
    "unknown population": (EXPERIMENT, "population: harbour", "population: harbor", "7:13", "did you mean 'harbour'"),
    "unknown setting": (EXPERIMENT, "norms, brief]", "norms, breif]", "33:37", "did you mean 'settings/brief'"),
    "no such query": (EXPERIMENT, "queries: {file: harbour}", "queries: {file: harbour, ids: [harbour-009]}", "32:32", "no query 'harbour-009'"),
    "no such query file": (EXPERIMENT, "queries: {file: harbour}", "queries: {file: x/none.yaml}", "32:17", "No such file"),
    "another domain": (EXPERIMENT, "domain: health", "domain: sailing", "7:13", "the population 'harbour' has the domain 'health', not 'sailing'"),
    "duplicate key": (EXPERIMENT, "seed: 1", "seed: 1\nseed: 2", "9:1", "duplicate key 'seed'"),
    "tab": (EXPERIMENT, "  domain_sessions: 2", "\tdomain_sessions: 2", "27:1", "a tab is used for indentation"),
    "everyday openers of another kind": (EXPERIMENT, "  domain_openers: harbour", "  domain_openers: harbour\n  everyday_openers: harbour", "31:21", "of the kind 'domain', not 'everyday'"),
    "query id twice": (QUERIES, "id: harbour-002", "id: harbour-001", "16:9", "'harbour-001' is used twice; first by query 1"),
    "unknown topic": (QUERIES, "topic: sleep", "topic: slep", "17:12", "unknown topic 'slep'"),
    "topic without queries": (QUERIES, 'skin: "Skin"', 'skin: "Skin"\n  eyes: "Eyes"', "7:9", "no query has the topic 'eyes'"),
    "query without text": (QUERIES, "    text: >-\n      My hands", "    words: >-\n      My hands", "9:5", "missing key 'text'"),
    "query file of another name": (QUERIES, "id: harbour\n", "id: harbor\n", "3:5", "the file is called harbour.yaml"),
    "query id with a slash": (QUERIES, "id: harbour-002", "id: harbour/002", "16:9", "an id has lower-case"),
    "no queries": (QUERIES, "queries:\n", "queries: []\nrest:\n", "8:10", "needs at least 1 item"),
    "opener id twice": (OPENERS, "id: harbour-2", "id: harbour-1", "7:10", "used twice; first by opener 1"),
    "opener kind": (OPENERS, "kind: domain", "kind: dmoain", "4:7", "'domain' or 'everyday'"),
    "opener without text": (OPENERS, ', text: "My sister says I worry too much. Do I?"', "", "8:5", "missing key 'text'"),
    "empty opener": (OPENERS, '"My sister says I worry too much. Do I?"', '""', "8:41", "at least 1 character"),
    "openers of another name": (OPENERS, "id: harbour\n", "id: quay\n", "3:5", "the file is called harbour.yaml"),
    "opener said twice": (OPENERS, '"My sister says I worry too much. Do I?"', '"been coughing since the weekend, what do you make of it"', "8:41", "the text is that of harbour-1"),
    "setting of another name": (SETTING, "id: brief", "id: short", "3:5", "the file is called brief.yaml"),
    "unknown kind of history": (SETTING, "history: messages", "history: all", "5:10", "'none', 'messages' or 'transcript'"),
    "prompt that is not there": (SETTING, "query_prompt: brief.md", "query_prompt: curt.md", "7:15", "there is no file curt.md"),
    "prompt in another folder": (SETTING, "query_prompt: brief.md", "query_prompt: ../brief.md", "7:15", "query_prompt"),
    "norms without a prompt": (SETTING, "norms: false", "norms: true", "6:8", "needs a system_prompt"),
    "answer line of two lines": (SETTING, "norms: false", 'answer_after: "A\\nB"', "6:15", "one line"),
    "answer line that nobody asks for": (SETTING, "query_prompt: brief.md", 'answer_after: "ANSWER:"', "7:15", "needs a query_prompt"),
    "follow-up without an answer line": (SETTING, "norms: false", "follow_up: And now?", "6:12", "follow_up needs answer_after"),
    "prompt without its query": (PROMPT, "{{query}}", "The query", "1:1", "missing placeholder {{query}}"),
    "prompt with an unknown name": (PROMPT, "five", "{{many}}", "3:26", "unknown placeholder {{many}}"),
    "prompt of two parts": (PROMPT, "{{query}}\n", "<!-- system -->\nBe brief.\n<!-- user -->\n{{query}}\n", "3:1", "the file has 2 parts"),
    "unknown slot": (LEXICON, "i am {demonym}", "i am {demonim}", "7:5", "unknown slot"),
    "lexicon without patterns": (LEXICON, "patterns:", "templates:", "6:1", "unknown key 'templates'"),
    "lexicon with a key too many": (LEXICON, "countries:", "people: [x]\ncountries:", "2:1", "unknown key 'people'"),
    "lexicon with a list of lists": (LEXICON, "[korean,", "[[a, b],", "1:12", "demonyms.1"),
    "lexicon without its countries": (LEXICON, "countries: [korea]\n", "", "1:1", "missing key 'countries'"),
}  # fmt: skip


@pytest.fixture
def terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Terminal:
    harbour(tmp_path)
    return terminal_in(tmp_path, monkeypatch, capsys)


def damage(folder: Path, name: str) -> tuple[Path, str, str]:
    """Damage one file of the workspace; gives the file, the place and the words of the message."""
    file, old, new, place, words = DAMAGED[name]
    path = folder / file
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    return path, place, words


def listing(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


class TestDamaged:
    @pytest.mark.parametrize("name", DAMAGED)
    def test_a_run_is_refused_with_the_place_and_nothing_is_left_behind(
        self, terminal: Terminal, name: str
    ) -> None:
        path, place, words = damage(terminal.folder, name)
        before = listing(terminal.folder)
        code, out, err = terminal("run", "first")
        assert (code, out) == (2, "")
        messages = [line for line in err.splitlines() if words in line]
        assert len(messages) == 1, err
        assert re.match(rf"{re.escape(str(path))}:{place}: ", messages[0])
        assert "Traceback" not in err
        assert listing(terminal.folder) == before

    @pytest.mark.parametrize("name", DAMAGED)
    def test_check_lists_it(self, terminal: Terminal, name: str) -> None:
        path, place, words = damage(terminal.folder, name)
        code, out, err = terminal("check", SETTING if path.suffix == ".md" else str(path))
        assert code == 1
        assert any(
            re.search(rf"{re.escape(path.name)}:{place}: ", line) and words in line
            for line in out.splitlines()
        )
        assert re.fullmatch(r"\d+ files? checked, [1-9]\d* problems?\n", err)

    def test_check_lists_the_problems_of_all_files(self, terminal: Terminal) -> None:
        for name in ("unknown topic", "opener kind", "unknown kind of history", "missing seed"):
            damage(terminal.folder, name)
        code, out, _ = terminal("check", "--json")
        found = json.loads(out)
        assert code == 1
        assert {Path(problem["path"]).name for problem in found} == {
            "first.yaml", "harbour.yaml", "brief.yaml",
        }  # fmt: skip
        assert all(problem["line"] > 0 and problem["column"] > 0 for problem in found)

    def test_all_bad_references_of_an_experiment_are_listed_at_once(
        self, terminal: Terminal
    ) -> None:
        for name in ("unknown population", "unknown setting", "no such query file"):
            damage(terminal.folder, name)
        _, _, err = terminal("run", "first")
        assert [line.split(":")[1] for line in err.splitlines()] == ["7", "32", "33"]

    @pytest.mark.parametrize(
        ("file", "load"),
        [
            (QUERIES, load_queries),
            (OPENERS, load_openers),
            (SETTING, load_setting),
            (LEXICON, load_lexicon),
            (EXPERIMENT, resolve),
        ],
        ids=["queries", "openers", "setting", "lexicon", "experiment"],
    )
    @pytest.mark.parametrize(
        ("content", "words"),
        [
            (b"", "the file is empty"),
            (b"- a\n- b\n", "found a list"),
            (b"id: x\n  domain: y\n", "not valid YAML"),
            (b"id: caf\xe9\n", "is not UTF-8"),
            (b"id: [a\n", "not valid YAML"),
        ],
        ids=["empty", "a list", "indentation", "latin-1", "open bracket"],
    )
    def test_files_that_are_no_mapping(
        self,
        terminal: Terminal,
        file: str,
        load: Callable[[Path], object],
        content: bytes,
        words: str,
    ) -> None:
        path = terminal.folder / file
        path.write_bytes(content)
        with pytest.raises(ContentError, match=words):
            load(path)
        assert terminal("run", "first")[0] == 2
        assert not (terminal.folder / "runs").exists()

    def test_a_file_that_is_not_there(self, terminal: Terminal) -> None:
        code, _, err = terminal("run", "experiments/second.yaml")
        assert (code, err) == (
            2,
            "experiments/second.yaml: cannot be read: No such file or directory\n",
        )
        code, _, err = terminal("run", "frist")
        assert code == 2
        assert "did you mean 'first'?" in err

    def test_check_of_a_path_that_is_not_there_is_wrong_usage(self, terminal: Terminal) -> None:
        assert terminal("check", "experiments/second.yaml")[0] == 2

    def test_a_file_in_the_wrong_folder_is_found(self, terminal: Terminal) -> None:
        source = terminal.folder / "norms" / "health" / "harbour.yaml"
        source.rename(terminal.folder / "norms" / "harbour.yaml")
        code, out, _ = terminal("check", "norms")
        assert code == 1
        assert "nothing reads a file of this name here" in out


class TestReferences:
    def test_norm_ids_that_two_cultures_share_are_refused(self, terminal: Terminal) -> None:
        """Recommendations go by norm id, so these would be mixed up without a word."""
        folder = terminal.folder
        text = (folder / "norms/health/harbour.yaml").read_text(encoding="utf-8")
        copied = text.replace("culture: harbour ", "culture: quay ").replace("Harbour", "Quay")
        (folder / "norms/health/quay.yaml").write_text(copied, encoding="utf-8")
        made = terminal(
            "personas", "sample", "harbour", "quay", "-n", "2", "-o", "personas/two.yaml"
        )
        assert made[0] == 0
        code, _, err = terminal(
            "run", "first", "--set", "cultures=[harbour, quay]", "--set", "population=two"
        )
        assert code == 2
        assert "quay and harbour share the norm ids harbour_1, harbour_2" in err

    @pytest.mark.parametrize(
        ("changes", "words"),
        [
            ({"personas": ["harbour-01", "maori-01"]}, "no persona 'maori-01'"),
            ({"personas": ["harbour-01", "harbour-01"]}, "'harbour-01' stands twice"),
            ({"personas": 5}, "5 personas are asked for, but harbour has 4"),
            ({"personas": []}, "a list of persona ids"),
            ({"personas": True}, "a list of persona ids"),
            ({"personas": 0}, "greater than or equal to 1"),
            ({"norms": {"harbour": []}}, "needs at least 1 item"),
            ({"norms": {"harbour": ["harbour_9"]}}, "harbour has no norm 'harbour_9'"),
            ({"norms": {"maori": ["maori_1"]}}, "'maori' is not among the cultures"),
            ({"history.domain_sessions": 0, "history.everyday_sessions": 0}, "no session is asked for"),
            ({"settings": ["none", "../hist"]}, "an id has lower-case"),
            ({"queries.ids": ["harbour-001", "harbour-001"]}, "'harbour-001' stands twice"),
            ({"models.main": {"backend": "planted", "options": {"rates": {"none": {"follow": 1, "avoid": 1}}}}}, "no rates are planted for the setting 'hist'"),
        ],
        ids=str,
    )  # fmt: skip
    def test_what_does_not_fit(self, tmp_path: Path, changes: dict[str, Any], words: str) -> None:
        with pytest.raises(ContentError, match=re.escape(words)):
            study_of(tmp_path, changes)

    def test_sessions_need_no_openers_when_no_setting_shows_them(self, tmp_path: Path) -> None:
        changes = {"settings": ["none", "norms"], "history.domain_sessions": 50}
        assert [setting.id for setting in study_of(tmp_path, changes).settings] == ["none", "norms"]

    def test_every_file_that_is_read_is_in_the_configuration(self, tmp_path: Path) -> None:
        files = study_of(tmp_path, {"settings": ["brief", "ccot"]}).files
        assert {"experiments/settings/brief.yaml", "experiments/settings/brief.md"} <= set(files)
        assert {"experiments/settings/ccot.md", "norms/health/harbour.yaml"} <= set(files)
        assert {"personas/prompts/persona.md", LEXICON, "personas/openers/everyday.yaml"} <= set(
            files
        )
        assert "experiments/settings/norms.md" not in files


class TestSet:
    @pytest.mark.parametrize(
        ("option", "words"),
        [
            ("seed=x", "--set seed: seed: "),
            ("sed=1", "--set sed: unknown key 'sed' (did you mean 'seed'?)"),
            ("history.form=film", "--set history.form: history.form: "),
            ("history.sessions=3", "--set history.sessions: unknown key 'sessions'"),
            ("limits.failures=7", "--set limits.failures: limits.failures: "),
            ("targets.main.model=gpt", "--set targets.main.model: unknown model 'gpt'"),
            ("targets.other={model: main, maxtokens: 1}", "--set targets.other: unknown key 'maxtokens'"),
            ("settings=[none, nose]", "--set settings: no file in experiments/"),
            ("cultures.1=maori", "--set cultures.1: 'cultures' holds no keys"),
            ("seed.x=1", "--set seed.x: 'seed' holds no keys"),
            ("seed", "--set seed: write KEY=VALUE"),
            ("=1", "--set =1: write KEY=VALUE"),
            ("a..b=1", "--set a..b=1: write KEY=VALUE"),
            ("targets=[", "--set targets=[: not valid YAML"),
            ("seed=", "--set seed: seed: "),
        ],
    )  # fmt: skip
    def test_wrong_ones(self, terminal: Terminal, option: str, words: str) -> None:
        code, out, err = terminal("run", "first", "--set", option)
        assert (code, out) == (2, "")
        assert err.startswith(words)
        assert err.count("\n") == 1
        assert not (terminal.folder / "runs").exists()

    def test_values_are_yaml_and_new_parts_are_made(self, terminal: Terminal) -> None:
        study = study_of(
            terminal.folder,
            {
                "limits.alike": 9,
                "none": "per_persona",
                "checklist": {"length": 99},
                "results.draws": 100,
            },
        )
        assert study.experiment.limits.alike == 9
        assert study.experiment.none == "per_persona"
        assert study.experiment.checklist.length == 99

    def test_a_file_that_is_a_list_holds_no_keys(self, tmp_path: Path) -> None:
        path = tmp_path / "x.yaml"
        path.write_text("- a\n", encoding="utf-8")
        with pytest.raises(UsageError, match="holds no keys"):
            resolve(path, {"seed": 1})

    def test_the_place_of_an_untouched_neighbour_stays_in_the_file(self, tmp_path: Path) -> None:
        path = harbour(tmp_path)
        path.write_text(
            path.read_text(encoding="utf-8").replace("seed: 1", "seed: x"), encoding="utf-8"
        )
        with pytest.raises(ContentError) as caught:
            resolve(path, {"title": 3})
        assert [problem.place.line for problem in caught.value.problems] == [0, 8]


class TestShipped:
    @pytest.mark.parametrize("root", [ROOT, ROOT / "experiments" / "workspace"], ids=["all", "new"])
    def test_everything_passes_check(
        self,
        root: Path,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        folders = [str(root / kind) for kind in sorted({kind.folder for kind in KINDS})]
        code, out, err = terminal_in(tmp_path, monkeypatch, capsys)("check", *folders)
        assert (code, out) == (0, ""), out
        assert "0 problems" in err

    def test_schema_files_are_those_of_the_models(self) -> None:
        stale = [p for p, text in schema_files(ROOT) if p.read_text(encoding="utf-8") != text]
        assert stale == []

    @pytest.mark.parametrize(
        "path",
        [path for kind in KINDS for path in kind.files(ROOT)],
        ids=lambda path: str(path.relative_to(ROOT)),
    )
    def test_the_first_line_names_a_schema_that_is_there(self, path: Path) -> None:
        named = schema_line(path)
        assert named is not None
        assert (path.parent / named).is_file()
