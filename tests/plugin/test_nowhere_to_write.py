"""Folders that cannot be written and disks that are full: one message, status 12, nothing paid in vain."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from evalsuite.cli import main

if TYPE_CHECKING:
    from tests.conftest import ChatServer
    from tests.plugin.conftest import Suite


def shown(result: pytest.RunResult) -> str:
    """All that the session said, which must hold no traceback."""
    text = result.stdout.str() + result.stderr.str()
    assert "Traceback" not in text
    assert "INTERNALERROR" not in text
    return text


@pytest.mark.parametrize("folder", ["file", "file/deeper", "/proc/nope"])
def test_a_folder_in_which_no_run_can_be_kept_is_refused_before_collection(suite: Suite, folder: str) -> None:
    (suite.path / "file").touch()
    result = suite.run(f"--reports={folder}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    text = shown(result)
    assert text.count("ERROR: ") == 1
    assert "no run can be kept there" in text
    assert "collected" not in text


@pytest.mark.parametrize("parallel", [(), ("-n", "2")], ids=["plain", "n2"])
def test_where_no_run_can_be_kept_nothing_is_asked(
    suite: Suite, chat_server: ChatServer, parallel: tuple[str, ...]
) -> None:
    (suite.path / "reports").touch()
    suite.model = ("--model=gpt-test", f"--model-base-url={chat_server.url}")
    result = suite.run(*parallel, fresh=True)
    assert result.ret == 12
    assert "cannot be made: Not a directory; name another folder with --reports" in shown(result)
    assert chat_server.bodies == []


def test_a_folder_for_runs_is_not_made_where_no_case_runs(suite: Suite) -> None:
    assert suite.run("--reports=new", "--collect-only").ret == 0
    assert suite.run("--reports=new", "-k", "nothing").ret == pytest.ExitCode.NO_TESTS_COLLECTED
    assert not (suite.path / "new").exists()


def test_a_run_that_cannot_be_written_is_not_resumed(suite: Suite) -> None:
    suite.run("--run=r")
    lock = suite.path / "reports" / "r" / ".journal.lock"
    lock.unlink()
    lock.mkdir()
    result = suite.run("--resume=r")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "cannot be written (Is a directory)" in shown(result)


SMALL_DISK = """
import resource

def pytest_sessionstart(session):
    if not hasattr(session.config, "workerinput"):
        # The kernel refuses to let any file of this process grow further, as a full disk would.
        resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, resource.RLIM_INFINITY))

def pytest_unconfigure():
    # A measurement of coverage is written after the session, and is not what is tested.
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
"""
LONG_ANSWERS = """
from evalsuite import Sample, benchmark, exact_match, generate

SAMPLES = [Sample(id=str(n), input=f"{n} " + "long " * 20_000, target="x") for n in range(12)]

@benchmark("long", SAMPLES, solver=generate(), scorers=[exact_match()])
def test_long(scores):
    pass
"""


def test_a_disk_that_is_full_at_the_start_is_not_taken_for_a_damaged_journal(suite: Suite) -> None:
    with (suite.path / "conftest.py").open("a") as conftest:
        conftest.write(SMALL_DISK.replace("400_000", "20_000"))
    result = suite.run(fresh=True)
    assert result.ret == 12
    text = shown(result)
    assert "the run cannot begin: " in text
    assert "not a journal" not in text


@pytest.mark.parametrize("parallel", [(), ("-n", "2")], ids=["plain", "n2"])
def test_a_full_disk_ends_the_run_and_says_so_once(suite: Suite, parallel: tuple[str, ...]) -> None:
    conftest = suite.path / "conftest.py"
    conftest.write_text(conftest.read_text() + SMALL_DISK)
    suite.pytester.makepyfile(test_long=LONG_ANSWERS)
    result = suite.run(*parallel, "--run=full", "test_long.py", fresh=True)
    assert result.ret == 12
    assert "cannot be kept" in shown(result)
    assert result.parseoutcomes().get("passed", 0) < 12


BLOCKING = """
import pathlib
from test_capitals import SAMPLES
from evalsuite import benchmark, exact_match, generate

@benchmark("blocking", SAMPLES, solver=generate(), scorers=[exact_match()])
def test_blocking(scores):
    pathlib.Path("reports/r/BLOCKED").mkdir(exist_ok=True)
"""


@pytest.mark.parametrize("blocked", ["report.md", ".run.json.draft"])
def test_a_report_that_cannot_be_written_is_one_message_and_the_records_stay(suite: Suite, blocked: str) -> None:
    suite.pytester.makepyfile(test_blocking=BLOCKING.replace("BLOCKED", blocked))
    result = suite.run("--run=r", "test_blocking.py")
    assert result.ret == 12
    text = shown(result)
    assert f"the report cannot be written: {suite.path / 'reports' / 'r'}" in text
    assert "continue with --resume last" in text
    assert len(suite.records("r")) == 3


@pytest.mark.parametrize(
    "command",
    [
        ("report", "r", "--to=file/deeper"),
        ("gate", "r", "--to=file/deeper"),
        ("compare", "r", "s", "--to=file/deeper"),
        ("runs", "merge", "s", "--to=file/m"),
    ],
    ids=lambda command: command[0],
)
def test_a_command_that_cannot_write_says_so_in_one_line(
    suite: Suite, capsys: pytest.CaptureFixture[str], command: tuple[str, ...]
) -> None:
    suite.run("--run=r")
    suite.run("--run=s", "--shard=1/1")
    (suite.path / "file").touch()
    capsys.readouterr()
    assert main(command) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("evalsuite: ")
    assert said.err.count("\n") == 1
