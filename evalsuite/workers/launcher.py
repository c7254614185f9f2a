"""The command that execnet starts for a worker: asks the template for a fork of itself and stands for it.

Run by path as `python -I -S -E launcher.py SOCKET ARGUMENTS`, where ARGUMENTS are what execnet would give to Python.
It imports C modules only, because each worker waits for one of these and `socket` and `signal` would take as long
again as the interpreter itself. Where no fork is to be had, it becomes the interpreter that execnet asked for.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # what `signal` is made of
import _socket  # what `socket` is made of
import posix
import sys

PASSED_ON = (_signal.SIGHUP, _signal.SIGTERM, _signal.SIGQUIT, _signal.SIGUSR1, _signal.SIGUSR2)


def main(address: str, arguments: list[str]) -> None:
    """Ends as the worker ends."""
    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    worker = ask(connection, address)
    if worker is None:
        posix.execv(sys.executable, [sys.executable, *arguments])
    # A terminal sends SIGINT to the worker itself.
    _signal.signal(_signal.SIGINT, _signal.SIG_IGN)
    for number in PASSED_ON:
        _signal.signal(number, lambda number, _: tell(worker, number))
    let_go()
    end_as(status_of(connection, worker))


def ask(connection: _socket.socket, address: str) -> int | None:
    """Sends this process's standard input, output and error; returns a descriptor of the worker's process."""
    files = b"".join(number.to_bytes(4, sys.byteorder) for number in (0, 1, 2))
    try:
        connection.connect(address)
        connection.sendmsg([b"1"], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, files)])
        _, ancillary, _, _ = connection.recvmsg(1, _socket.CMSG_SPACE(4))
    except OSError:
        return None
    # The worker sends its own descriptor first of all, so whoever got none can be sure that nothing was started.
    return int.from_bytes(ancillary[0][2], sys.byteorder) if ancillary else None


def tell(worker: int, number: int) -> None:
    """Passes a signal on; the worker may have ended by now."""
    try:
        _signal.pidfd_send_signal(worker, number)
    except OSError:
        return


def let_go() -> None:
    """Closes this process's copies of the worker's pipes, so that their other end learns when the worker ends."""
    nowhere = posix.open("/dev/null", posix.O_RDWR)
    posix.dup2(nowhere, 0)
    posix.dup2(nowhere, 1)


def status_of(connection: _socket.socket, worker: int) -> int:
    """The worker's exit status, minus a signal's number if that ended it; 1 if the template died and nobody knows."""
    text = b""
    while not text.endswith(b"\n"):
        part = connection.recv(16)
        if not part:
            import select

            select.select([worker], [], [])
            return 1
        text += part
    return int(text)


def end_as(status: int) -> None:
    """Ends this process in the same way."""
    if status < 0:
        import resource

        # The worker has left its core already.
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if -status != _signal.SIGKILL:
            _signal.signal(-status, _signal.SIG_DFL)
        posix.kill(posix.getpid(), -status)
    posix._exit(status & 255)  # noqa: SLF001 - public as os._exit; nothing here is left to clean up


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
