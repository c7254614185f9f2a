"""The live line, on a real (pseudo) terminal, and its parts."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalsuite.plugin.live_line import estimate_seconds_left, fit_to_width

if TYPE_CHECKING:
    from tests.plugin.conftest import Suite

WAITING = """
import pathlib, time
def answer(messages):
    while not pathlib.Path("go").exists():
        time.sleep(0.01)
    return "London"
"""
PARTS = [(0, "evalsuite 1/9 cases"), (4, "3 answers"), (1, "gpt is down"), (5, "2 calls"), (2, "0:10 left")]


@pytest.mark.parametrize("processes", ["0", "1"])
def test_it_reaches_the_terminal_and_not_the_captured_output(suite: Suite, processes: str) -> None:
    pexpect = pytest.importorskip("pexpect", reason="pip install pexpect, which makes a terminal")
    suite.pytester.makepyfile(slow=WAITING)
    command = ["-m", "pytest", "-n", processes, "--model=function:slow:answer", "-pno:hypothesispytest"]
    child = pexpect.spawn(sys.executable, command, cwd=str(suite.path), encoding="utf-8", timeout=120)
    child.setwinsize(24, 100)
    child.expect(r"evalsuite 0/3 cases · 0 answers · \d calls in flight")
    (suite.path / "go").touch()
    child.expect(pexpect.EOF)
    assert "3 failed" in child.before
    assert "Captured stdout" not in child.before
    # The closing lines stand by themselves: the line below was erased before.
    assert not re.search(r"cases · [^\x1b]*3 failed", child.before)


SLOW_TO_COLLECT = """
import pathlib, time
def pytest_configure():
    import evalsuite.plugin.live_line as live_line
    live_line.FIRST = 0.05
def pytest_collection_modifyitems():
    while not pathlib.Path("go").exists():
        time.sleep(0.01)
pytest_plugins = ["evalsuite.plugin"]
"""


def test_without_a_terminal_it_says_that_cases_are_being_collected(suite: Suite) -> None:
    suite.pytester.makeconftest(SLOW_TO_COLLECT)
    command = [sys.executable, "-m", "pytest", "--model=function:builtins:str", "-pno:hypothesispytest"]
    with subprocess.Popen(command, cwd=suite.path, stdout=subprocess.PIPE, text=True) as session:
        assert session.stdout is not None
        assert any(line == "evalsuite: the cases are being collected\n" for line in session.stdout)
        (suite.path / "go").touch()
        assert "3 failed" in session.stdout.read()


def test_a_narrow_terminal_goes_without_what_matters_least() -> None:
    assert fit_to_width(PARTS, 200) == "evalsuite 1/9 cases · 3 answers · gpt is down · 2 calls · 0:10 left"
    assert fit_to_width(PARTS, 50) == "evalsuite 1/9 cases · gpt is down · 0:10 left"
    assert fit_to_width(PARTS, 34) == "evalsuite 1/9 cases · gpt is down"
    assert fit_to_width(PARTS, 9) == "evalsuite"


@given(st.integers(0, 120))
def test_it_never_takes_more_than_the_width(width: int) -> None:
    assert len(fit_to_width(PARTS, width)) <= width


def test_the_time_left_comes_from_answers_until_cases_are_done() -> None:
    assert estimate_seconds_left(10.0, 0, 0, 100) is None
    assert estimate_seconds_left(10.0, 0, 20, 100) == pytest.approx(40.0)
    assert estimate_seconds_left(10.0, 10, 80, 100) == pytest.approx(90.0)
    assert estimate_seconds_left(10.0, 0, 300, 100) is None
