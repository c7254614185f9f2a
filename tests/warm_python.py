"""Starts sessions as copies of one Python that has imported the libraries already.

A session of a few cases takes a quarter of a second of work; to start its interpreter and to import pytest, numpy and
matplotlib takes three times as long, and again for each worker. What tests start by `pytester` therefore is a copy of
a process that has done so, see warm_server.py. Tests of what happens at the start, of signals and of environments ask
for interpreters of their own, by the mark `own_interpreter`.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Self

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

SERVER = Path(__file__).with_name("warm_server.py")
ADDRESS = "EVALSUITE_TESTS_WARM_PYTHON"
WITHOUT = "EVALSUITE_TESTS_WITHOUT"
"""The variable that names modules that a copy has not, as if they were not installed."""


COMMAND = """#!{python} -IS
import json, os, socket, sys

connection = socket.socket(socket.AF_UNIX)
connection.connect({address!r})
command = {{"args": ["-m", {module!r}, *sys.argv[1:]], "cwd": os.getcwd(), "env": dict(os.environ)}}
data = json.dumps(command).encode() + b"\\n"
connection.sendall(data[socket.send_fds(connection, [data], [0, 1, 2]) :])
answer = b""
while answer.count(b"\\n") < 2:
    answer += connection.recv(64) or sys.exit("the warm Python has ended")
