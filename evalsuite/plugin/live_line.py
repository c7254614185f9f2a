"""Shows progress while cases run: a live line below pytest's output or, without a terminal, a line every 30 seconds."""

import os
import threading
import time
from collections import deque
from collections.abc import Sequence
from typing import Any, TextIO

import pytest

from evalsuite.core.errors import escape_for_terminal, write_count
from evalsuite.plugin.listener import ReportListener
from evalsuite.plugin.pytest_internals import get_terminal_file, replace_terminal_file

INTERVAL = 0.2  # Seconds between two updates.
SPAN = 10.0  # Seconds over which the speed in tokens per second is measured.
FIRST, EVERY = 8.0, 30.0  # Seconds before the first line and between lines, if the output is not a terminal.
USUAL_WIDTH = 80  # Columns of a terminal that does not report its width.
LONGEST = 1000  # Maximum characters of a line, if the output is not a terminal.
COLLECTING = "evalsuite: the cases are being collected"
ENOUGH = 5  # With fewer finished cases than this, the remaining time is estimated from answers.

# Control sequences of ECMA-48 and of the VT100, which every current terminal supports.
ERASE_BELOW = "\x1b[J"
MAKE_ROOM = "\x1bD\x1b[1A"  # Adds a line below the cursor, also if the cursor is on the last row.
BELOW, BACK = "\x1b7\x1b[1B\r\x1b[2K", "\x1b8"


class LiveLineFile:
    """Wraps the terminal's file, so that the live line is erased before pytest writes.

    While a test runs, pytest captures the file descriptor, so the live line would count as the test's output.
    The live line is written to a duplicate of the terminal's descriptor, made before the first test.
    """

    def __init__(self, file: TextIO) -> None:
        self._file = file
        self._descriptor = os.dup(file.fileno())
        self._lock = threading.Lock()
        self._painted = False

    @property
    def is_terminal(self) -> bool:
        return os.isatty(self._descriptor)

    @property
    def width(self) -> int:
        try:
            return os.get_terminal_size(self._descriptor).columns or USUAL_WIDTH
        except OSError:
            return USUAL_WIDTH

    def write(self, text: str) -> int:
        with self._lock:
            return self._file.write(self._make_erasing_sequence() + text)

    def paint_line(self, line: str) -> None:
        """Show a line below the cursor without moving the cursor."""
        with self._lock:
            self._write_to_terminal(f"{MAKE_ROOM}{BELOW}{line}{BACK}")
            self._painted = True

    def print_line(self, line: str) -> None:
        """Print a line that stays, and erase the live line."""
        with self._lock:
            self._write_to_terminal(f"{self._make_erasing_sequence()}\n{line}\n")

    def _make_erasing_sequence(self) -> str:
        """Return the control sequence that erases the live line, if it is shown; the line then counts as erased."""
        erase = ERASE_BELOW if self._painted else ""
        self._painted = False
        return erase

    def _write_to_terminal(self, text: str) -> None:
        os.write(self._descriptor, text.encode(self._file.encoding or "utf-8", "replace"))

    def release(self) -> None:
        """Erase the line and close the duplicate descriptor."""
        self.write("")
        os.close(self._descriptor)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


