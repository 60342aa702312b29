"""The command line: norms, personas, errors, and what reaches the terminal."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from habitus.cli import run
from habitus.cli.entry import DEBUG
from habitus.cli.kinds import KINDS, kind_of, schema_files
from habitus.cli.root import COMMANDS, HIDDEN
from habitus.content import shipped_root
from habitus.content.visible import safe_text

ROOT = shipped_root()
ENGINE = Path(__file__).parents[1] / "engine"

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def habitus(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Run:
    """Run a command in an empty workspace: exit code, stdout, stderr."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(DEBUG, raising=False)

    def one(*arguments: str) -> tuple[int, str, str]:
        code = run(arguments)
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return one


def process(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "habitus", *arguments],
        env={**os.environ, "PYTHONPATH": str(ENGINE), **environment},
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )


def damaged(folder: Path, old: str, new: str) -> Path:
    """A copy of a shipped culture, in the workspace, with one change."""
    text = (ROOT / "norms" / "health" / "maori.yaml").read_text(encoding="utf-8")
    assert old in text
    path = folder / "norms" / "health" / "maori.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    return path


class TestRoot:
    def test_help_lists_the_commands(self, habitus: Run) -> None:
        code, out, _ = habitus("--help")
        assert code == 0
        assert all(f"  {name} " in out and about in out for name, about in COMMANDS.items())
        assert not any(f"  {name} " in out for name in HIDDEN)

    def test_help_imports_nothing_heavy(self) -> None:
        code = (
            "import sys; from habitus.cli import run; run(['--help']);"
            "print(sorted({m.split('.')[0] for m in sys.modules}), file=sys.stderr)"
        )
        result = subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONPATH": str(ENGINE)},
            capture_output=True,
            encoding="utf-8",
            check=True,
        )
        loaded = set(ast.literal_eval(result.stderr))
        heavy = {"rich", "numpy", "networkx", "ruamel", "aiohttp", "jsonschema", "xllamacpp"}
        assert not loaded & heavy

    @pytest.mark.parametrize("name", [*COMMANDS, *HIDDEN])
    def test_every_command_in_the_table_exists(self, habitus: Run, name: str) -> None:
        assert import_module(f"habitus.cli.{name}").app
        code, out, _ = habitus(name, "--help")
        assert code == 0
        assert out.startswith(f"Usage: habitus {name} ")

    def test_version(self, habitus: Run) -> None:
        import habitus as package

        assert habitus("--version") == (0, f"{package.__version__}\n", "")

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (("nrms",), "Did you mean 'norms'?"),
            (("norms", "shw"), "Did you mean 'show'?"),
            (("norms", "show"), "Missing argument"),
            (("norms", "list", "--wide"), "No such option"),
            (("personas", "sample", "maori", "-n", "0"), "greater than or equal to 1"),
            (("norms", "show", "moari"), "no culture called 'moari'; did you mean 'maori'"),
            (("norms", "list", "--domain", "helth"), "did you mean 'health'"),
            (("personas", "sample", "maori", "-n", "1025"), "1,024 different personas"),
            (("personas", "sample", "maori", "--prior", "mana"), "write VALUE=P"),
            (("personas", "sample", "maori", "-o", "/dev/null/x.yaml"), "cannot be written"),
            (("personas", "sample", "maori", "-o", "Bad Name.yaml"), "an id has lower-case"),
        ],
    )  # fmt: skip
    def test_wrong_usage_is_one_message_and_2(
        self, habitus: Run, tmp_path: Path, arguments: tuple[str, ...], message: str
    ) -> None:
        code, out, err = habitus(*arguments)
        assert (code, out) == (2, "")
        assert message in err
        assert "Traceback" not in err
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.parametrize("typed", ["habitus no", "habitus norms sh", "habitus norms show mao"])
    def test_completion(self, typed: str) -> None:
        words = typed.split()
        result = process(
            _HABITUS_COMPLETE="complete_bash",
            COMP_WORDS=typed,
            COMP_CWORD=str(len(words) - 1),
        )
        expected = {"no": "norms", "sh": "show", "mao": "maori"}[words[-1]]
        assert (result.returncode, result.stdout.split()) == (0, [expected])


class Fault:
    """A sub-command that goes wrong, put in the place of one in the table."""

    def __init__(self, error: BaseException) -> None:
        from habitus.cli.root import new_app

        self.app = new_app("")

        @self.app.command()
        def _one() -> None:
            raise error


