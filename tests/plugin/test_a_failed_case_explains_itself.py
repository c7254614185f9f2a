"""What a case that misses its threshold shows, in the terminal and in the files that other tools read."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.plugin.conftest import Suite

MANY = """
from evalsuite import Sample, Score, benchmark, generate

def score(sample, transcript):
    named = dict.fromkeys(("best", "exact_match", "explained", "further", "other"), 0.5)
    return {{**named, "explained": Score(0.5, "half of it")}}

@benchmark("many", [Sample(id="jp", input="Osaka")], solver=generate(), scorers=[score])
def test_many(scores):
    assert {statement}
"""
BLOCK = ["question  Osaka", "answer    Osaka", "target    Tokyo", "score     exact_match 0.0000"]


def test_its_block_stands_in_place_of_the_traceback(suite: Suite, workers: tuple[str, ...]) -> None:
    result = suite.run(*workers)
    result.stdout.fnmatch_lines(
        ["test_capitals.py:*: assert scores[[]*exact_match*[]] == 1.0", "*- evalsuite -*", *BLOCK], consecutive=True
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


def test_an_error_has_a_block_too_and_its_message_once(suite: Suite, workers: tuple[str, ...]) -> None:
    suite.pytester.makepyfile(down="def answer(messages):\n    raise RuntimeError('boom')")
    result = suite.run(*workers, "--model=function:down:answer", "-k", "jp", model=False)
    error = "error     RequestRefused: function:down:answer raised RuntimeError: boom (down.py, line 2)"
    result.stdout.fnmatch_lines(
        ["test_capitals.py:*: RequestRefused", "*- evalsuite -*", "question  Osaka", "target    Tokyo", error],
        consecutive=True,
    )
    # In CI pytest's own summary repeats messages whole.
    block, _, _ = result.stdout.str().partition("short test summary info")
    assert block.count("raised RuntimeError: boom (down.py, line 2)\n") == 1


def test_a_model_s_function_that_never_returns_is_an_error_at_the_time_limit(
    suite: Suite, workers: tuple[str, ...]
) -> None:
    suite.pytester.makepyfile(down="import time\ndef answer(messages):\n    time.sleep(3600)")
    limit = ("-o", "evalsuite_call_timeout=0.2")
    result = suite.run(*workers, "--model=function:down:answer", "-k", "jp", *limit, model=False)
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*function down:answer gave no answer within 0.2 s (evalsuite_call_timeout)"])


def test_a_crash_of_a_scorer_keeps_its_traceback_above_the_block(suite: Suite) -> None:
    test = suite.path / "test_capitals.py"
    test.write_text(test.read_text().replace("exact_match()]", "lambda sample, transcript: 1 / 0]"))
    result = suite.run("-k", "jp")
    result.stdout.fnmatch_lines(["*ZeroDivisionError*", "*- evalsuite -*", "question  Osaka", "answer    Osaka"])


def test_a_missed_gate_shows_the_worst_cases_behind_it_everywhere(
    suite: Suite, workers: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    hostile = "'</details>\\n```\\n@team %0A::error::x'"
    suite.pytester.makepyfile(
        evil=f"def answer(messages):\n    question = messages[-1]['content']\n"
        f"    return {hostile} if question == 'Osaka' else question"
    )
    model = "--model=function:evil:answer"
    result = suite.run(*workers, model, "--gate=capitals.exact_match >= 0.99", "--junitxml=j.xml", model=False)
    block = ["question  Osaka", "answer    </details>", "          ```"]
    result.stdout.fnmatch_lines(["missed: capitals.exact_match: *", "", "test_capitals?jp?: below*", *block])
    result.stdout.fnmatch_lines(
        ["::error file=test_capitals.py,line=*,title=test_capitals?jp? - below threshold::question  Osaka%0A*"]
    )
    assert "%0A          @team %250A::error::x%0Atarget" in result.stdout.str()
    (failure,) = ET.parse(suite.path / "j.xml").iter("failure")
    assert "\n".join(block) in (failure.text or "")
    comment = next(suite.path.glob("reports/*/comment.md")).read_text("utf-8")
    assert "<details><summary>test_capitals[jp]: below threshold</summary>\n\n````text\nquestion" in comment


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


@pytest.mark.parametrize("options", [(), ("-vv",), ("--tb=native",), ("--tb=short", "--showlocals")])
@pytest.mark.parametrize("error", ["", "ValueError"])
def test_no_line_of_a_failure_has_a_command_to_the_ci_service(
    suite: Suite, options: tuple[str, ...], error: str
) -> None:
    answer = "at ##[set-output name=verdict;]0 ##vso[task.complete]1\x1b[2J\u2028 ::stop-commands::2\n::error::3"
    suite.pytester.makepyfile(evil=f"def answer(messages): return {answer!r}")
    if error:
        test = suite.path / "test_capitals.py"
        test.write_text(test.read_text() + f"\n    raise {error}(transcript.answer)\n")
        test.write_text(test.read_text().replace("(scores)", "(scores, transcript)").replace("    assert", "    #"))
    output = suite.run("--model=function:evil:answer", "-k", "jp", *options, model=False).stdout.str()
    assert "verdict;]0" in output
    assert not [line for line in output.splitlines() if re.search(r"##\w*\[|\x1b|^\s*::", line)]


@pytest.mark.parametrize(
    ("statement", "options", "names"),
    [
        ('scores["exact_match"] == 1.0', (), ["best", "exact_match", "explained"]),
        ('scores["exact_match"] == 1.0', ("-v",), ["best", "exact_match", "explained", "further", "other"]),
        ("min(scores.values()) > 0.5", (), ["best", "exact_match", "explained", "further", "other"]),
    ],
)
def test_a_block_shows_the_scores_that_were_read_or_explained_and_counts_the_others(
    suite: Suite, workers: tuple[str, ...], statement: str, options: tuple[str, ...], names: list[str]
) -> None:
    suite.pytester.makepyfile(test_many=MANY.format(statement=statement))
    result = suite.run(*workers, *options, "--run", "many", "test_many.py")
    lines = [line.split()[:2] for line in result.stdout.lines if line.startswith("score")]
    more = [["scores", str(5 - len(names))]] if len(names) < 5 else []
    assert lines == [*(["score", name] for name in names), *more]
    again = suite.run(*workers, "--run", "again", "--baseline", "many", *options, "test_many.py")
    (baseline,) = {line.strip() for line in again.stdout.lines if line.strip().startswith("(best")}
    assert [pair.split()[0] for pair in baseline.strip("()").split(", ")] == names
    comment = (suite.path / "reports/many/comment.md").read_text("utf-8")
    assert "score     best 0.5000\nscore     explained 0.5000 - half of it\nscores    3 more" in comment


def test_a_missed_gate_shows_its_own_score(
    suite: Suite, workers: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    # In CI, pytest's short summary repeats the whole message of a failure.
    monkeypatch.setenv("CI", "true")
    suite.pytester.makepyfile(test_many=MANY.format(statement="scores"))
    result = suite.run(*workers, "--run", "one", "--gate=many.other >= 0.6", "test_many.py")
    assert [line.split()[1] for line in result.stdout.lines if line.startswith("score")] == [
        "best", "explained", "other", "2"
    ]  # fmt: skip
    assert "score     other 0.5000" in (suite.path / "reports/one/comment.md").read_text("utf-8")


WITHOUT_MESSAGE = """
from evalsuite import Sample, benchmark

