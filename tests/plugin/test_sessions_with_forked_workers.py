"""Sessions whose workers are forks of one process: xdist must find them to be as ever."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.plugin.conftest import Suite

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="workers are forked on Linux alone")

DYING = """
import multiprocessing
import os
import signal

import pytest

@pytest.fixture(autouse=True)
def parent():
    with open(f"/proc/{os.getppid()}/cmdline") as file:
        assert "template_process" in file.read()

def test_spawns():
    process = multiprocessing.get_context("spawn").Process(target=os.getpid)
    process.start()
    process.join()
    assert process.exitcode == 0

def test_leaves():
    os._exit(7)

def test_is_killed():
    os.kill(os.getpid(), signal.SIGKILL)

@pytest.mark.parametrize("number", range(6))
def test_lives(number):
    pass
"""

WAITING = """
import time
from pathlib import Path

import pytest

@pytest.mark.parametrize("number", range(6))
def test_waits(number):
    Path(f"begun-{number}").touch()
    time.sleep(2)
"""


@pytest.fixture(autouse=True)
def interruptible() -> Iterator[None]:
    """What was started in the background ignores SIGINT, and so would the session that it starts."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def start(suite: Suite, *args: str) -> subprocess.Popen[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_")}
    return subprocess.Popen(
        [sys.executable, "-m", "pytest", "-n", "3", "-pno:rerunfailures", *args],
        cwd=suite.path,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def processes_in(folder: Path) -> list[str]:
    """Command lines of processes that are there, of whatever parent, but for this one."""
    commands = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if process.name != str(os.getpid()) and (process / "cwd").readlink() == folder:
                commands.append((process / "cmdline").read_text())
        except OSError:
            continue
    return commands


def wait_for_end_in(folder: Path) -> None:
    deadline = time.monotonic() + 60
    while processes_in(folder):
        assert time.monotonic() < deadline, processes_in(folder)
        time.sleep(0.05)


def test_workers_that_die_are_noticed_and_replaced(suite: Suite) -> None:
    suite.pytester.makepyfile(test_capitals=DYING)
    with start(suite) as session:
        output, _ = session.communicate()
    assert session.returncode == 1, output
    assert "2 failed, 7 passed" in output
    assert "crashed while running 'test_capitals.py::test_leaves'" in output
    assert "crashed while running 'test_capitals.py::test_is_killed'" in output
    wait_for_end_in(suite.path)


@pytest.mark.parametrize(
    ("number", "group", "status"),
    [
        (signal.SIGINT, True, 2),
        (signal.SIGKILL, False, -signal.SIGKILL),
    ],
    ids=["Ctrl-C", "SIGKILL"],
)
def test_nothing_goes_on_when_the_session_is_ended(
    suite: Suite, *, number: signal.Signals, group: bool, status: int
) -> None:
    suite.pytester.makepyfile(test_capitals=WAITING)
    with start(suite) as session:
        while len([*suite.path.glob("begun-*")]) < 3:
            assert session.poll() is None
            time.sleep(0.05)
        assert sum("template_process" in command for command in processes_in(suite.path)) == 4
        (os.killpg if group else os.kill)(session.pid, number)
        session.communicate()
    assert session.returncode == status
    wait_for_end_in(suite.path)
