"""A case that misses its threshold explains itself: its block stands where pytest would show a traceback."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from _pytest._code.code import (
    ExceptionRepr,
    ReprEntryNative,
    ReprExceptionInfo,
    ReprFileLocation,
    ReprTraceback,
)

from evalsuite.errors import for_terminal

if TYPE_CHECKING:
    import pytest

SECTION = "evalsuite"

NUMBERS_ALONE = re.compile(r"(AssertionError: )?assert [-+.\de]+( \(.*\))? (==|!=|<=?|>=?) [-+.\de]+")
"""A comparison of numbers, which the block's scores show better."""


def explain(item: pytest.Item, call: pytest.CallInfo[None], report: pytest.TestReport, block: str) -> None:
    """Adds the block to a failed report, in place of the traceback unless `--tb` asks for one.

    It is a section of the failure itself, so that junit, pytest-html and workers carry it as they do a traceback.

    Args:
        item: of the case.
        call: the phase that failed.
        report: what pytest made of it.
        block: see `reporting.case_block`.
    """
    assert call.excinfo is not None  # noqa: S101 - for the type checker: it failed
    if item.config.option.tbstyle != "auto" and isinstance(report.longrepr, ExceptionRepr):
        report.longrepr.addsection(SECTION, block, "-")
        return
    message = call.excinfo.exconly(tryshort=True)
    entry = next(
        (entry for entry in reversed(call.excinfo.traceback) if entry.path == item.path),
        call.excinfo.traceback[-1],
    )
    place = ReprFileLocation(report.location[0], entry.lineno + 1, for_terminal(message))
    statement = for_terminal(str(entry.statement).strip())
    lines = [f"{place.path}:{place.lineno}: {statement}\n"]
    if not NUMBERS_ALONE.fullmatch(message):
        lines += [f"E   {line}\n" for line in for_terminal(message).splitlines()]
    trace = ReprTraceback([ReprEntryNative(lines)], None, "native")
    explained = ReprExceptionInfo(trace, place)
    explained.addsection(SECTION, block, "-")
    report.longrepr = explained


def add_baseline(report: pytest.TestReport, line: str) -> None:
    """Adds what the baseline answered to the block of a failed report."""
    sections = getattr(report.longrepr, "sections", [])
    for at, (name, block, sep) in enumerate(sections):
        if name == SECTION:
            sections[at] = (name, f"{block}\n{line}", sep)
