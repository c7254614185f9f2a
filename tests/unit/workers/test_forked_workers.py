"""Workers that execnet takes for fresh interpreters and that are forks of one process."""

from __future__ import annotations

import os
import signal
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import execnet
import pytest

from evalsuite.workers.surroundings import surroundings
from evalsuite.workers.warm_start import SWITCH, Template, can_fork, is_plain, open_template

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="workers are forked on Linux alone")

FACTS = """
import builtins, os, signal, sys
main = sys.modules["__main__"]
channel.send({
    "argv": (sys.argv, sys.orig_argv, sys.executable, repr(sys.flags), sys.path),
    "process": (os.getcwd(), dict(os.environ), os.getpgid(0), os.getsid(0)),
    "files": sorted((name, os.readlink(f"/proc/self/fd/{name}").partition(":")[0])
                    for name in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{name}")),
    "streams": [(stream.encoding, stream.errors, stream.line_buffering, stream.write_through, stream.fileno())
                for stream in (sys.stdin, sys.stdout, sys.stderr, sys.__stdin__, sys.__stdout__, sys.__stderr__)],
    "signals": [repr(signal.getsignal(number)).partition(" at ")[0] for number in range(1, 32)],
    "main": (sorted(set(vars(main)) - {"io"}), repr(main.__loader__), main.__spec__),
    "imports": [repr(finder).partition(" at ")[0] for finder in sys.meta_path],
    "classes": type(channel).__module__,
})
"""


@contextmanager
def steady_environment() -> Iterator[None]:
    """Without coverage's variables, and without the one in which pytest names each phase of each test."""
    with pytest.MonkeyPatch.context() as patch:
        for name in [*os.environ]:
            if name.startswith("COVERAGE_") or name == "PYTEST_CURRENT_TEST":
                patch.delenv(name)
        yield


def new_template() -> Template:
    with steady_environment():
        opened = open_template(4)
    assert opened is not None
    return opened


@pytest.fixture(scope="module")
def template() -> Iterator[Template]:
    opened = new_template()
    yield opened
    opened.close()
    assert not Path(opened.folder).exists()


@pytest.fixture
def group() -> Iterator[execnet.Group]:
    own = execnet.Group(execmodel="main_thread_only")
    yield own
    own.terminate(timeout=5)


def worker_of(group: execnet.Group, template: Template | None) -> execnet.Gateway:
    """A worker as xdist asks for it: forked by a template, or fresh."""
    spec = execnet.XSpec("execmodel=main_thread_only//popen")
    if template is not None:
        spec.python = template.command
    with steady_environment():
        return group.makegateway(spec)


def told(gateway: execnet.Gateway, code: str) -> Any:
    channel = gateway.remote_exec(code)
    answer = channel.receive(60)
    channel.waitclose()
    return answer


def pids(gateway: execnet.Gateway) -> tuple[int, int, int]:
    """Of what execnet started, of the worker, and of the worker's parent."""
    pid, parent = told(gateway, "import os; channel.send((os.getpid(), os.getppid()))")
    return gateway._io.popen.pid, pid, parent  # type: ignore[attr-defined]


def wait_for(end: Any) -> None:
    deadline = time.monotonic() + 60
    while not end():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def is_gone(pid: int) -> bool:
    try:
        return ") Z " in Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return True


def test_a_forked_worker_finds_itself_as_a_fresh_one_does(template: Template, group: execnet.Group) -> None:
    forked, fresh = worker_of(group, template), worker_of(group, None)
    launcher, pid, parent = pids(forked)
    assert parent == template.process.pid
    assert launcher not in {pid, parent}
    assert told(forked, FACTS) == told(fresh, FACTS)


def test_a_forked_worker_has_pytest_and_nothing_of_a_session(
    template: Template, group: execnet.Group
) -> None:
    code = "import sys; channel.send([name in sys.modules for name in {names!r}])"
    names = (
        "pytest",
        "evalsuite.plugin",
        "evalsuite.engine.prefetch",
        "conftest",
        "xdist",
        "numpy",
        "openai",
    )
    forked = worker_of(group, template)
    assert told(forked, code.format(names=names)) == [True, True, True, False, False, False, False]


def test_forked_workers_draw_random_numbers_of_their_own(template: Template, group: execnet.Group) -> None:
    code = "import random, ssl; channel.send((random.random(), ssl.RAND_bytes(8)))"
    one, other = (told(worker_of(group, template), code) for _ in range(2))
    assert all(drawn != again for drawn, again in zip(one, other, strict=True))


