"""One live line below pytest's own output, on a terminal: cases done, calls in flight, tokens/s, cost, time left."""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from typing import TYPE_CHECKING, Any, TextIO

import pytest

if TYPE_CHECKING:
    from evalsuite.plugin.session.listener import Listener

INTERVAL = 0.2
"""Seconds between two looks."""

SPAN = 10.0
"""Seconds over which tokens a second are taken."""

# Control sequences of ECMA-48 and of the VT100, which every terminal of today knows.
ERASE_BELOW = "\x1b[J"
MAKE_ROOM = "\x1bD\x1b[1A"  # a line below there is, even on the last row
BELOW, BACK = "\x1b7\x1b[1B\r\x1b[2K", "\x1b8"


class StatusFile:
    """Stands before the terminal's file: what pytest writes first erases the line below.

    Args:
        file: the terminal's own.
    """

    def __init__(self, file: TextIO) -> None:
        self._file = file
        self._lock = threading.Lock()
        self._painted = False

    def write(self, text: str) -> int:
        """Writes what pytest has to say."""
        with self._lock:
            erase = ERASE_BELOW if self._painted else ""
            self._painted = False
            return self._file.write(erase + text)

    def paint(self, line: str) -> None:
        """Shows a line below the cursor, which stays where it is."""
        with self._lock:
            self._file.write(f"{MAKE_ROOM}{BELOW}{line}{BACK}")
            self._file.flush()
            self._painted = True

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


class LiveLine:
    """Paints the line while cases run.

    Args:
        listener: knows what is going on.
        terminal: pytest's own reporter, which does the writing.
    """

    def __init__(self, listener: Listener, terminal: pytest.TerminalReporter) -> None:
        self._listener, self._terminal = listener, terminal
        self._file = StatusFile(terminal._tw._file)  # noqa: SLF001 - pytest has no seam for it
        self._total = self._done = 0
        self._started = 0.0
        self._tokens: deque[tuple[float, int]] = deque()
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: list[str]) -> None:
        """How many tests there are, as the workers found."""
        self._total = len(ids)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """How many tests there are, without workers."""
        self._total = len(session.items)

    def pytest_runtest_logfinish(self) -> None:
        """A test is done."""
        self._done += 1
        self._begin()

    def pytest_runtest_logstart(self) -> None:
        """A test begins."""
        self._begin()

    def _begin(self) -> None:
        if self._thread is None:
            self._terminal._tw._file = self._file  # noqa: SLF001
            self._started = time.monotonic()
            self._thread = threading.Thread(target=self._paint, daemon=True)
            self._thread.start()

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self) -> None:
        """The line goes."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join()
            self._file.write("")

    def _paint(self) -> None:
        while not self._ended.wait(INTERVAL):
            if self._listener.begun and self._listener.controller.asking:
                width = self._terminal._tw.fullwidth  # noqa: SLF001
                self._file.paint(self.line(time.monotonic())[: width - 1])

    def line(self, now: float) -> str:
        """What is shown."""
        gateway = self._listener.controller.gateway
        paid, places = gateway.ledger.paid, gateway.limiter.places
        parts = [
            f"evalsuite {self._done}/{self._total} cases",
            f"{places.in_flight} calls in flight",
            f"{self._speed(now, paid.completion_tokens):.0f} tokens/s",
        ]
        if paid.cost:
            parts.append(f"${paid.cost:.4f}")
        parts += [f"held to {rate:.0f} requests/s" for rate in gateway.rates()]
        parts += gateway.outages()
        if 0 < self._done < self._total:
            left = (now - self._started) / self._done * (self._total - self._done)
            parts.append(f"{int(left // 60)}:{int(left % 60):02} left")
        return " · ".join(parts)

    def _speed(self, now: float, tokens: int) -> float:
        self._tokens.append((now, tokens))
        while now - self._tokens[0][0] > SPAN:
            self._tokens.popleft()
        since, before = self._tokens[0]
        return (tokens - before) / max(now - since, INTERVAL)


def show_progress(config: pytest.Config, listener: Listener, terminal: pytest.TerminalReporter) -> None:
    """Shows the line where somebody watches a terminal: not in CI, and not where tests write to it themselves."""
    if config.option.capture != "no" and terminal.verbosity >= -1 and not os.environ.get("CI"):
        config.pluginmanager.register(LiveLine(listener, terminal), "evalsuite-progress")
