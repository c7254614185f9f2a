"""Handles the signals and calls that end a run early, and tells whether an interruption came from the user."""

import os
import signal
import threading
import time
from collections.abc import Callable
from functools import partial
from types import FrameType
from typing import Any

SAME_PRESS_SECONDS = 1.0  # Seconds within which a second SIGINT counts as the same key press (`uv run` sends it again).
_received: dict[int, float] = {}
"""The signals that were received, each with the monotonic time at which it first came."""
_last_words: list[tuple[int, str]] = []
"""The descriptor of the terminal, and what is written to it when a run ends at once; empty in a worker."""


def is_keyboard_interrupt() -> bool:
    """Tell whether a KeyboardInterrupt was caused by the keyboard, and not by the code under test."""
    return bool(_received) or signal.getsignal(signal.SIGINT) not in {_handle_interrupt, signal.SIG_IGN}


def describe_ending_signal() -> str:
    """Describe the signal that ended the run; empty if no signal ended the run."""
    ending = [signal.Signals(number).name for number in _received if number != signal.SIGINT]
    return f"it was ended by {ending[0]}" if ending else ""


def _handle_interrupt(number: int, _frame: FrameType | None) -> None:
    """End the run cleanly at the first Ctrl-C, and immediately at the second."""
    now = time.monotonic()
    if number not in _received:
        _received[number] = now
        raise KeyboardInterrupt
    if _last_words and now - _received[number] > SAME_PRESS_SECONDS:
        terminal, words = _last_words[0]
        os.write(terminal, f"\nevalsuite: ended at once{words}\n".encode())
        os._exit(128 + number)


def install_signal_handlers(
    *names: str, end: Callable[[str, int], None], terminal: int | None, hint: str = ""
) -> dict[int, Any]:
    """Set handlers for those signals that still have the default handler; return the replaced handlers by signal.

    Args:
        terminal: a copy of the terminal's file descriptor, to which an aborted run writes its last line. None in a
            worker, because the controlling process ends the worker.
        hint: text to append to the line that an aborted run writes.
    """
    _close_terminal_descriptors()
    if terminal is not None:
        _last_words.append((terminal, hint))

    def end_by_signal(number: int, _frame: FrameType | None) -> None:
        _received[number] = time.monotonic()
        # Ignore a second signal of the same kind, because it must not interrupt the writing of the report.
        signal.signal(number, signal.SIG_IGN)
        end(f"ended by {signal.Signals(number).name}; go on with --resume last", 128 + number)

    earlier: dict[int, Any] = {}
    if threading.current_thread() is not threading.main_thread():
        # Python allows only the main thread to set handlers.
        return earlier
    for name in names:
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) in {signal.SIG_DFL, signal.default_int_handler}:
            earlier[number] = signal.signal(number, _handle_interrupt if name == "SIGINT" else end_by_signal)
    return earlier


def _close_terminal_descriptors() -> None:
    while _last_words:
        os.close(_last_words.pop()[0])


def restore_signal_handlers(earlier: dict[int, Any]) -> None:
    """Restore the earlier handlers."""
    _received.clear()
    _close_terminal_descriptors()
    for number, handler in earlier.items():
        signal.signal(number, handler)


def intercept_exit(get_status: Callable[[], int]) -> Callable[[], None]:
    """Replace `os._exit`, and return a function that restores `os._exit`.

    The replaced `os._exit(0)` exits with the given status in this process, and with 0 in forked children. While the
    given status is not 0, `os.exec*` raises an error, because the new program's status would replace it. The returned
    function restores both `os._exit` and `os.exec*`.
    """
    # Copy the descriptor of standard error, because pytest redirects the original while a test runs.
    original, guarded, errors = os._exit, os.getpid(), os.dup(2)
    # All other variants, such as `os.execlp`, call `os.execv` or `os.execve`.
    execs: dict[str, Callable[..., object]] = {"execv": os.execv, "execve": os.execve}

    def end_process(code: int) -> None:
        """End the process with the session's exit status in place of 0."""
        own = get_status() if code == 0 and os.getpid() == guarded else 0
        if own:
            os.write(errors, f"\nevalsuite: os._exit(0) ended the session; the exit status is {own}\n".encode())
        original(own or code)

    def refuse_exec(execute: Callable[..., object], *arguments: object, **named: object) -> None:
        """Raise an error if the session's exit status is not 0; otherwise, call the function."""
        if get_status() and os.getpid() == guarded:
            raise RuntimeError("os.exec would end evalsuite's session without a verdict: start a subprocess")
        execute(*arguments, **named)

    def restore_exit() -> None:
        vars(os).update(execs, _exit=original)
        os.close(errors)

    refusals = {name: partial(refuse_exec, execute) for name, execute in execs.items()}
    vars(os).update(refusals, _exit=end_process)
    return restore_exit
