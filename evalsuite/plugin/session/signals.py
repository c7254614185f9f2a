"""Signals that end a run: each leaves a report, and says how to go on."""

from __future__ import annotations

import signal
import threading
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from types import FrameType

_heard: list[int] = []


def interrupted_by_user() -> bool:
    """Whether a KeyboardInterrupt comes from the keyboard, and not from the code under test."""
    return bool(_heard) or signal.getsignal(signal.SIGINT) not in {_interrupt, signal.SIG_IGN}


def ended_by() -> str:
    """Which signal ended the run, in words; empty where none did."""
    ending = [signal.Signals(number).name for number in _heard if number != signal.SIGINT]
    return f"it was ended by {ending[0]}" if ending else ""


def _interrupt(number: int, _frame: FrameType | None) -> None:
    _heard.append(number)
    raise KeyboardInterrupt


def _terminate(number: int, _frame: FrameType | None) -> None:
    _heard.append(number)
    # Once is enough: a second signal of the same kind must not break into the writing of the report.
    signal.signal(number, signal.SIG_IGN)
    name = signal.Signals(number).name
    pytest.exit(f"ended by {name}; go on with --resume last", 128 + number)


HANDLERS: dict[str, Any] = {"SIGINT": _interrupt, "SIGTERM": _terminate, "SIGHUP": _terminate}
"""By name, as not every system has each signal."""


def listen(*names: str) -> dict[int, Any]:
    """Takes over these signals, where nobody else handles them.

    Returns:
        The handlers that were there, for `restore`.
    """
    earlier: dict[int, Any] = {}
    if threading.current_thread() is not threading.main_thread():
        # Python lets no other thread set them.
        return earlier
    for name in names:
        number, handler = getattr(signal, name, None), HANDLERS[name]
        if number is not None and signal.getsignal(number) in {signal.SIG_DFL, signal.default_int_handler}:
            earlier[number] = signal.signal(number, handler)
    return earlier


def restore(earlier: dict[int, Any]) -> None:
    """Puts back what was there."""
    _heard.clear()
    for number, handler in earlier.items():
        signal.signal(number, handler)
