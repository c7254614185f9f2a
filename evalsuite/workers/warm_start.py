"""Has execnet start this host's workers as forks of one template process, where that is worth it and safe.

    pytest ── template ──┬── worker gw0
       │                 └── worker gw1
       ├── launcher of gw0      its pid, status and signals are the worker's
       └── launcher of gw1

A worker that starts from nothing spends half of its time before its first case on importing pytest. xdist and
execnet know nothing of this: to them a launcher is an interpreter (`popen//python=...`), and where a fork would
differ from a fresh interpreter, the launcher becomes one.
"""

from __future__ import annotations

import os
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

LAUNCHER = Path(__file__).with_name("launcher.py")

WORTH_IT = 3
"""Workers from which on a template, which takes as long to start as one worker, saves time."""

SWITCH = "EVALSUITE_FRESH_WORKERS"
"""A variable of the environment: if it is set, workers are fresh interpreters."""

PATIENCE = 10.0
"""Seconds that a template has to end."""

DEBUGGERS = ("debugpy", "pydevd")
"""Modules that follow a process into those that it starts."""

PROGRAM = (
    # No module of the current folder may stand in for one of the standard library.
    "import sys; home = sys.path[:]; sys.path[:] = filter(None, home); "
    "sys.path += [place for place in {places!r} if place not in home]; "
    "from evalsuite.workers.template_process import serve; serve(home, {listener}, {files!r})"
)


def is_plain(spec: Any) -> bool:
    """Whether a worker is this interpreter, on this host, as it comes."""
    special = ("python", "chdir", "via", "installvia", "nice", "dont_write_bytecode")
    return bool(spec.popen) and not spec.env and not any(getattr(spec, name) for name in special)


def can_fork(environment: Mapping[str, str]) -> bool:
    """Whether forks may stand for fresh interpreters in this process, on this system."""
    return SWITCH not in environment and _has_means() and not _is_watched() and not _is_measured(environment)


def _has_means() -> bool:
    """Whether processes can be awaited by descriptors, which some sandboxes forbid, and look at each other in /proc."""
    if sys.platform != "linux" or sys.implementation.name != "cpython":
        return False
    try:
        os.close(os.pidfd_open(os.getpid()))
    except (AttributeError, OSError):
        return False
    return Path("/proc/self/environ").is_file()


def _is_watched() -> bool:
    """Whether a debugger or profiler, which would watch each worker from its start, is at work."""
    return bool(sys.gettrace() or sys.getprofile() or any(name in sys.modules for name in DEBUGGERS))


def _is_measured(environment: Mapping[str, str]) -> bool:
    """Whether coverage is measured; that its package is there, as pytest-cov brings it, is not enough."""
    coverage = getattr(sys.modules.get("coverage"), "Coverage", None)
    running = coverage is not None and coverage.current() is not None
    return running or any(name.startswith(("COVERAGE_", "COV_CORE_")) for name in environment)


@dataclass(frozen=True)
class Template:
    """The process that a session's workers are forked from.

    Attributes:
        process: lives until its standard input is closed.
        folder: holds `address`; no other user may enter it.
        address: of the socket on which it hears launchers.
    """

    process: subprocess.Popen[bytes]
    folder: str
    address: str

    @property
    def command(self) -> str:
        """What execnet is to start instead of an interpreter."""
        return shlex.join([sys.executable, "-I", "-S", "-E", str(LAUNCHER), self.address])

    def close(self) -> None:
        """Ends it; its workers have ended before."""
        assert self.process.stdin is not None  # noqa: S101 - for the type checker: it is a pipe
        self.process.stdin.close()
        try:
            self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            # It waits for a launcher that somebody has stopped.
            self.process.kill()
            self.process.wait()
        # The template does so, unless it was killed.
        shutil.rmtree(self.folder, ignore_errors=True)


TEMPLATE = pytest.StashKey[Template]()


def start_template(config: pytest.Config) -> None:
    """Starts a template, if the session has workers enough; it imports while the session goes on."""
    count = len(config.option.tx) if config.option.dist != "no" else 0
    if config.option.collectonly or count < WORTH_IT or not can_fork(os.environ):
        return
    template = open_template(count)
    if template is not None:
        config.stash[TEMPLATE] = template
        config.add_cleanup(template.close)


def open_template(count: int) -> Template | None:
    """A template for so many workers at once.

    Returns:
        None where it cannot be had: no room for temporary files, or too long a path to them for a socket.
    """
    folder = ""
    try:
        folder = tempfile.mkdtemp(prefix="evalsuite-")
        address = str(Path(folder) / "launchers")
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(address)
            listener.listen(count)
            return Template(_start_process(listener.fileno()), folder, address)
    except OSError:
        if folder:
            shutil.rmtree(folder, ignore_errors=True)
        return None


def warm_workers(config: pytest.Config, specs: Iterable[Any]) -> None:
    """Has execnet start a launcher for each worker that is this interpreter."""
    template = config.stash.get(TEMPLATE, None)
    if template is not None:
        for spec in filter(is_plain, specs):
            spec.python = template.command


def _start_process(listener: int) -> subprocess.Popen[bytes]:
    import execnet

    import evalsuite

    files = {module.__name__: str(module.__file__) for module in (pytest, execnet, evalsuite)}
    places = sorted({str(Path(file).parent.parent) for file in files.values()})
    program = PROGRAM.format(places=places, listener=listener, files=files)
    return subprocess.Popen(  # noqa: S603 - this interpreter and a program of ours
        [sys.executable, "-u", "-c", program],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        pass_fds=[listener],
    )