class TestFaults:
    @pytest.mark.parametrize(
        ("error", "code", "message"),
        [
            (ValueError("a [bold]x\x1b[2J"), 70, r"ValueError: a [bold]x\u001b[2J"),
            (ZeroDivisionError(), 70, "ZeroDivisionError"),
            (OSError(28, "No space left on device"), 70, "No space left on device"),
            (KeyboardInterrupt(), 130, ""),
            (BrokenPipeError(32, "Broken pipe"), 141, None),
        ],
        ids=["error", "without words", "disk full", "interrupted", "closed pipe"],
    )
    def test_every_end_has_its_code(
        self,
        habitus: Run,
        monkeypatch: pytest.MonkeyPatch,
        error: BaseException,
        code: int,
        message: str | None,
    ) -> None:
        monkeypatch.setitem(sys.modules, "habitus.cli.norms", Fault(error))
        # A closed pipe leaves the streams replaced; these lines put them back afterwards.
        monkeypatch.setattr("sys.stdout", sys.stdout)
        monkeypatch.setattr("sys.stderr", sys.stderr)
        ended, _, err = habitus("norms")
        assert ended == code
        assert "Traceback" not in err
        assert err == "" if message is None else message in err
        assert (DEBUG in err) == (code == 70)

    def test_debug_shows_the_traceback(self, habitus: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "habitus.cli.norms", Fault(ValueError("here")))
        monkeypatch.setenv(DEBUG, "1")
        code, _, err = habitus("norms")
        assert code == 70
        assert "Traceback" in err


class TestNorms:
    def test_list(self, habitus: Run) -> None:
        code, out, err = habitus("norms", "list")
        lines = [line.split("\t") for line in out.splitlines()]
        assert (code, err) == (0, "")
        assert lines[0] == ["culture", "domain", "name", "values", "norms", "confirmed"]
        assert lines[4] == ["maori", "health", "Māori", "10", "19", "0"]
        assert len(lines) == 7

    def test_list_as_json(self, habitus: Run) -> None:
        rows = json.loads(habitus("norms", "list", "--json")[1])
        assert [row["culture"] for row in rows][:2] == ["afghan", "burmese"]

    def test_stats_as_json(self, habitus: Run) -> None:
        rows = json.loads(habitus("norms", "stats", "--json")[1])
        assert len(rows) == 6
        assert rows[1] == {
            "culture": "burmese",
            "values": 18,
            "norms": 15,
            "communication": 8,
            "practice": 7,
            "follow": 3.75,
            "avoid": 3.75,
            "neutral": 7.5,
        }

    def test_stats_of_one_culture_by_id_and_by_path(self, habitus: Run) -> None:
        by_id = habitus("norms", "stats", "nepali")
        by_path = habitus("norms", "stats", str(ROOT / "norms" / "health" / "nepali.yaml"))
        assert by_id == by_path
        assert by_id[1].splitlines()[1] == "nepali\t9\t13\t4\t9\t4.25\t4.25\t4.5"

    def test_show(self, habitus: Run) -> None:
        code, out, _ = habitus("norms", "show", "maori")
        assert code == 0
        assert "maori_10\tpractice\ttapu_noa mana\t0.25\t0.25\t0.5\tno" in out
        assert "  maori_15 maori_18  (wairuatanga, tikanga)" in out
        assert json.loads(habitus("norms", "show", "maori", "--json")[1])["always_alike"] == [
            ["maori_6", "maori_8", "maori_19"],
            ["maori_15", "maori_18"],
        ]
        assert habitus("norms", "show", "burmese")[1].endswith("  none\n")

    def test_graph(self, habitus: Run) -> None:
        from networkx.readwrite import node_link_graph

        text = habitus("norms", "graph", "afghan")[1]
        assert text.startswith("afghan: 9 values, 13 norms, 23 links, ")
        assert "  afghan_1  with authority" in text
        dot = habitus("norms", "graph", "afghan", "--format", "dot")[1]
        assert dot.startswith('graph "afghan" {')
        data = json.loads(habitus("norms", "graph", "afghan", "--format", "json")[1])
        net = node_link_graph(data, edges="edges")
        assert (net.number_of_nodes(), net.number_of_edges()) == (22, 23)

    @pytest.mark.parametrize(
        ("old", "new", "place"),
        [
            ("kind: practice", "kind: habit", "28:11"),
            ("id: maori_2", "id: maori_1", "23:9"),
            ("whanaungatanga, manaakitanga]", "whanaungatanga, whanau]", "21:30"),
            ("  tikanga:", "\ttikanga:", "17:1"),
            ("confirmed: false", "confirmed: 'yes'", "6:12"),
        ],
        ids=["kind", "id", "value", "tab", "confirmed"],
    )
    def test_damaged_files_are_one_message_and_2(
        self, habitus: Run, tmp_path: Path, old: str, new: str, place: str
    ) -> None:
        path = damaged(tmp_path, old, new)
        for arguments in (("norms", "stats"), ("personas", "sample", "maori", "-o", "out.yaml")):
            code, out, err = habitus(*arguments)
            assert (code, out) == (2, "")
            assert f"{path}:{place}: " in err
            assert "Traceback" not in err
            assert [p.name for p in tmp_path.iterdir()] == ["norms"]

    def test_a_culture_of_ones_own_needs_one_file(self, habitus: Run, tmp_path: Path) -> None:
        path = damaged(tmp_path, "culture: maori", "culture: mine")
        path.rename(path.with_name("mine.yaml"))
        assert habitus("norms", "stats", "mine")[0] == 0
        assert "\nmine\t" in habitus("norms", "list")[1]
        assert habitus("personas", "sample", "mine", "-n", "2")[0] == 0


