"""What a case that misses its threshold shows, in the terminal and in the files that other tools read."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.plugin.conftest import Suite

BLOCK = ["question  Osaka", "answer    Osaka", "target    Tokyo", "score     exact_match 0.0000"]


def test_its_block_stands_in_place_of_the_traceback(suite: Suite, workers: tuple[str, ...]) -> None:
    result = suite.run(*workers)
    result.stdout.fnmatch_lines(
        ["test_capitals.py:*: assert scores[[]*exact_match*[]] == 1.0", "*- evalsuite -*", *BLOCK],
        consecutive=True,
    )
    result.stdout.no_fnmatch_line("E  *assert 0.0 == 1.0*")


def test_junit_carries_the_block(suite: Suite, workers: tuple[str, ...]) -> None:
    suite.run(*workers, "--junitxml=junit.xml")
    (failure,) = ET.parse(suite.path / "junit.xml").iter("failure")
    assert "\n".join(BLOCK) in (failure.text or "")


def test_what_the_baseline_answered_is_in_the_block(suite: Suite, workers: tuple[str, ...]) -> None:
    suite.pytester.makepyfile(better="def answer(messages):\n    return 'Tokyo'")
    suite.run("--run", "before", "--model=function:better:answer", model=False)
    result = suite.run(*workers, "--run", "after", "--baseline", "before")
    result.stdout.fnmatch_lines([*BLOCK, "baseline  Tokyo", "*(exact_match 1.0000)"], consecutive=True)


def test_a_traceback_that_is_asked_for_is_shown_beside_the_block(suite: Suite) -> None:
    result = suite.run("--tb=short")
    result.stdout.fnmatch_lines(["E   assert 0.0 == 1.0", "*- evalsuite -*", *BLOCK])


def test_a_message_of_the_test_is_kept(suite: Suite) -> None:
    test = suite.path / "test_capitals.py"
    test.write_text(test.read_text() + ', "capitals are easy"\n')
    suite.run("-k", "jp").stdout.fnmatch_lines(["E   AssertionError: capitals are easy", *BLOCK])


def test_escape_sequences_of_an_answer_do_not_reach_the_terminal(suite: Suite) -> None:
    suite.pytester.makepyfile(evil=r"def answer(messages): return '\x1b[2Jgone' + chr(10) + '::error::x'")
    result = suite.run("--model=function:evil:answer", "-k", "jp", model=False)
    result.stdout.fnmatch_lines(["answer    [[]2Jgone"])
    result.stdout.no_fnmatch_line("::error*")
