"""The process that imports what every worker imports, and forks for each launcher that asks.

It stays single-threaded, runs no test, and imports nothing of the suite and no plugin but those that come with
evalsuite. A fork goes on as the interpreter that execnet asked for would: same descriptors, same folder, same path,
an empty `__main__`.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import gc
import importlib
import inspect
import os
import platform
import selectors
import shutil
import signal
import socket
import struct
import sys
import types
from dataclasses import dataclass
from importlib.machinery import BuiltinImporter
from pathlib import Path
from typing import TYPE_CHECKING

from _pytest.assertion import install_importhook
from _pytest.config import get_config
from execnet import gateway_base
from execnet.gateway_io import popen_bootstrapline

from evalsuite.workers.surroundings import surroundings

if TYPE_CHECKING:
    from collections.abc import Mapping

IMPORTED = (
    "evalsuite.plugin",
    "evalsuite.plugin.collection.cases",
    "evalsuite.plugin.collection.decorator",
    "evalsuite.plugin.hookspecs",
    "evalsuite.plugin.options",
    "evalsuite.plugin.run.explanation",
    "evalsuite.engine.fingerprints",
    "evalsuite.plugin.run.outcomes",
    "evalsuite.engine.prefetch",
    "evalsuite.plugin.run.upcoming",
    "evalsuite.engine.model_check",
    "evalsuite.decisions.conditions",
    "evalsuite.decisions.misspelt",
    "evalsuite.gateway.channel",
    "evalsuite.core.given_settings",
    "evalsuite.journal.identity",
    "evalsuite.metrics.text",
    "evalsuite.models.credentials",
    "evalsuite.models.openai",
    "evalsuite.output.reports.case_block",
    "evalsuite.scorers.targets",
    "evalsuite.solvers.fixed_answer",
    "evalsuite.solvers.generate",
    "asyncio",
    "email.parser",
    "faulthandler",
    "packaging.version",
    "pdb",
    "tomllib",
)
"""What nearly every worker imports, apart from pytest's own modules.