class TestPersonas:
    def test_the_shipped_population_is_what_its_command_draws(
        self, habitus: Run, tmp_path: Path
    ) -> None:
        shipped = (ROOT / "personas" / "health.yaml").read_text(encoding="utf-8")
        command = shipped.splitlines()[1].removeprefix("# Drawn by: habitus ")
        (tmp_path / "personas").mkdir()
        schema = "population.schema.json"
        (tmp_path / "personas" / schema).write_text("{}", encoding="utf-8")
        code, out, err = habitus(*command.split())
        assert (code, out) == (0, "")
        assert (tmp_path / "personas" / "health.yaml").read_text(encoding="utf-8") == shipped
        assert "culture\tnorm\tfollow\tneutral\tavoid\n" in err
        assert len(err.splitlines()) == 1 + 1 + 95

    def test_without_a_file_the_population_is_data(self, habitus: Run) -> None:
        code, out, err = habitus(
            "personas", "sample", "nepali", "-n", "2", "--sampler", "balanced", "--seed", "3"
        )
        assert code == 0
        assert out.startswith("# Drawn by: habitus personas sample nepali -n 2 --seed 3")
        assert "nepali\tnepali_8\t1\t0\t1" in err

    def test_a_file_is_not_overwritten_unless_told(self, habitus: Run, tmp_path: Path) -> None:
        path = tmp_path / "mine.yaml"
        path.write_text("mine\n", encoding="utf-8")
        sample = ("personas", "sample", "maori", "-n", "1", "-o", "mine.yaml")
        assert habitus(*sample)[0] == 2
        assert path.read_text(encoding="utf-8") == "mine\n"
        assert habitus(*sample, "--force")[0] == 0
        assert path.read_text(encoding="utf-8").startswith("# Drawn by: ")
        assert [p.name for p in tmp_path.iterdir()] == ["mine.yaml"]

    def test_what_cannot_be_covered_is_said(self, habitus: Run) -> None:
        err = habitus("personas", "sample", "nepali", "-n", "1")[2]
        assert "nepali: not both followed and avoided: nepali_1," in err

    def test_names_from_a_file(self, habitus: Run, tmp_path: Path) -> None:
        (tmp_path / "names.txt").write_text("Ana\nBo\n", encoding="utf-8")
        out = habitus("personas", "sample", "maori", "-n", "2", "--names", "names.txt")[1]
        assert "name: Ana\n" in out
        assert "name: Bo\n" in out

    def test_one_domain_only(self, habitus: Run, tmp_path: Path) -> None:
        path = damaged(tmp_path, "domain: health", "domain: food")
        (tmp_path / "norms" / "food").mkdir()
        path.rename(tmp_path / "norms" / "food" / "maori.yaml")
        code, _, err = habitus("personas", "sample", "norms/food/maori.yaml", "nepali")
        assert code == 2
        assert "one domain; these cultures have food, health" in err


