"""Cases beside unit tests: a session that nobody asked for cases is decided by the unit tests alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.plugin.conftest import Suite


@pytest.fixture
def project(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> Suite:
    """A suite whose project has a unit test, and no key for its model."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    suite.pytester.makefile(".ini", pytest="[pytest]\nevalsuite_model = gpt-4\n")
    suite.pytester.makepyfile(test_sums="def test_sums():\n    assert 1 + 1 == 2\n")
    return suite


@pytest.mark.parametrize("workers", [(), ("-n2",)])
def test_plain_pytest_runs_the_unit_tests_and_skips_cases_without_a_key(
    project: Suite, workers: tuple[str, ...]
) -> None:
    result = project.run(*workers, model=False)
    result.assert_outcomes(passed=1, skipped=1)
    assert result.ret == 0
    result.stdout.fnmatch_lines(["evalsuite: 1 benchmark skipped: *OPENAI_API_KEY*"])
    assert not project.runs()


def test_a_failing_unit_test_decides_the_status(project: Suite) -> None:
    project.pytester.makepyfile(test_wrong="def test_wrong():\n    assert False\n")
    assert project.run(model=False).ret == 1


@pytest.mark.parametrize("asked", [("--model=gpt-4",), ("--gate=capitals.exact_match >= 0.5",), ("--limit=1",)])
def test_cases_that_were_asked_for_are_an_error_without_a_key(project: Suite, asked: tuple[str, ...]) -> None:
    result = project.run(*asked, model=False)
    assert result.ret != 0
    assert "OPENAI_API_KEY" in result.stdout.str() + result.stderr.str()


@pytest.mark.parametrize("workers", [(), ("-n2",)])
def test_a_session_of_cases_alone_is_an_error_without_a_key(project: Suite, workers: tuple[str, ...]) -> None:
    (project.path / "test_sums.py").unlink()
    result = project.run(*workers, model=False)
    assert result.ret not in {0, 5}
    assert "OPENAI_API_KEY" in result.stdout.str() + result.stderr.str()


def test_the_header_does_not_name_a_model_where_there_is_none(project: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evalsuite.engine.preparation.find_default_model", lambda: None)
    project.pytester.makefile(".ini", pytest="[pytest]\nevalsuite_limit = 3\n")
    result = project.run(model=False)
    assert result.ret == 0
    assert "model None" not in result.stdout.str()
    result.stdout.fnmatch_lines(["evalsuite: 1 benchmark skipped: no model: name one with --model*"])


def test_a_spend_limit_with_an_unknown_price_is_refused_before_the_run_exists(suite: Suite) -> None:
    result = suite.run("--model=gpt-4.9x", "--max-cost=1", model=False)
    assert result.ret == 4
    assert "evalsuite_prices" in result.stderr.str()
    assert not suite.runs()


def test_a_file_of_prices_lets_a_spend_limit_be_kept(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    (suite.path / "prices.toml").write_text('"gpt-4.9x" = [1, 2]\n')
    result = suite.run("--model=gpt-4.9x", "--max-cost=1", "-oevalsuite_prices=prices.toml", "--plan", model=False)
    assert result.ret == 0, result.stdout.str()


SCORERS = """
from evalsuite import Sample, Score, benchmark, generate

SAMPLES = [Sample(id="fr", input="Paris", target="Paris")]

def right(sample, transcript):
    return transcript.answer == sample.target

async def length(sample, transcript):
    return len(transcript.answer) / 10

def noted(sample, transcript):
    return Score(0.25, note="a quarter")

@benchmark("own", SAMPLES, solver=generate(), scorers=[right, length, noted])
def test_own(scores):
    assert scores == {"right": 1.0, "length": 0.5, "noted": 0.25}
"""


def test_a_plain_function_that_returns_one_number_gives_a_score_of_its_name(suite: Suite) -> None:
    (suite.path / "test_capitals.py").write_text(SCORERS, encoding="utf-8")
    suite.run().assert_outcomes(passed=1)


def test_a_lambda_that_returns_a_number_is_told_to_have_a_name(suite: Suite) -> None:
    text = SCORERS.replace("[right, length, noted]", "[lambda sample, transcript: 1.0]")
    (suite.path / "test_capitals.py").write_text(text, encoding="utf-8")
    result = suite.run()
    assert "has no name for this score" in result.stdout.str()
    assert result.ret != 0


def test_the_debugger_shows_the_case_and_its_failure_counts_when_it_is_left(suite: Suite) -> None:
    child = suite.pytester.spawn_pytest(f"{' '.join(suite.model)} --pdb --run=r")
    child.expect("pp evalsuite_case shows sample, transcript and scores")
    child.expect("Pdb")
    child.sendline("pp evalsuite_case")
    child.expect("Transcript\\(")
    child.sendline("q")
    child.expect("Exit")
    child.wait()
    outcomes = [record["outcome"] for record in suite.records()]
    assert sorted(outcomes) == ["failed", "passed", "passed"]


def test_the_lowest_scores_leave_out_those_that_cannot_be_higher(suite: Suite) -> None:
    suite.run()
    lowest = suite.report().split("## Lowest scores")[1].split("\n## ")[0]
    assert "capitals[jp]" in lowest
    assert "capitals[fr]" not in lowest


def test_the_terminal_names_the_page(suite: Suite) -> None:
    suite.run("--run=r").stdout.fnmatch_lines(["page: reports/r/report.html"])
