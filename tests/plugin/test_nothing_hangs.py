"""Whatever the code of a case does, the run goes on, and what was paid for is reported."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any

import pytest

from tests.plugin.test_bad_input import shown

if TYPE_CHECKING:
    from tests.conftest import ChatServer, Reply
    from tests.plugin.conftest import Suite

SOLVERS = """
import asyncio, sys
from evalsuite import Sample, benchmark, exact_match
from evalsuite.core.types import Transcript

SAMPLES = [Sample(id=name, input=name, target=name) for name in "abc"]

async def quit():
    {raises}

async def solve(sample, model):
    if sample.id == "b":
        {where}
    return Transcript(sample.id)

def score(sample, transcript):
    if sample.id == "b" and {scorer}:
        {raises}
    return {{"good": 1.0}}

@benchmark("solved", SAMPLES, solver=solve, scorers=[score])
def test_solved(scores):
    assert scores["good"] == 1.0
"""


@pytest.mark.parametrize("raises", ["sys.exit(3)", "raise KeyboardInterrupt"])
@pytest.mark.parametrize("where", ["await quit()", "await asyncio.gather(quit(), asyncio.sleep(0))", "scorer"])
def test_code_that_wants_to_end_the_process_ends_its_case(
    suite: Suite, workers: tuple[str, ...], raises: str, where: str
) -> None:
    scorer = where == "scorer"
    code = SOLVERS.format(raises=raises, where="pass" if scorer else where, scorer=scorer)
    suite.pytester.makepyfile(test_capitals=code)
    suite.run(*workers).assert_outcomes(passed=2, errors=1)
    assert [record["cause"] for record in suite.records()] == [None, "ScoringError", None]


def test_a_plain_solver_that_wants_to_end_the_process_is_told_in_one_message(suite: Suite) -> None:
    suite.pytester.makepyfile(
        test_capitals="""
        import sys
        from evalsuite import Sample, benchmark

        def solve(sample, model):
            sys.exit(4)

        @benchmark("solved", [Sample(id="a", input="x")], solver=solve)
        def test_solved(transcript): ...
        """
    )
    text = suite.run().stdout.str()
    assert "the solver raised SystemExit: 4; it should raise an exception" in text
    assert "RaisedInThread" not in text


def test_a_forked_child_that_asks_is_told_so(suite: Suite) -> None:
    suite.pytester.makepyfile(
        test_capitals="""
        import os, warnings
        from evalsuite import Sample, benchmark
        warnings.simplefilter("ignore")

        @benchmark("forking", [Sample(id="a", input="x")])
        def test_forking(model):
            assert model.chat("first").text == "first"
            read, write = os.pipe()
            if os.fork() == 0:
                try:
                    model.chat("second")
                except Exception as error:
                    os.write(write, str(error).encode())
                os._exit(0)
            os.wait()
            assert os.read(read, 1000).startswith(b"a forked child process cannot ask a model")
        """
    )
    suite.run(fresh=True).assert_outcomes(passed=1)


def test_an_async_test_that_nothing_runs_is_an_error_and_no_missed_threshold(suite: Suite) -> None:
    file = suite.path / "test_capitals.py"
    file.write_text(file.read_text().replace("def test_capitals", "async def test_capitals"))
    result = suite.run("--gate=capitals.exact_match >= 0", "-p", "no:asyncio")
    assert {record["outcome"] for record in suite.records()} == {"error"}
    assert result.ret == 12


def test_cases_that_run_again_leave_the_record_of_their_last_time(suite: Suite, workers: tuple[str, ...]) -> None:
    suite.pytester.makepyfile(
        test_capitals="""
        from pathlib import Path
        from evalsuite import Sample, benchmark, exact_match, generate

        SAMPLES = [Sample(id=name, input=name, target=name) for name in "ab"]

        @benchmark("again", SAMPLES, solver=generate(), scorers=[exact_match()])
        def test_again(sample, scores):
            seen = Path(f"{sample.id}.seen")
            if not seen.exists():
                seen.touch()
                raise AssertionError("the first time")
        """
    )
    result = suite.run(*workers, "--reruns=2")
    assert result.ret == 0
    shown(result)
    assert {record["case"][-3:]: record["outcome"] for record in suite.records()} == {"[a]": "passed", "[b]": "passed"}


@pytest.mark.parametrize("option", ["--collect-only", "--setup-plan"])
def test_looking_at_the_cases_asks_nobody(suite: Suite, chat_server: ChatServer, option: str) -> None:
    suite.model = ("--model=gpt-test", f"--model-base-url={chat_server.url}")
    suite.run(option)
    assert not chat_server.bodies
    assert not suite.runs()


@pytest.mark.parametrize(
    ("number", "options"), [(signal.SIGTERM, []), (signal.SIGHUP, []), (signal.SIGTERM, ["-n", "2"])]
)
def test_a_signal_that_ends_the_run_leaves_a_report_and_says_how_to_go_on(
    suite: Suite, chat_server: ChatServer, options: list[str], number: signal.Signals
) -> None:
    sent = threading.Event()

    def reply(body: dict[str, Any]) -> Reply:
        if "Osaka" in str(body):
            # In flight when the signal comes.
            sent.wait(300)
        return chat_server.say(body["messages"][-1]["content"])

    chat_server.reply = reply
    suite.model = ("--model=gpt-test", f"--model-base-url={chat_server.url}")
    with suite.start("-v", *options, "--run=r", stdout=subprocess.PIPE) as process:
        passed, said = 0, ""
        for line in map(bytes.decode, process.stdout):
            said += line
            passed += "PASSED" in line
            if passed == 2 and "PASSED" in line:
                os.kill(process.pid, number)
                sent.set()
    assert process.returncode == 128 + number, said
    assert f"ended by {number.name}; go on with --resume last" in said
    assert "report: reports/r/report.md" in said
    assert "go on with it: --resume r" in said
    assert f"it was ended by {number.name}" in suite.report("r")
    assert sum(record["outcome"] == "passed" for record in suite.records("r")) >= 1


def test_few_open_files_mean_fewer_connections_and_one_line(suite: Suite, chat_server: ChatServer) -> None:
    (suite.path / "test_capitals.py").unlink()
    suite.pytester.makepyfile(
        test_many="""
        from evalsuite import Sample, benchmark, exact_match, generate

        SAMPLES = [Sample(id=str(n), input=str(n), target=str(n)) for n in range(150)]

        @benchmark("many", SAMPLES, solver=generate(), scorers=[exact_match()])
        def test_many(scores):
            assert scores["exact_match"] == 1.0
    """
    )
    chat_server.reply = lambda body: chat_server.say(body["messages"][-1]["content"], delay=0.05)
    command = f"{sys.executable} -m pytest --model=m --model-base-url={chat_server.url}"
    result = suite.pytester.run("sh", "-c", f"ulimit -n 100; exec {command} --max-connections=200")
    result.assert_outcomes(passed=150)
    assert result.stdout.str().count("connections instead of 200") == 1
    assert 4 <= chat_server.most < 100


def test_no_wall_time_is_negative_where_the_clock_on_the_wall_is_set_back(suite: Suite) -> None:
    suite.pytester.makeconftest(
        """
        import itertools, time

        pytest_plugins = ["evalsuite.plugin"]
        ticks = itertools.count()
        time.time = lambda: 1_700_000_000.0 - 100.0 * next(ticks)
        """
    )
    suite.run(fresh=True).assert_outcomes(passed=2, failed=1)
    assert all(record["seconds"] >= 0 <= record["solving_seconds"] for record in suite.records())
    assert suite.summary()["seconds"] >= 0
    assert "-" not in re.findall(r"([-\d.]+) s\b", suite.report())


@pytest.mark.own_interpreter
def test_a_signal_between_two_lines_ends_the_run_like_one_within_a_line(suite: Suite) -> None:
    suite.pytester.makepyfile(
        test_capitals="""
        import os, signal
        from evalsuite import Sample, benchmark, exact_match, generate

        def end():
            os.kill(os.getpid(), signal.SIGHUP)
            os.getpid()

        # No instruction of it has a line, as some of each function have none.
        end.__code__ = end.__code__.replace(co_linetable=b"")

        @benchmark("capitals", [Sample(id=name, input=name, target=name) for name in "ab"],
                   solver=generate(), scorers=[exact_match()])
        def test_capitals(sample, scores):
            if sample.id == "b":
                end()
        """
    )
    result = suite.run("--run=r", fresh=True)
    assert result.ret == 128 + signal.SIGHUP
    assert "INTERNALERROR" not in shown(result)
    assert "ended by SIGHUP; go on with --resume last" in shown(result)


INTERRUPTED_AT_THE_START = """
    import os, signal
    import pytest

    pytest_plugins = ["evalsuite.plugin"]

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(session):
        if not hasattr(session.config, "workerinput"):
            os.kill(os.getpid(), signal.SIGINT)

    # pytest calls this hook while it ends the session because of the first signal.
    def pytest_keyboard_interrupt():
        os.kill(os.getpid(), signal.SIGINT)
    """


@pytest.mark.own_interpreter
@pytest.mark.parametrize("workers", ["0", "2"])
def test_an_interrupt_that_arrives_twice_at_the_start_leaves_no_traceback(suite: Suite, workers: str) -> None:
    suite.pytester.makeconftest(INTERRUPTED_AT_THE_START)
    result = suite.run("-n", workers, fresh=True)
    # If the machine is so slow that a second passes in between, the second signal ends the session at once.
    assert result.ret in {pytest.ExitCode.INTERRUPTED, 128 + signal.SIGINT}
    assert "Traceback" not in shown(result)


INTERRUPTED_TWICE = """
    import os, signal, time
    from evalsuite import Sample, benchmark, exact_match, generate

    @benchmark("capitals", [Sample(id="a", input="a", target="a")], solver=generate(), scorers=[exact_match()])
    def test_capitals(sample, scores):
        try:
            os.kill(os.getpid(), signal.SIGINT)
        finally:
            time.sleep({seconds})
            os.kill(os.getpid(), signal.SIGINT)
    """


@pytest.mark.own_interpreter
def test_a_second_interrupt_ends_the_run_at_once_and_without_a_traceback(suite: Suite) -> None:
    suite.pytester.makepyfile(test_capitals=INTERRUPTED_TWICE.format(seconds=1.5))
    result = suite.run("--run=r", fresh=True)
    assert result.ret == 128 + signal.SIGINT
    assert "ended at once" in shown(result)
    assert "Traceback" not in shown(result)


@pytest.mark.own_interpreter
def test_an_interrupt_that_a_wrapper_passes_on_counts_once(suite: Suite) -> None:
    suite.pytester.makepyfile(test_capitals=INTERRUPTED_TWICE.format(seconds=0))
    result = suite.run("--run=r", fresh=True)
    assert result.ret == pytest.ExitCode.INTERRUPTED
    assert "interrupted from the keyboard" in shown(result)
    assert suite.report("r")
