"""From an empty folder to a gate that CI enforces, with the installed wheel and the start page's own texts."""

from __future__ import annotations

import re
import shutil
from typing import TYPE_CHECKING

import pytest

from tests.package.conftest import ROOT, Place

if TYPE_CHECKING:
    import subprocess
    from pathlib import Path

PAGE = (ROOT / "docs" / "start.md").read_text("utf-8")
MODEL = "--model=function:my_app:answer"


def block(language: str, text: str) -> str:
    """The page's code block that contains a text."""
    blocks: list[str] = re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    return next(block for block in blocks if text in block)


@pytest.fixture
def empty(environment: Path, tmp_path: Path) -> Place:
    """An empty folder beside an environment into which evalsuite was installed."""
    (tmp_path / "work").mkdir()
    return Place(tmp_path / "work", environment)


@pytest.fixture(scope="module")
def begun(environment: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `evalsuite init` writes, beside the page's application."""
    folder = tmp_path_factory.mktemp("begun")
    clean(Place(folder, environment).run("evalsuite", "init"), 0)
    (folder / "my_app.py").write_text(block("python", "def answer"), "utf-8")
    return folder


def clean(result: subprocess.CompletedProcess[str], status: int) -> str:
    """What a command showed, once its status is as expected and nothing of it is a traceback."""
    shown = result.stdout + result.stderr
    assert result.returncode == status, shown
    assert not re.search(r"Traceback|INTERNALERROR", shown)
    return shown


def test_nothing_becomes_a_red_gate_then_a_gate_on_own_questions_then_a_proven_workflow(empty: Place) -> None:
    # A virtual environment and the installation are the first two commands.
    clean(empty.run("evalsuite", "init"), 0)
    (empty.path / "my_app.py").write_text(block("python", "def answer"), "utf-8")
    assert "missed  capitals.contains >= 0.9" in clean(empty.run("pytest", "evals/", MODEL), 10)
    # Own questions.
    (empty.path / "evals" / "questions.csv").write_text(block("csv", "Peru"), "utf-8")
    (empty.path / "evals" / "test_mine.py").write_text(block("python", "questions.csv"), "utf-8")
    (empty.path / "evals" / "test_first.py").unlink()
    gates = empty.path / "pytest.toml"
    gates.write_text(gates.read_text().replace("capitals.contains", "mine.contains"))
    assert "2 tests collected" in clean(empty.run("pytest", "evals/", "--collect-only", "-q"), 0)
    assert "my_app" in clean(empty.run("evalsuite", "doctor", "evals/", MODEL, "--without-programs"), 0)
    assert "missed  mine.contains >= 0.9" in clean(empty.run("pytest", "evals/", MODEL, "--limit=20"), 10)
    app = empty.path / "my_app.py"
    app.write_text(app.read_text().replace('"Tokyo"', '"Tokyo", "Peru": "Lima", "Norway": "Oslo"'))
    assert "met  mine.contains >= 0.9" in clean(empty.run("pytest", "evals/", MODEL), 0)
    assert "mine.contains" in clean(empty.run("evalsuite", "report", "last"), 0)
    # One more.
    told = clean(empty.run("evalsuite", "init", "--ci", MODEL), 0)
    assert re.search(r"green: exit status 0,.*\n +red: +exit status 1[01],.*\n +proven:", told)
    assert (empty.path / ".github" / "workflows" / "evals.yml").is_file()


MISTAKES = {
    "no key": (("pytest", "evals/", "--model=gpt-4"), 4, r"OPENAI_API_KEY"),
    "no such function": (("pytest", "evals/", "--model=function:nowhere:answer"), 4, r"write function:package"),
    "a misspelt gate": (("pytest", "evals/", MODEL, "--gate=capitals.contain >= 1"), 4, r"contains"),
    "no such baseline": (("pytest", "evals/", MODEL, "--baseline=nowhere"), 4, r"the newest there: none"),
    "no such run": (("evalsuite", "report", "nowhere"), 2, r"the newest there: none"),
    "a comment without a verdict": (("evalsuite", "gate", "comment", "nowhere"), 2, r"gate --to=nowhere"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_beginner_s_mistake_is_told_with_its_remedy(
    environment: Path, begun: Path, tmp_path: Path, mistake: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "GITHUB_ACTIONS", "GITLAB_CI"):
        monkeypatch.delenv(name, raising=False)
    command, status, remedy = MISTAKES[mistake]
    place = Place(shutil.copytree(begun, tmp_path / "work"), environment)
    assert re.search(remedy, clean(place.run(*command), status))