class Wordless(Exception):
    def __str__(self):
        raise RuntimeError

def solve(sample, model):
    raise Wordless

@benchmark("wordless", [Sample(id="jp", input="Osaka")], solver=solve)
def test_wordless(transcript):
    pass
"""


def test_an_exception_whose_message_cannot_be_read_is_its_cases_error(suite: Suite, workers: tuple[str, ...]) -> None:
    suite.pytester.makepyfile(test_capitals=WITHOUT_MESSAGE)
    result = suite.run(*workers)
    assert result.ret == 1
    result.stdout.fnmatch_lines(["error     Wordless: its message cannot be read: __str__ raised RuntimeError"])


@pytest.mark.parametrize("workers", [(), ("-n2",)])
def test_failed_subtests_of_a_case_are_no_further_failures(suite: Suite, workers: tuple[str, ...]) -> None:
    suite.pytester.makepyfile(
        test_capitals="""
        from evalsuite import Sample, benchmark, generate

        @benchmark("capitals", [Sample(id=1, input="Paris", target="Rome")], solver=generate())
        def test_capitals(transcript, sample, subtests):
            for number in range(3):
                with subtests.test(number=number):
                    assert transcript.answer == sample.target
        """
    )
    result = suite.run(*workers)
    assert result.ret == 1
    assert "other than" not in result.stdout.str()
