"""Progress while cases run: a live line below pytest's own output or, without a terminal, a line every 30 seconds."""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from typing import TYPE_CHECKING, Any, TextIO

import pytest

from evalsuite.core.counted_nouns import number_of
from evalsuite.core.errors import for_terminal
from evalsuite.plugin.pytest_internals import replace_terminal_file, terminal_file

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evalsuite.plugin.listener import Listener

INTERVAL = 0.2
"""Seconds between two looks."""

SPAN = 10.0
"""Seconds over which tokens a second are taken."""

FIRST, EVERY = 8.0, 30.0
"""Seconds until the first line where there is no terminal, and between two of them."""

USUAL_WIDTH = 80
"""Columns of a terminal that does not say how many it has."""

LONGEST = 1000
"""Characters of a line where there is no terminal."""

COLLECTING = "evalsuite: the cases are being collected"

ENOUGH = 5
"""Cases that must be done before the time that is left is taken from them rather than from answers."""

# Control sequences of ECMA-48 and of the VT100, which every terminal of today knows.
ERASE_BELOW = "\x1b[J"
MAKE_ROOM = "\x1bD\x1b[1A"  # a line below there is, even on the last row
BELOW, BACK = "\x1b7\x1b[1B\r\x1b[2K", "\x1b8"


class StatusFile:
    """Stands before the terminal's file: what pytest writes first erases the line below.

    While a test runs, pytest's capture has put a file of its own in the terminal's place, and what is painted then
    would be taken for the test's output. So the line goes through a duplicate of the descriptor, made before.

    Args:
        file: the terminal's own.
    """

    def __init__(self, file: TextIO) -> None:
        self._file = file
        self._way = os.dup(file.fileno())
        self._lock = threading.Lock()
        self._painted = False

    @property
    def is_terminal(self) -> bool:
        """Whether a line can be painted over."""
        return os.isatty(self._way)

    @property
    def width(self) -> int:
        """Columns of the terminal; what pytest asks is a file of its own while a test runs."""
        try:
            return os.get_terminal_size(self._way).columns or USUAL_WIDTH
        except OSError:
            return USUAL_WIDTH

    def write(self, text: str) -> int:
        """Writes what pytest has to say."""
        with self._lock:
            erase = ERASE_BELOW if self._painted else ""
            self._painted = False
            return self._file.write(erase + text)

    def paint(self, line: str) -> None:
        """Shows a line below the cursor, which stays where it is."""
        with self._lock:
            self._send(f"{MAKE_ROOM}{BELOW}{line}{BACK}")
            self._painted = True

    def print(self, line: str) -> None:
        """Writes a line of its own."""
        with self._lock:
            erase = ERASE_BELOW if self._painted else ""
            self._painted = False
            self._send(f"{erase}\n{line}\n")

    def _send(self, text: str) -> None:
        os.write(self._way, text.encode(self._file.encoding or "utf-8", "replace"))

    def let_go(self) -> None:
        """Erases the line and closes the way to the terminal."""
        self.write("")
        os.close(self._way)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