class TestKinds:
    def test_schema_files_equal_the_models(self) -> None:
        for path, text in schema_files(ROOT):
            assert path.read_text(encoding="utf-8") == text, "run: habitus schemas ."

    @pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
    def test_shipped_files_load_and_meet_the_schema_editors_read(self, kind: Any) -> None:
        from jsonschema import Draft202012Validator

        from habitus.content import read_yaml

        validator = Draft202012Validator(json.loads(kind.schema_text()))
        for path in kind.files():
            assert kind.load(path)
            validator.validate(read_yaml(path).data)
            assert kind_of(path) == kind

    def test_schemas_are_written_and_checked(self, habitus: Run, tmp_path: Path) -> None:
        (tmp_path / "norms").mkdir()
        assert habitus("schemas", ".", "--check") == (1, "norms/culture.schema.json\n", "")
        assert habitus("schemas", ".")[0] == 0
        assert habitus("schemas", ".", "--check")[:2] == (0, "")
        assert [p.name for p in (tmp_path / "norms").iterdir()] == ["culture.schema.json"]


class TestOutput:
    NASTY = "see [1], [INST] hi [/INST], [bold]x, :smile: \x1b[2J\x9b1m\u202eabc\u2069\r\x07"
    SHOWN = (
        r"see [1], [INST] hi [/INST], [bold]x, :smile: \u001b[2J\u009b1m\u202eabc\u2069\u000d\u0007"
    )

    @pytest.mark.parametrize(
        ("text", "shown"),
        [
            (NASTY, SHOWN),
            ("Māori “pain” 气 نَنگ \u200f👩\u200d⚕️", "Māori “pain” 气 نَنگ \u200f👩\u200d⚕️"),
            ("a\n\tb", "a\n\tb"),
            ("half \ud83d pair", r"half \ud83d pair"),
        ],
        ids=["nasty", "scripts", "lines", "surrogate"],
    )
    def test_safe_text(self, text: str, shown: str) -> None:
        assert safe_text(text) == shown

    @given(st.text())
    def test_safe_text_has_nothing_that_acts_and_keeps_json_whole(self, text: str) -> None:
        assert not set(safe_text(text, lines=False)) & set(map(chr, [*range(32), *range(127, 160)]))
        assert json.loads(safe_text(json.dumps([text], ensure_ascii=False))) == [text]

    @pytest.mark.parametrize("terminal", [False, True], ids=["pipe", "terminal"])
    def test_tables_show_text_letter_for_letter(
        self, terminal: bool, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        import io

        from habitus.cli.output import print_table

        class Stream(io.StringIO):
            def isatty(self) -> bool:
                return terminal

        monkeypatch.setenv("COLUMNS", "200")
        monkeypatch.setenv("TERM", "xterm")
        stream = Stream()
        print_table(["a[b]", "n"], [[self.NASTY, 1.5], ["tab\tnew\nline", None]], to=stream)
        printed = re.sub(r"\x1b\[[0-9;]*m", "", stream.getvalue())  # the table's own bold
        assert "a[b]" in printed
        assert self.SHOWN in printed
        assert r"tab\u0009new\u000aline" in printed
        assert "\x1b" not in printed

    def test_labels_of_a_file_reach_the_terminal_as_text(
        self, habitus: Run, tmp_path: Path
    ) -> None:
        damaged(tmp_path, '"Mana (Dignity & Respect)"', '"[red]Mana[/red] \u202e:smile:"')
        out = habitus("norms", "show", "maori")[1]
        assert r"[red]Mana[/red] \u202e:smile:" in out

    def test_a_closed_pipe_is_quiet(self) -> None:
        reader, writer = os.pipe()
        os.close(reader)
        result = subprocess.run(
            [sys.executable, "-m", "habitus", "norms", "show", "maori"],
            env={**os.environ, "PYTHONPATH": str(ENGINE)},
            stdout=writer,
            stderr=subprocess.PIPE,
            check=False,
        )
        os.close(writer)
        assert (result.returncode, result.stderr) == (141, b"")

    def test_a_terminal_without_utf8_gets_escapes(self) -> None:
        result = process("norms", "list", PYTHONIOENCODING="ascii")
        assert result.returncode == 0
        assert r"M\u0101ori" in result.stdout
