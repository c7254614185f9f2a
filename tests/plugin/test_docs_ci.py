"""The page docs/ci.md: its five ideas work as it says."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from evalsuite.cli import main

if TYPE_CHECKING:
    from tests.plugin.conftest import Suite

PAGE = (Path(__file__).parents[2] / "docs" / "ci.md").read_text("utf-8")

APP = """
def cannot_count_to(*digits):
    def model(messages):
        first, second = messages[-1]["content"].split("+")
        return "?" if first in digits else str(int(first) + int(second))
    return model

good, weak, bad = cannot_count_to("7"), cannot_count_to("3", "7"), cannot_count_to(*"1234567")
"""


@pytest.fixture
def sums(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> Suite:
    """The page's suite with its gates."""
    (suite.path / "test_capitals.py").unlink()
    (suite.path / "cases").mkdir()
    (code,) = re.findall(r"^```python\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    (suite.path / "cases" / "test_sums.py").write_text(code)
    (gates,) = re.findall(r"^(evalsuite_gates = \[.*?^\])$", PAGE, re.DOTALL | re.MULTILINE)
    (suite.path / "pyproject.toml").write_text(f"[tool.pytest]\n{gates}\n")
    suite.pytester.makepyfile(app=APP)
    monkeypatch.chdir(suite.path)
    return suite


def command(part: str, **replaced: str) -> list[str]:
    """The words of the page's command that has this part, after the program's name."""
    (line,) = [line for line in PAGE.splitlines() if part in line and line.startswith(("pytest", "evalsuite"))]
    return [replaced.get(word.strip("-").replace("-", "_"), word) for word in shlex.split(line)[1:]]


def run(suite: Suite, part: str, model: str) -> pytest.RunResult:
    suite.model = (f"--model=function:app:{model}",)
    return suite.run(*(word for word in command(part) if not word.startswith("--model")))


def test_the_gates_are_met_by_their_means_and_missed_by_their_intervals(sums: Suite) -> None:
    assert run(sums, "--run=release-7", "weak").ret == 0
    result = run(sums, "@95%", "weak")
    assert result.ret == 10
    result.stdout.fnmatch_lines(["*missed  sums.exact_match >= 0.8 @95%   sums.exact_match: 0.8000 *"])
    assert sums.run("-k", "7-1").ret == 12


def test_a_release_is_held_against_the_promoted_baseline(sums: Suite) -> None:
    assert run(sums, "--run=release-7", "good").ret == 0
    assert main(command("baseline promote")) == 0
    few = run(sums, "no worse than kept/main", "weak")
    assert few.ret == 12
    few.stdout.fnmatch_lines(["*no data  sums.exact_match no worse than kept/main by 0.02   *needed*"])
    lost = run(sums, "no worse than kept/main", "bad")
    assert lost.ret == 10
    lost.stdout.fnmatch_lines(["*missed  sums.exact_match no worse than kept/main by 0.02   *after 0.9*"])