class LiveLine:
    """Shows the line while cases run.

    Args:
        listener: knows what is going on.
        terminal: pytest's own reporter, which does the writing.
    """

    def __init__(self, listener: Listener, terminal: pytest.TerminalReporter) -> None:
        self._listener, self._terminal = listener, terminal
        self._file: StatusFile | None = None
        self._total = self._done = self._announced = 0
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

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self) -> None:
        """Without a terminal, nobody else says that a large suite is still being collected."""
        if not self._terminal.isatty:
            self._open()

    def pytest_runtest_logfinish(self) -> None:
        """A test is done."""
        self._done += 1
        self._begin()

    def pytest_runtest_logstart(self) -> None:
        """A test begins."""
        self._begin()

    def _begin(self) -> None:
        if not self._started and self._listener.has_cases:
            self._started = time.monotonic()
            self._open()

    def _open(self) -> None:
        if self._thread is not None:
            return
        self._thread = threading.Thread(target=self._show, daemon=True)
        try:
            self._file = StatusFile(terminal_file(self._terminal))
        except (OSError, ValueError):
            # Output goes to what is no file, as where pytest runs within a program.
            self._ended.set()
        else:
            if self._file.is_terminal:
                replace_terminal_file(self._terminal, self._file)
        self._thread.start()

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self) -> None:
        """The line goes."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join()
        if self._file is not None:
            self._announce(self._file)
            self._file.let_go()

    @property
    def _asking(self) -> bool:
        return self._listener.begun and self._listener.run.access.asking

    def _show(self) -> None:
        if self._file is not None and self._file.is_terminal:
            self._paint(self._file)
        elif self._file is not None:
            self._print(self._file)

    def _paint(self, file: StatusFile) -> None:
        while not self._ended.wait(INTERVAL):
            if self._asking:
                self._announce(file)
                file.paint(fit(self.parts(time.monotonic()), file.width - 1))

    def _print(self, file: StatusFile) -> None:
        due = time.monotonic() + FIRST
        while not self._ended.wait(INTERVAL):
            self._announce(file)
            now = time.monotonic()
            if now >= due and (self._asking or not self._total):
                due = now + EVERY
                file.print(fit(self.parts(now), LONGEST) if self._asking else COLLECTING)

    def _announce(self, file: StatusFile) -> None:
        """Prints what the gateway has reported since the last look: outages, fewer connections than asked for."""
        if self._asking:
            notices = self._listener.run.access.gateway.notices
            while self._announced < len(notices):
                self._announced += 1
                file.print(for_terminal(notices[self._announced - 1]))

    def parts(self, now: float) -> list[tuple[int, str]]:
        """What is shown, each part with its rank: the greater it is, the sooner a narrow terminal goes without."""
        gateway = self._listener.run.access.gateway
        paid, places = gateway.ledger.paid, gateway.limiter.places
        # Of this session: what earlier ones of a resumed run paid is taken over without its calls.
        answers = paid.calls
        parts = [
            (0, f"evalsuite {self._done}/{number_of(self._total, 'case')}"),
            (4, number_of(answers, "answer")),
        ]
        parts += [(1, outage) for outage in gateway.outages()]
        parts += [(1, pause) for pause in gateway.pauses()]
        parts += [(1, waits) for waits in self._listener.run.access.waits()]
        parts += [
            (5, f"{number_of(places.in_flight, 'call')} in flight"),
            (6, f"{self._speed(now, paid.completion_tokens):.0f} tokens/s"),
        ]
        if paid.cost:
            parts.append((3, f"${paid.cost:.4f}"))
        parts += [(7, f"held to {_frequency(rate)}") for rate in gateway.rates()]
        seconds = left(now - self._started, self._done, answers, self._total)
        if seconds is not None:
            parts.append((2, f"{int(seconds // 60)}:{int(seconds % 60):02} left"))
        return parts

    def _speed(self, now: float, tokens: int) -> float:
        self._tokens.append((now, tokens))
        # Lines that are further apart than the span need the one before.
        while len(self._tokens) > 2 and now - self._tokens[1][0] > SPAN:
            self._tokens.popleft()
        since, before = self._tokens[0]
        return (tokens - before) / max(now - since, INTERVAL)


def _frequency(rate: float) -> str:
    return f"{rate:.0f} requests/s" if rate >= 2 else f"{number_of(round(60 * rate), 'request')}/min"


def left(seconds: float, done: int, answers: int, total: int) -> float | None:
    """Seconds that are left, in proportion to what is done; None where nothing can be said.

    Until some cases are done, answers stand for them: many are asked before the first case ends.
    """
    progress = done if done >= ENOUGH else min(max(done, answers), total)
    return seconds / progress * (total - progress) if 0 < progress < total else None


def fit(parts: Sequence[tuple[int, str]], width: int) -> str:
    """The parts as one line, without those of the greatest rank until it fits."""
    kept = list(parts)
    while len(kept) > 1 and len(_line(kept)) > width:
        kept.remove(max(kept, key=lambda part: part[0]))
    return _line(kept)[:width]


def _line(parts: Sequence[tuple[int, str]]) -> str:
    return " · ".join(text for _, text in parts)


def show_progress(config: pytest.Config, listener: Listener) -> None:
    """Show progress in the controlling process, unless pytest is to be quiet.

    Where tests write to the terminal themselves (`-s`), nothing is painted over what they write.
    """
    terminal = config.pluginmanager.get_plugin("terminalreporter")
    # A line that is drawn anew would break the debugger's prompt.
    if terminal is None or terminal.verbosity < -1 or config.option.usepdb:
        return
    if not (config.option.capture == "no" and terminal.isatty):
        config.pluginmanager.register(LiveLine(listener, terminal), "evalsuite-progress")
