"""Nothing that is read is ever run: what the engine's own source does not call."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from habitus.content import shipped_root

ENGINE = Path(__file__).parents[1] / "engine" / "habitus"
FILES = sorted(ENGINE.rglob("*.py"))
#: Names that run, or rebuild, what they are given.
CALLS = {
    "eval", "exec", "compile", "__import__", "execfile", "exec_module",
    "load_module", "spec_from_file_location", "spec_from_loader", "import_module", "system", "popen",
    "Popen", "getoutput", "getstatusoutput", "create_subprocess_shell",
    "create_subprocess_exec", "unsafe_load", "full_load", "load_extension", "enable_load_extension",
    "from_string", "read_pickle", "to_pickle", "fromfile", "memmap",
}  # fmt: skip
MODULES = {
    "pickle", "cPickle", "dill", "cloudpickle", "marshal", "shelve", "joblib", "runpy", "code",
    "codeop", "imp", "ctypes", "yaml", "xmlrpc",
}  # fmt: skip
#: What is allowed, by file: each takes names that stand in the source beside it.
ALLOWED = {
    ("cli/root.py", "import_module"): "the commands of COMMANDS",
    ("models/entry.py", "import_module"): "the backends of FACTORIES",
}


def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def name_of(call: ast.expr) -> str:
    return call.attr if isinstance(call, ast.Attribute) else getattr(call, "id", "")


def found_in(path: Path) -> Iterator[tuple[str, str]]:
    """What one file calls or imports of these names."""
    where = path.relative_to(ENGINE).as_posix()
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Call) and (called := name_of(node.func)) in CALLS:
            if called == "compile" and _of_re(node.func):
                continue
            yield where, called
    yield from ((where, module) for _, module in imported(path) if module in MODULES)


def _of_re(function: ast.expr) -> bool:
    return isinstance(function, ast.Attribute) and getattr(function.value, "id", "") == "re"


def keywords(*names: str) -> Iterator[tuple[str, str, ast.expr]]:
    """Every value of a keyword argument of these names, with its file."""
    for path in FILES:
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.keyword) and node.arg in names:
                yield path.relative_to(ENGINE).as_posix(), node.arg or "", node.value


def imported(path: Path) -> Iterator[tuple[str, str]]:
    """The modules that a file imports."""
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [alias.name for alias in node.names]
            modules = names if isinstance(node, ast.Import) else [node.module or ""]
            yield from ((path.name, module.partition(".")[0]) for module in modules)


def test_the_source_is_there() -> None:
    assert len(FILES) > 200


def test_nothing_that_is_read_is_run() -> None:
    found = {what for path in FILES for what in found_in(path)}
    assert found == set(ALLOWED)


@pytest.mark.parametrize(
    "source",
    [
        "eval(text)",
        "builtins.exec(text)",
        "import pickle",
        "from marshal import loads",
        "yaml.unsafe_load(text)",
        "compile(text, '', 'exec')",
        "importlib.import_module(name)",
        "os.system(name)",
    ],
)
def test_this_test_would_find_it(
    tmp_path: Path, source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bad.py").write_text(source)
    monkeypatch.setattr("test_no_code.ENGINE", tmp_path)
    assert len(list(found_in(tmp_path / "bad.py"))) == 1


def test_modules_are_imported_by_names_of_the_source_only() -> None:
    from habitus.models.entry import FACTORIES

    assert {module.partition(".")[0] for module, _ in FACTORIES.values()} == {"habitus"}
    for where, _ in ALLOWED:
        text = (ENGINE / where).read_text(encoding="utf-8")
        assert text.count("import_module(") == 1


def test_no_shell_no_pickled_arrays_and_yaml_without_objects() -> None:
    for where, name, value in keywords("shell", "allow_pickle", "typ"):
        constant = value.value if isinstance(value, ast.Constant) else "?"
        assert (name, constant) == ("typ", "safe"), where
    calls = [
        (path.relative_to(ENGINE).as_posix(), name_of(node.func))
        for path in FILES
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and (
            getattr(node.func.value, "id", "") == "subprocess"
            or (getattr(node.func.value, "id", ""), node.func.attr) == ("np", "load")
        )
    ]
    assert calls == [("models/downloads.py", "run")]


def test_templates_are_those_of_the_package_and_escape() -> None:
    using = [p for p in FILES if {"jinja2"} & {m for _, m in imported(p)}]
    assert [path.relative_to(ENGINE).as_posix() for path in using] == [
        "reports/document/rendering.py"
    ]
    loaders = {name_of(v.func) for _, _, v in keywords("loader") if isinstance(v, ast.Call)}
    assert loaders == {"PackageLoader"}
    escapes = [v.value for _, _, v in keywords("autoescape") if isinstance(v, ast.Constant)]
    assert escapes == [True]
    templates = list((using[0].parent / "templates").glob("*.html"))
    assert templates
    for path in templates:
        assert not re.search(r"\|\s*safe\b|autoescape", path.read_text(encoding="utf-8")), path


def test_no_content_is_code() -> None:
    """Shipped content is text: nothing in it could be imported by accident either."""
    for folder in ("norms", "personas", "checklists", "judges", "experiments"):
        assert not list((shipped_root() / folder).rglob("*.py"))
