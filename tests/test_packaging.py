"""What is shipped: the wheel holds all content and nothing else, and works outside the checkout."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("norms", "personas", "checklists", "judges", "experiments")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(out)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    return next(out.glob("*.whl"))


def tracked() -> set[str]:
    command = ["git", "ls-files", "-z", *FOLDERS]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout
    return {name for name in listed.decode().split("\0") if name}


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="compares with what git tracks")
def test_the_wheel_has_exactly_the_content_that_git_tracks(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as file:
        inside = {
            name.removeprefix("habitus/_content/")
            for name in file.namelist()
            if name.startswith("habitus/_content/")
        }
    assert inside == tracked()


def test_the_wheel_has_the_templates_of_the_report(wheel: Path) -> None:
    folder = "habitus/reports/document/templates/"
    there = {path.name for path in (ROOT / "engine" / folder).iterdir()}
    with zipfile.ZipFile(wheel) as file:
        inside = {name.removeprefix(folder) for name in file.namelist() if name.startswith(folder)}
    assert inside == there >= {"report.html", "parts.html", "report.css", "report.js"}


def test_the_wheel_works_outside_the_checkout(wheel: Path, tmp_path: Path) -> None:
    """Unpacked as an installer would, in another folder, with the packages of this environment."""
    site = tmp_path / "site"
    with zipfile.ZipFile(wheel) as file:
        file.extractall(site)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()

    def habitus(*arguments: str) -> str:
        code = "import sys; from habitus.cli import main; main()"
        done = subprocess.run(
            [sys.executable, "-c", code, *arguments],
            cwd=elsewhere,
            env={"PYTHONPATH": str(site), "PATH": "/usr/bin:/bin"},
            check=True,
            capture_output=True,
            text=True,
        )
        return done.stdout

    assert habitus("norms", "list").count("\n") == 7
    scripted = "models.main={backend: scripted, options: {script: helpers}}"
    assert "CCBench results" in habitus("demo", "--quiet", "--set", scripted)
    assert (elsewhere / "runs" / "demo" / "results.json").exists()
    assert habitus("report", "demo") == "runs/demo/report.html\n"
    assert (elsewhere / "runs" / "demo" / "report.html").stat().st_size > 50_000
    assert not list((site / "habitus").rglob("runs"))