status = int(answer.split()[1])
sys.exit(status if status >= 0 else 128 - status)
"""
"""A script that runs a module as a copy; it imports as little as possible, because it starts for each command."""


class WarmProcess:
    """What `subprocess.Popen` would return, as far as pytester and execnet use it.

    Attributes:
        pid: of the process.
        returncode: None until it was waited for; a negative one is a signal's number.
        stdin: a pipe, if one was asked for.
        stdout: likewise.
    """

    def __init__(
        self,
        address: str,
        args: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: str | Path = "",
        stdin: int | IO[Any] = subprocess.PIPE,
        stdout: int | IO[Any] = subprocess.PIPE,
        stderr: int | IO[Any] = 2,
    ) -> None:
        self.returncode: int | None = None
        self.stdin: IO[bytes] | None = None
        self.stdout: IO[bytes] | None = None
        ours = []
        if stdin == subprocess.PIPE:
            stdin, write = os.pipe()
            self.stdin = os.fdopen(write, "wb")
            ours.append(stdin)
        if stdout == subprocess.PIPE:
            read, stdout = os.pipe()
            self.stdout = os.fdopen(read, "rb")
            ours.append(stdout)
        self._connection = socket.socket(socket.AF_UNIX)
        self._connection.connect(address)
        command = json.dumps({"args": list(args), "cwd": str(Path(cwd).absolute()), "env": dict(env)}).encode() + b"\n"
        if stderr == subprocess.STDOUT:
            stderr = stdout
        nowhere = os.open(os.devnull, os.O_RDWR)
        ours.append(nowhere)
        files = [
            nowhere if file == subprocess.DEVNULL else file if isinstance(file, int) else file.fileno()
            for file in (stdin, stdout, stderr)
        ]
        sent = socket.send_fds(self._connection, [command], files)
        self._connection.sendall(command[sent:])
        for file in ours:
            os.close(file)
        self.pid = self._number()

    def _number(self) -> int:
        line = b""
        while not line.endswith(b"\n"):
            part = self._connection.recv(1)
            if not part:
                raise ConnectionError("the warm Python has ended")
            line += part
        return int(line)

    def wait(self, timeout: float | None = None) -> int:
        """Its exit status; TimeoutExpired after this many seconds."""
        if self.returncode is None:
            self._connection.settimeout(timeout)
            try:
                self.returncode = self._number()
            except TimeoutError:
                raise subprocess.TimeoutExpired("a warm Python", timeout or 0.0) from None
            self._connection.close()
        return self.returncode

    def kill(self) -> None:
        """Ends it at once."""
        self._signal(signal.SIGKILL)

    def terminate(self) -> None:
        """Asks it to end."""
        self._signal(signal.SIGTERM)

    def _signal(self, number: int) -> None:
        if self.returncode is None:
            # As with subprocess, it may have ended since it was looked at.
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for pipe in (self.stdin, self.stdout):
            if pipe:
                pipe.close()
        self.wait()


def run_as_copy(
    start_anew: Callable[..., Any], address: str, command: Sequence[str], **options: Any
) -> subprocess.CompletedProcess[Any]:
    """Does what `subprocess.run` does, as a copy if the command begins with this interpreter and reads nothing."""
    plain = {"cwd", "env", "stdout", "stderr", "encoding", "errors", "check"}
    if command[0] != sys.executable or not options.keys() <= plain:
        done: subprocess.CompletedProcess[Any] = start_anew(command, **options)
        return done
    env = {**(options.get("env") or os.environ), ADDRESS: address}
    files = {"stdin": 0, "stdout": options.get("stdout") or 1, "stderr": options.get("stderr") or 2}
    process = WarmProcess(address, command[1:], env=env, cwd=options.get("cwd") or "", **files)
    text = process.stdout.read().decode(options["encoding"], options["errors"]) if process.stdout else None
    with process:
        return subprocess.CompletedProcess(command, process.wait(), text)


class WarmPython:
    """One server, which starts with the first command and ends when this process does."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="evalsuite-tests-")
        self._address = f"{self._folder.name}/socket"
        self._server: subprocess.Popen[bytes] | None = None
        self._life = -1

    def popen(self, start_anew: Callable[..., Any], args: Sequence[str], **files: Any) -> Any:
        """What `Pytester.popen` does, by way of a copy where `args` begin with this interpreter."""
        if (
            args[0] != sys.executable
            or files.pop("stdin", pytest.Pytester.CLOSE_STDIN) is not pytest.Pytester.CLOSE_STDIN
        ):
            return start_anew(args, **files)
        path = os.pathsep.join(filter(None, [str(Path.cwd()), os.environ.get("PYTHONPATH")]))
        process = self.start(args[1:], env={**os.environ, "PYTHONPATH": path}, **files)
        assert process.stdin is not None
        process.stdin.close()
        return process

    def start(self, args: Sequence[str], *, env: Mapping[str, str], **files: Any) -> WarmProcess:
        """Runs `args`, those of an interpreter without its name, in the folder of this process."""
        address = self.open()
        return WarmProcess(address, args, env={**env, ADDRESS: address}, **files)

    def open(self) -> str:
        """Starts the server unless it runs; its address."""
        if self._server is None:
            self._server = self._serve()
        return self._address

    def write_commands(self, folder: Path) -> dict[str, str]:
        """Writes `pytest` and `evalsuite` into a folder and returns the variables that they need."""
        self.open()
        folder.mkdir()
        for name, module in (("pytest", "pytest"), ("evalsuite", "evalsuite")):
            script = folder / name
            script.write_text(COMMAND.format(python=sys.executable, address=self._address, module=module), "utf-8")
            script.chmod(0o755)
        return {ADDRESS: self._address}

    def _serve(self) -> subprocess.Popen[bytes]:
        life, self._life = os.pipe()
        # Threads of OpenBLAS would not survive a fork.
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(self._address)
            listener.listen(64)
            files = (listener.fileno(), life)
            command = [sys.executable, "-P", str(SERVER), *map(str, files)]
            # matplotlib writes its list of fonts; a test's own folder would hold one more file.
            own = {"OPENBLAS_NUM_THREADS": "1", "MPLCONFIGDIR": self._folder.name}
            server = subprocess.Popen(command, pass_fds=files, env={**os.environ, **own})
        os.close(life)
        return server

    def close(self) -> None:
        """Ends the server."""
        if self._server is not None:
            os.close(self._life)
            self._server.wait()
        self._folder.cleanup()
