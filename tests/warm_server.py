"""A Python that has imported the libraries already and forks a copy of itself for each command it is sent.

`tests/warm_python.py` starts it and sends the commands. A copy is as fresh as a new interpreter but for its imports:
modules of pytest, of evalsuite and of the libraries are there; no suite, no plugin and no configuration was loaded.
"""

from __future__ import annotations

import atexit
import gc
import inspect
import io
import json
import os
import runpy
import selectors
import signal
import socket
import subprocess
import sys
import threading
import types
from functools import partial
from typing import Any, NamedTuple

from execnet import gateway_io
from execnet.gateway_base import Popen2IO
from execnet.gateway_io import Popen2IOMaster
from matplotlib.figure import Figure

from tests.imported_first import import_all
from tests.warm_python import ADDRESS, WITHOUT, WarmProcess, run_as_copy

# Begun as this process was, where coverage is measured at all; it has classified the files of every library, and each
# copy goes on with it.
MEASUREMENT = sys.modules["coverage"].Coverage.current() if "coverage" in sys.modules else None
STREAMS = (("stdin", "rb", "strict"), ("stdout", "wb", "strict"), ("stderr", "wb", "backslashreplace"))


class Command(NamedTuple):
    """What a copy runs.

    Attributes:
        args: after the name of the interpreter: `-m module ...` or `-c program ...`.
        cwd: where.
        env: all of its environment.
        files: descriptors of its standard input, output and error.
    """

    args: list[str]
    cwd: str
    env: dict[str, str]
    files: tuple[int, int, int]


def receive(connection: socket.socket) -> Command | None:
    """One command; None if its sender has gone."""
    size = 1 << 16
    data, files, _, _ = socket.recv_fds(connection, size, 3)
    while data and not data.endswith(b"\n"):
        more = connection.recv(size)
        data = data + more if more else b""
    if not data:
        return None
    plain = json.loads(data)
    return Command(plain["args"], plain["cwd"], plain["env"], (files[0], files[1], files[2]))


def serve(listener: socket.socket, life: int) -> Command:
    """Forks for each command; returns in each copy, with its command, and ends where `life` is closed."""
    with selectors.DefaultSelector() as selector:
        selector.register(listener, selectors.EVENT_READ)
        selector.register(life, selectors.EVENT_READ)
        while True:
            for key, _ in selector.select():
                if key.fd == life:
                    os._exit(0)
                if key.fileobj is listener:
                    command = _fork(listener, selector)
                    if command:
                        os.close(life)
                        return command
                else:
                    _report_end(selector, key)


def _fork(listener: socket.socket, selector: selectors.BaseSelector) -> Command | None:
    connection, _ = listener.accept()
    command = receive(connection)
    if command is None:
        connection.close()
        return None
    pid = os.fork()
    if not pid:
        for key in list(selector.get_map().values()):
            if key.data:
                os.close(key.fd)
                key.data[1].close()
        connection.close()
        listener.close()
        return command
    for file in command.files:
        os.close(file)
    connection.sendall(b"%d\n" % pid)
    selector.register(os.pidfd_open(pid), selectors.EVENT_READ, (pid, connection))
    return None


def _report_end(selector: selectors.BaseSelector, key: selectors.SelectorKey) -> None:
    pid, connection = key.data
    selector.unregister(key.fd)
    os.close(key.fd)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    with connection:
        try:
            connection.sendall(b"%d\n" % status)
        except OSError:
            return  # who started it does not wait for it


def become(command: Command) -> None:
    """Makes this process what a new interpreter would be: its descriptors, folder, environment and path."""
    for number, file in enumerate(command.files):
        os.dup2(file, number)
        os.close(file)
    os.chdir(command.cwd)
    os.environ.clear()
    os.environ.update(command.env)
    for number, (name, mode, errors) in enumerate(STREAMS):
        binary = os.fdopen(number, mode, closefd=False)
        lines = name == "stderr" or os.isatty(number)
        stream = io.TextIOWrapper(binary, encoding="utf-8", errors=errors, line_buffering=lines)
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.dont_write_bytecode = bool(os.environ.get("PYTHONDONTWRITEBYTECODE"))
    for module in os.environ.get(WITHOUT, "").split():
        sys.modules[module] = None  # type: ignore[assignment]
    if MEASUREMENT and {"COVERAGE_PROCESS_START", "COVERAGE_PROCESS_CONFIG"} & command.env.keys():
        MEASUREMENT.start()


class WarmWorker(Popen2IOMaster):
    """Starts a worker of xdist as another copy."""

    def __init__(self, args: list[str], execmodel: Any) -> None:
        self.popen = WarmProcess(os.environ[ADDRESS], args[1:], env=os.environ)
        Popen2IO.__init__(self, self.popen.stdin, self.popen.stdout, execmodel=execmodel)


def start_worker(args: list[str], execmodel: Any) -> Popen2IOMaster:
    """Workers in this environment are copies, those elsewhere are started as ever."""
    kind = WarmWorker if args[:2] == [sys.executable, "-u"] else Popen2IOMaster
    return kind(args, execmodel)


def run(command: Command) -> None:
    """What a new interpreter does with these arguments."""
    args = list(command.args)
    while args[0] in {"-u", "-B"}:
        sys.dont_write_bytecode |= args.pop(0) == "-B"
    option, value, *rest = (args[0][:2], args[0][2:], *args[1:]) if len(args[0]) > 2 else args
    places = [place for place in command.env.get("PYTHONPATH", "").split(os.pathsep) if place]
    sys.path[:0] = [command.cwd if option == "-m" else "", *places]
    sys.argv = [option, *rest]
    if option == "-m":
        runpy.run_module(value, run_name="__main__", alter_sys=True)
    else:
        main = sys.modules["__main__"] = types.ModuleType("__main__")
        exec(compile(value, "<string>", "exec"), main.__dict__)


def leave(code: object) -> None:
    """Ends as an interpreter does, but for taking all modules down, which takes longer than a small session."""
    if code is not None and not isinstance(code, int):
        sys.stderr.write(f"{code}\n")
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0 if code is None else int(code) & 255 if isinstance(code, int) else 1)


if __name__ == "__main__":
    import_all()
    # Plugins that are imported already cannot be rewritten; pytest would warn of it.
    for plugin in ("evalsuite.plugin", "evalsuite.plugin.mutants", "xdist", "xdist.plugin"):
        sys.modules[plugin].__doc__ = "PYTEST_DONT_REWRITE"
    vars(gateway_io)["Popen2IOMaster"] = start_worker
    # The first traceback looks up the file of every module, the first drawing that of every font.
    inspect.getmodule(compile("", "nowhere", "exec"))
    drawing = Figure()
    drawing.subplots().set_title("warm")
    drawing.savefig(io.BytesIO(), format="svg")
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if MEASUREMENT:
        MEASUREMENT.stop()
        MEASUREMENT.save()
    gc.collect()
    gc.freeze()
    wanted = serve(socket.socket(fileno=int(sys.argv[1])), int(sys.argv[2]))
    become(wanted)
    # What a copy starts by this interpreter is a copy, too: the session of `evalsuite doctor`, for example.
    vars(subprocess)["run"] = partial(run_as_copy, subprocess.run, os.environ[ADDRESS])
    # A suite may have a folder of this name.
    del sys.modules["tests"], sys.modules["tests.warm_python"]
    try:
        run(wanted)
        leave(0)
    except SystemExit as end:
        leave(end.code)
