"""Whether `records.jsonl` still holds every case that the run's folder counts: a copy may have been cut short."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from evalsuite.core.errors import RunError

if TYPE_CHECKING:
    from pathlib import Path


def check_whole(file: Path, summary: Path, cases: int, *, cut: bool) -> None:
    """Sees that the records of a finished run are all there.

    Args:
        file: the records.
        summary: the run's `summary.json`; where it is missing or counts no cases, only a cut line is noticed.
        cases: how many cases have a whole record.
        cut: whether the last line has no end.

    Raises:
        RunError: some are missing.
    """
    expected = _counted(summary)
    if not cut and (expected is None or cases >= expected):
        return
    number = "" if expected is None else f"holds {cases} of {expected} cases"
    parts = [part for part in (number, "ends within a line" if cut else "") if part]
    raise RunError(f"{file} {' and '.join(parts)}: it was cut short; copy it again")


def ends_within_a_line(file: Path) -> bool:
    """Whether the last line has no end, so that it was cut or is still being written."""
    with file.open("rb") as stream:
        size = stream.seek(0, 2)
        stream.seek(max(0, size - 1))
        return stream.read(1) not in {b"", b"\n"}


def _counted(summary: Path) -> int | None:
    """How many cases a summary counts; None where it cannot be read, or counts none by outcome."""
    try:
        cases = json.loads(summary.read_text("utf-8"))["cases"]
        return sum(cases.values()) if cases else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