@pytest.mark.parametrize(
    ("end", "status"),
    [("os._exit(7)", 7), ("os.kill(os.getpid(), 9)", -9), ("os.kill(os.getpid(), 15)", -15)],
    ids=["exit", "SIGKILL", "SIGTERM"],
)
def test_the_launcher_ends_as_its_worker_does(
    template: Template, group: execnet.Group, end: str, status: int
) -> None:
    worker = worker_of(group, template)
    channel = worker.remote_exec(f"import os; {end}")
    with pytest.raises(EOFError):
        channel.receive(60)
    assert worker._io.wait() == status
    assert pids(worker_of(group, template))[2] == template.process.pid


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_signal_to_the_launcher_ends_the_worker(
    template: Template, group: execnet.Group, number: signal.Signals
) -> None:
    worker = worker_of(group, template)
    launcher, pid, _ = pids(worker)
    os.kill(launcher, number)
    assert worker._io.wait() == -number
    wait_for(lambda: is_gone(pid))


def test_where_a_fresh_interpreter_would_differ_the_launcher_becomes_one(
    template: Template, group: execnet.Group, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONHASHSEED", "3")
    launcher, pid, parent = pids(worker_of(group, template))
    assert (launcher, os.getpid()) == (pid, parent)
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)
    launcher, pid, _ = pids(worker_of(group, template))
    assert launcher == pid
    monkeypatch.undo()
    assert pids(worker_of(group, template))[2] == template.process.pid


def test_a_killed_template_takes_no_worker_with_it(group: execnet.Group) -> None:
    own = new_template()
    worker = worker_of(group, own)
    _, pid, _ = pids(worker)
    own.process.kill()
    own.process.wait()
    assert pids(worker)[1] == pid
    launcher, later, _ = pids(worker_of(group, own))
    assert launcher == later
    os.kill(pid, signal.SIGKILL)
    assert worker._io.wait() == 1
    own.close()


def test_surroundings_are_what_a_child_takes_over() -> None:
    before = surroundings(os.getpid())
    assert surroundings(os.getpid()) == before
    mask = os.umask(0o123)
    try:
        assert surroundings(os.getpid()) != before
    finally:
        os.umask(mask)
    with pytest.raises(OSError, match="No such file"):
        surroundings(2**22 + 1)


def test_a_template_ends_with_its_session_and_leaves_no_file() -> None:
    own = new_template()
    assert own.process.stdin is not None
    own.process.stdin.close()
    own.process.wait()
    assert not Path(own.folder).exists()


@pytest.mark.parametrize("variable", [SWITCH, "COVERAGE_PROCESS_START", "COV_CORE_SOURCE"])
def test_a_variable_of_the_environment_keeps_workers_fresh(
    monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    for name in ("coverage", "debugpy", "pydevd"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setattr(sys, "getprofile", lambda: None)
    monkeypatch.setattr(sys, "gettrace", lambda: None)
    assert can_fork({})
    assert not can_fork({variable: "1"})
    monkeypatch.setattr(sys, "getprofile", lambda: print)
    assert not can_fork({})


def test_without_a_place_for_its_socket_there_is_no_template(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deep = tmp_path / ("a" * 100)
    deep.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(deep))
    assert open_template(3) is None
    assert not [*deep.iterdir()]
    monkeypatch.setattr("tempfile.tempdir", str(deep / "nowhere"))
    assert open_template(3) is None


def test_a_template_that_is_stuck_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evalsuite.workers.warm_start.PATIENCE", 0.01)
    own = new_template()
    own.process.send_signal(signal.SIGSTOP)
    own.close()
    assert own.process.returncode == -signal.SIGKILL
    assert not Path(own.folder).exists()


@pytest.mark.parametrize(
    "spec",
    [
        "ssh=host",
        "socket=127.0.0.1:1",
        "popen//python=python3",
        "popen//chdir=elsewhere",
        "popen//env:A=b",
        "popen//nice=3",
    ],
)
def test_workers_that_are_asked_for_in_another_way_are_left_alone(spec: str) -> None:
    assert not is_plain(execnet.XSpec(spec))
    assert is_plain(execnet.XSpec("execmodel=main_thread_only//popen"))
