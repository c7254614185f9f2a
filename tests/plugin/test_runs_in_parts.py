"""A suite with more cases than a session may hold runs in parts, one session after another."""

from __future__ import annotations

import json
import re
import signal
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.plugin.conftest import Suite

GATES = ("--gate=many.exact_match >= 0.7", "--gate=few.exact_match >= 0.7")
CONFTEST = """
import os
import evalsuite.engine.cases

evalsuite.engine.cases.MOST_CASES = int(os.environ.get("MOST_CASES", "1000"))
pytest_plugins = ["evalsuite.plugin"]
"""
TWO = """
from pathlib import Path

from evalsuite import Sample, benchmark, exact_match, generate

def samples(count):
    return [Sample(id=f"s{n}", input=str(n), target="no" if n == 1 else str(n)) for n in range(count)]

@benchmark("many", samples(4), solver=generate(), scorers=[exact_match()], epochs=2)
def test_many(scores):
    assert scores["exact_match"] == 1.0

@benchmark("few", samples(1), solver=generate(), scorers=[exact_match()])
def test_few(scores):
    assert scores["exact_match"] == 1.0

def test_plain():
    with Path("plain.txt").open("a") as file:
        file.write("x")
"""


@pytest.fixture
def large(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> Suite:
    """Nine cases of two benchmarks, which are three parts of four cases at most."""
    suite.pytester.makeconftest(CONFTEST)
    suite.path.joinpath("test_capitals.py").unlink()
    suite.pytester.makepyfile(test_two=TWO)
    monkeypatch.setenv("MOST_CASES", "4")
    return suite


def _read(suite: Suite, run: str) -> tuple[list[dict[str, Any]], list[str], dict[str, Any]]:
    records = [{**record, "seconds": 0, "solving_seconds": 0} for record in suite.records(run)]
    report = [line for line in suite.report(run).splitlines() if not re.search(rf"{run}|^\| (date|wall time)", line)]
    info = json.loads((suite.path / "reports" / run / "run.json").read_text())
    return records, report, {name: info.get(name) for name in ("collected", "usage", "metrics", "stopped", "parts")}


def test_a_run_in_parts_equals_an_undivided_one(
    large: Suite, workers: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    options = (*workers, *GATES)
    divided = large.run(*options, "--run=divided", fresh=True)
    divided.stdout.fnmatch_lines(["*part 1 of 3 ended: 4 of 9 cases; the run goes on", "*part 2 of 3 ended: 8 of 9*"])
    assert large.path.joinpath("plain.txt").read_text() == "x"
    monkeypatch.setenv("MOST_CASES", "1000")
    whole = large.run(*options, "--run=whole", fresh=True)
    assert divided.ret == whole.ret == 0
    assert _read(large, "divided") == _read(large, "whole")


def test_a_failure_in_the_first_part_decides_the_status(large: Suite) -> None:
    assert large.run("-k", "s1 or s2 or few", "--run=r", fresh=True).ret == 1
    assert [record["outcome"] for record in large.records("r")] == ["passed", "failed", "failed", "passed", "passed"]
    with large.path.joinpath("test_two.py").open("a") as file:
        file.write("\n    raise OSError\n")
    # A gate excuses the cases, and the plain test of the first part fails.
    result = large.run(*GATES, fresh=True)
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*1 failure other than failed cases*"])


def test_a_replay_runs_in_parts(large: Suite) -> None:
    assert large.run("--run=first", *GATES, fresh=True).ret == 0
    again = large.run("--run=again", *GATES, "--replay=last", fresh=True)
    assert again.ret == 0
    assert again.stdout.str().count("the run goes on") == 2
    assert _read(large, "again")[0] == _read(large, "first")[0]


def test_an_interrupted_part_ends_the_run_and_can_be_resumed(large: Suite) -> None:
    result = large.run("-x", "--run=r", fresh=True)
    assert result.ret == 1
    assert "the run goes on" not in result.stdout.str()
    again = large.run("--resume=last", *GATES, fresh=True)
    assert again.ret == 0
    assert len(large.records("r")) == 9
    # A finished run begins with its first part again.
    once_more = large.run("--resume=r", fresh=True)
    assert once_more.stdout.str().count("the run goes on") == 2


def test_a_run_with_a_killed_part_is_resumed(large: Suite) -> None:
    app = large.path / "app.py"
    echo = app.read_text()
    app.write_text(
        "import os, signal\n"
        + echo.replace("return", 'messages[-1]["content"] != "3" or os.kill(os.getpid(), signal.SIGKILL)\n    return')
    )
    killed = large.run("--run=r", *GATES, fresh=True)
    assert killed.ret == signal.SIGKILL
    app.write_text(echo)
    again = large.run("--resume=last", *GATES, fresh=True)
    assert again.ret == 0
    # The run begins with its first part again, because its code may have changed; no stored answer is asked again.
    assert again.stdout.str().count("the run goes on") == 2
    assert len(large.records("r")) == 9
    assert _read(large, "r")[2]["usage"]["calls"] == 9


@pytest.mark.parametrize("change", ["samples(4)", "samples(4)[::-1]"])
def test_a_suite_that_changes_between_parts_is_refused(large: Suite, change: str) -> None:
    large.pytester.makeconftest(CONFTEST + "if 'EVALSUITE_PART' in os.environ:\n    os.environ['LATER'] = '1'\n")
    other = "samples(5)" if change == "samples(4)" else change
    later = f"import os\n{TWO}".replace("samples(4)", f"{other} if os.environ.get('LATER') else samples(4)")
    large.pytester.makepyfile(test_two=later)
    refused = large.run("--run=r", *GATES, fresh=True)
    assert refused.ret == 12
    refused.stdout.fnmatch_lines(["*the next --resume begins with the first part again*"])


def test_a_signal_to_the_first_process_leaves_the_run_incomplete(large: Suite) -> None:
    interrupt = "if 'EVALSUITE_PART' in os.environ:\n    import signal\n    os.kill(os.getppid(), signal.SIGINT)\n"
    large.pytester.makeconftest(CONFTEST + interrupt)
    assert large.run("--run=r", *GATES, fresh=True).ret == 12
    assert large.run("--resume=r", *GATES, fresh=True).ret == 12


def test_a_gate_on_a_tag_may_find_its_cases_in_a_later_part(large: Suite) -> None:
    tagged = TWO.replace('target="no"', 'tags={"level": "hard" if n == 3 else "easy"}, target="no"')
    large.pytester.makepyfile(test_two=tagged)
    assert large.run("--run=r", "--gate=many[hard].exact_match >= 1", *GATES, fresh=True).ret == 0


def test_parts_without_a_selected_test_end_as_a_session_without_tests(large: Suite) -> None:
    assert large.run("--run=r", "-m", "skipif", fresh=True).ret == 5


def test_a_part_whose_code_ends_the_process_leaves_the_run_incomplete(large: Suite) -> None:
    exit_early = "LATER = 'EVALSUITE_PART' in os.environ\ndef pytest_runtest_setup():\n    LATER and os._exit(0)\n"
    large.pytester.makeconftest(CONFTEST + exit_early)
    assert large.run("--run=ended", fresh=True).ret == 12