class LiveLine:
    """Shows the live line while cases run."""

    def __init__(self, listener: ReportListener, terminal: pytest.TerminalReporter) -> None:
        self._listener, self._terminal = listener, terminal
        self._file: LiveLineFile | None = None
        self._done = self._announced = 0
        self._started = 0.0
        self._tokens: deque[tuple[float, int]] = deque()
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self) -> None:
        """Print that a large suite is being collected; in a terminal, pytest itself prints this."""
        if not self._terminal.isatty:
            self._start_live_line()

    def pytest_runtest_logfinish(self) -> None:
        self._done += 1
        self._start_line_once_cases_exist()

    def pytest_runtest_logstart(self) -> None:
        self._start_line_once_cases_exist()

    def _start_line_once_cases_exist(self) -> None:
        if not self._started and self._listener.has_cases:
            self._started = time.monotonic()
            self._start_live_line()

    def _start_live_line(self) -> None:
        if self._thread is not None:
            return
        try:
            file = self._file = LiveLineFile(get_terminal_file(self._terminal))
        except (OSError, ValueError):
            # The output has no file descriptor, for example if pytest runs within a program.
            return
        if file.is_terminal:
            replace_terminal_file(self._terminal, file)
        self._thread = threading.Thread(target=self._show_until_end, args=(file,), daemon=True)
        self._thread.start()

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self) -> None:
        self._ended.set()
        if self._thread is not None:
            self._thread.join()
        if self._file is not None:
            self._print_notices(self._file)
            self._file.release()

    @property
    def _has_called_model(self) -> bool:
        return self._listener.has_opened_run and bool(self._listener.run.gateway.served)

    def _show_until_end(self, file: LiveLineFile) -> None:
        """Paint the live line again and again or, without a terminal, print a line whenever it is due."""
        due = time.monotonic() + FIRST
        while not self._ended.wait(INTERVAL):
            self._print_notices(file)
            now, has_calls = time.monotonic(), self._has_called_model
            if file.is_terminal and has_calls:
                file.paint_line(fit_to_width(self.list_line_parts(now), file.width - 1))
            elif not file.is_terminal and now >= due and (has_calls or not self._listener.items):
                due = now + EVERY
                file.print_line(fit_to_width(self.list_line_parts(now), LONGEST) if has_calls else COLLECTING)

    def _print_notices(self, file: LiveLineFile) -> None:
        if self._has_called_model:
            notices = self._listener.run.gateway.notices
            while self._announced < len(notices):
                self._announced += 1
                file.print_line(escape_for_terminal(notices[self._announced - 1]))

    def list_line_parts(self, now: float) -> list[tuple[int, str]]:
        """Return the line's parts, each with its rank; if a terminal is narrow, parts with high ranks are left out."""
        gateway = self._listener.run.gateway
        paid, connections = gateway.ledger.paid, gateway.limiter.connections
        answers = paid.calls  # Answers of this session; `paid.cost` also includes earlier sessions of a resumed run.
        total = len(self._listener.items)
        parts = [(0, f"evalsuite {self._done}/{write_count(total, 'case')}"), (4, write_count(answers, "answer"))]
        parts += [(1, outage) for outage in gateway.describe_outages()]
        parts += [(1, pause) for upstream in gateway.upstreams if (pause := upstream.describe_pause())]
        parts += [(1, waits) for waits in self._listener.run.describe_waiting_batches()]
        parts += [
            (5, f"{write_count(connections.in_flight, 'call')} in flight"),
            (6, f"{self._compute_token_rate(now, paid.completion_tokens):.0f} tokens/s"),
        ]
        if paid.cost:
            parts.append((3, f"${paid.cost:.4f}"))
        for rate in filter(None, (upstream.limiter.pacing.rate for upstream in gateway.upstreams)):
            words = f"{rate:.0f} requests/s" if rate >= 2 else f"{write_count(round(60 * rate), 'request')}/min"
            parts.append((7, f"held to {words}"))
        seconds = estimate_seconds_left(now - self._started, self._done, answers, total)
        if seconds is not None:
            parts.append((2, f"{int(seconds // 60)}:{int(seconds % 60):02} left"))
        return parts

    def _compute_token_rate(self, now: float, tokens: int) -> float:
        self._tokens.append((now, tokens))
        # Keep at least two entries, even if the entries are further apart than `SPAN`.
        while len(self._tokens) > 2 and now - self._tokens[1][0] > SPAN:
            self._tokens.popleft()
        since, before = self._tokens[0]
        return (tokens - before) / max(now - since, INTERVAL)


def estimate_seconds_left(elapsed: float, ended_count: int, answer_count: int, case_count: int) -> float | None:
    """Estimate the seconds left from the share of finished cases; None if the share is unknown.

    Until `ENOUGH` cases are finished, count answers, because many answers arrive before the first case ends.
    """
    progress = ended_count if ended_count >= ENOUGH else min(max(ended_count, answer_count), case_count)
    return elapsed / progress * (case_count - progress) if 0 < progress < case_count else None


def fit_to_width(parts: Sequence[tuple[int, str]], width: int) -> str:
    """Join the parts to one line; while the line is too long, drop the part with the highest rank."""
    kept = list(parts)
    while len(kept) > 1 and len(_join_line_parts(kept)) > width:
        kept.remove(max(kept, key=lambda part: part[0]))
    return _join_line_parts(kept)[:width]


def _join_line_parts(parts: Sequence[tuple[int, str]]) -> str:
    return " · ".join(text for _, text in parts)


def show_progress(config: pytest.Config, listener: ReportListener) -> None:
    """Show progress in the controlling process, unless the user asked pytest to be quiet or uses the debugger.

    If tests write to the terminal themselves (`-s`), no line is shown.
    """
    terminal = config.pluginmanager.get_plugin("terminalreporter")
    # Show no live line with the debugger, because the line would overwrite the debugger's prompt.
    if terminal is None or terminal.verbosity < -1 or config.getoption("usepdb", default=False):
        return
    if not (config.getoption("capture", default="no") == "no" and terminal.isatty):
        config.pluginmanager.register(LiveLine(listener, terminal), "evalsuite-progress")