Not the plugins of others: they may do at their import what no fork survives. Where one of these has gone, the
template ends and workers are fresh; a test says so.
"""

REWRITTEN = ("anyio.pytest_plugin",)
"""Plugins of packages that evalsuite itself needs; they are there in every suite."""

LIFE = 0
"""Standard input: closed when the controlling process has ended."""


@dataclass
class Worker:
    """A fork that has not been heard to end.

    Attributes:
        pid: its number.
        ended: readable once it has ended.
        launcher: the connection to whoever asked for it, readable once that one has gone; None from then on.
    """

    pid: int
    ended: int
    launcher: socket.socket | None


class ForkServer:
    """Forks for launchers until standard input is closed.

    Args:
        listener: where they connect.
    """

    def __init__(self, listener: socket.socket) -> None:
        self._listener = listener
        self._own = surroundings(os.getpid())
        # Not epoll, whose state forks would share.
        self._selector = selectors.PollSelector()
        self._selector.register(listener, selectors.EVENT_READ)
        self._selector.register(LIFE, selectors.EVENT_READ)

    def serve(self) -> None:
        """Returns in each worker, and nowhere else."""
        while True:
            for key, _ in self._selector.select():
                if key.fd == LIFE:
                    self._leave()
                if key.data is None:
                    if self._accept():
                        return
                elif key.fd == key.data.ended:
                    self._report_end(key.data)
                else:
                    self._end_with_launcher(key.data)

    def _leave(self) -> None:
        """Ends this process without taking its modules down; workers end by themselves, as they do without it."""
        shutil.rmtree(Path(self._listener.getsockname()).parent, ignore_errors=True)
        os._exit(0)

    def _accept(self) -> bool:
        """Whether this is the worker."""
        launcher, _ = self._listener.accept()
        files = self._files_of(launcher)
        if files is None:
            launcher.close()
            return False
        pid = os.fork()
        if not pid:
            self._become_worker(launcher, files)
            return True
        _close(files)
        worker = Worker(pid, os.pidfd_open(pid), launcher)
        self._selector.register(worker.ended, selectors.EVENT_READ, worker)
        self._selector.register(launcher, selectors.EVENT_READ, worker)
        return False

    def _files_of(self, launcher: socket.socket) -> list[int] | None:
        """A launcher's standard descriptors; None where an interpreter that it started would not be like this one."""
        _, files, _, _ = socket.recv_fds(launcher, 1, 3)
        pid, uid, _ = struct.unpack("3i", launcher.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
        try:
            alike = len(files) == 3 and uid == os.getuid() and surroundings(pid) == self._own
        except OSError:
            alike = False
        if not alike:
            _close(files)
        return files if alike else None

    def _become_worker(self, launcher: socket.socket, files: list[int]) -> None:
        """Leaves this process nothing of the template's but modules."""
        for worker in {
            id(key.data): key.data for key in self._selector.get_map().values() if key.data
        }.values():
            os.close(worker.ended)
            if worker.launcher is not None:
                worker.launcher.close()
        self._selector.close()
        self._listener.close()
        for number, file in enumerate(files):
            os.dup2(file, number)
        own = os.pidfd_open(os.getpid())
        socket.send_fds(launcher, [b"1"], [own])
        _close([*files, own])
        launcher.close()

    def _report_end(self, worker: Worker) -> None:
        """Tells a launcher how its worker ended."""
        status = os.waitstatus_to_exitcode(os.waitpid(worker.pid, 0)[1])
        self._selector.unregister(worker.ended)
        os.close(worker.ended)
        if worker.launcher is None:
            return
        self._selector.unregister(worker.launcher)
        with (
            worker.launcher as launcher,
            contextlib.suppress(OSError),
        ):  # the launcher may have been killed just now
            launcher.sendall(b"%d\n" % status)
        worker.launcher = None

    def _end_with_launcher(self, worker: Worker) -> None:
        """Ends the worker of a launcher that was killed, which execnet does to a worker that does not end."""
        if worker.launcher is None:  # the worker ended in the same instant
            return
        self._selector.unregister(worker.launcher)
        worker.launcher.close()
        worker.launcher = None
        os.kill(worker.pid, signal.SIGKILL)


def _close(files: list[int]) -> None:
    for file in files:
        os.close(file)


def import_all() -> None:
    """Imports what workers import, in the same way: pytest rewrites the assertions of plugins."""
    config = get_config()
    rewriting = install_importhook(config)
    rewriting.mark_rewrite("evalsuite.plugin", *(name.partition(".")[0] for name in REWRITTEN))
    for name in IMPORTED:
        importlib.import_module(name)
    for name in REWRITTEN:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    config._ensure_unconfigure()  # noqa: SLF001 - as pytest's own main does
    # xdist asks for it in each worker, and Python finds its answer in the interpreter's own file.
    platform.platform()
    # The first failure of a process looks up the file of every module.
    inspect.getmodule(compile("", "nowhere", "exec"))


def serve(home: list[str], listener: int, files: Mapping[str, str]) -> None:
    """Runs the template; goes on as a worker in each fork.

    Args:
        home: the path on which a new interpreter looks for modules.
        listener: the descriptor of a socket on which launchers are heard.
        files: of packages, by name, as the controlling process has imported them.
    """
    import_all()
    if any(importlib.import_module(name).__file__ != file for name, file in files.items()):
        sys.exit("evalsuite: workers would find other packages than this session has")
    if len([*Path("/proc/self/task").iterdir()]) > 1:
        sys.exit("evalsuite: a process with threads cannot fork workers")
    server = ForkServer(socket.socket(fileno=listener))
    bootstrap = inspect.getsource(gateway_base)
    interrupted = signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.collect()
    gc.freeze()
    server.serve()
    signal.signal(signal.SIGINT, interrupted)
    run_worker(home, bootstrap)


def run_worker(home: list[str], bootstrap: str) -> None:
    """Does what `python -u -c` with execnet's line does, but without compiling what is imported already.

    Args:
        home: where modules are looked for.
        bootstrap: the code that execnet sends first; it is that of one of its modules.
    """
    sys.path[:] = home
    sys.argv[:] = ["-c"]
    sys.orig_argv[:] = [sys.executable, "-u", "-c", popen_bootstrapline]
    main = sys.modules["__main__"] = types.ModuleType("__main__")
    names = vars(main)
    names.update(__annotations__={}, __builtins__=builtins, __loader__=BuiltinImporter, sys=sys)
    code = ast.literal_eval(sys.stdin.readline())
    if code.startswith(bootstrap):
        # As execnet imports them where it was not told which interpreter to start.
        names.update(
            {name: getattr(gateway_base, name) for name in ("serve", "init_popen_io", "get_execmodel")}
        )
        code = code.removeprefix(bootstrap)
    exec(code, names)  # noqa: S102 - what execnet has every worker do
