"""A newcomer's way: `evalsuite init`, the first run, and the commands that look at it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

from evalsuite.cli import main
from evalsuite.results.run_folders import find_folder

if TYPE_CHECKING:
    from tests.plugin.conftest import Suite

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "start.md").read_text("utf-8")


@pytest.fixture
def project(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> Suite:
    for file in suite.path.iterdir():
        if file.is_file():
            file.unlink()
    monkeypatch.chdir(suite.path)
    (suite.path / "my_app.py").write_text(re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)[0])
    suite.model = ("--model=function:my_app:answer",)
    return suite


def test_the_start_page_is_true(project: Suite, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["init"]) == 0
    result = project.run("evals", "--run", "first")
    assert result.ret == 10
    told = next(line.strip() for line in PAGE.splitlines() if line.startswith("  missed"))
    assert told in result.stdout.str()
    capsys.readouterr()
    assert main(["show", "ke"]) == 0
    assert "answer    I do not know.\ntarget    Nairobi\nscore     contains 0.0000" in capsys.readouterr().out
    app = project.path / "my_app.py"
    app.write_text(app.read_text().replace('"Tokyo"', '"Tokyo", "Kenya": "Nairobi"'))
    assert project.run("evals", "--run", "better", fresh=True).ret == 0
    capsys.readouterr()
    assert main(["diff", "first", "better"]) == 0
    out = capsys.readouterr().out
    assert re.search(r"failed -> passed  \+1\.0000  evals/test_first\.py::test_capitals\[ke\]", out)
    assert "1 with another outcome" in out
    assert main(["runs"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[2:]] == ["better", "first"]
    assert main(["prune", "--keep", "1"]) == 0
    assert (project.path / "reports" / "first").is_dir()
    assert main(["prune", "--keep", "1", "--yes"]) == 0
    assert [folder.name for folder in (project.path / "reports").iterdir()] == ["better"]


def test_init_overwrites_nothing_and_says_what_is_lacking(
    project: Suite, capsys: pytest.CaptureFixture[str]
) -> None:
    theirs = {"conftest.py": "# mine\n", "pyproject.toml": "[tool.pytest.ini_options]\n"}
    for name, text in theirs.items():
        (project.path / name).write_text(text)
    assert main(["init"]) == 0
    assert main(["init"]) == 0
    for name, text in theirs.items():
        assert (project.path / name).read_text() == text
    assert not (project.path / "pytest.toml").exists()
    out = capsys.readouterr().out
    assert 'pytest_plugins = ["evalsuite.plugin"]' in out
    assert "capitals.contains >= 0.9" in out


def test_the_workflow_that_init_writes_is_one(project: Suite) -> None:
    main(["init"])
    workflow = yaml.safe_load((project.path / ".github" / "workflows" / "evals.yml").read_text())
    steps = workflow["jobs"]["evals"]["steps"]
    assert any("pytest evals/" in step.get("run", "") for step in steps)


def test_a_part_of_several_ids_names_them(project: Suite, capsys: pytest.CaptureFixture[str]) -> None:
    main(["init"])
    project.run("evals")
    capsys.readouterr()
    assert main(["show", "test_capitals"]) == 2
    assert "test_capitals[fr]" in capsys.readouterr().err


def test_the_version_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        main(["--version"])
    assert capsys.readouterr().out.startswith("evalsuite 0.")


def test_a_run_that_tries_out_some_cases_does_not_become_the_last(suite: Suite) -> None:
    suite.run("--run", "whole")
    suite.run("-k", "jp")
    assert find_folder(suite.path / "reports", "last").name == "whole"
    suite.run("-k", "jp", "--run", "named")
    assert find_folder(suite.path / "reports", "last").name == "named"


def test_an_interrupted_run_says_how_to_go_on(suite: Suite, workers: tuple[str, ...]) -> None:
    suite.pytester.makepyfile(wrong="def answer(messages): return 'x'")
    result = suite.run(*workers, "-x", "--run", "cut", "--model=function:wrong:answer", model=False)
    result.stdout.fnmatch_lines(["go on with it: --resume cut *"])
