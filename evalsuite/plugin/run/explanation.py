"""A case that misses its threshold explains itself: its block stands where pytest would show a traceback."""

from __future__ import annotations

import linecache
import re
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING

import pytest
from _pytest._code.code import (
    ExceptionRepr,
    ReprEntryNative,
    ReprExceptionInfo,
    ReprFileLocation,
    ReprTraceback,
)
from _pytest._code.source import Source

from evalsuite.core.errors import EvalsuiteError, for_terminal

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import CodeType

SECTION = "evalsuite"

NUMBERS_ALONE = re.compile(r"(AssertionError: )?assert [-+.\de]+( \(.*\))? (==|!=|<=?|>=?) [-+.\de]+")
"""A comparison of numbers, which the block's scores show better."""


def explain(item: pytest.Item, call: pytest.CallInfo[None], report: pytest.TestReport, block: str) -> None:
    """Adds the block to the report of a case that failed, in place of the traceback unless `--tb` asks for one.

    An exception, as opposed to a missed threshold, keeps its traceback.

    It is a section of the failure itself, so that junit, pytest-html and workers carry it as they do a traceback.

    Args:
        item: of the case.
        call: the phase that failed.
        report: what pytest made of it.
        block: see `reporting.case_block`.
    """
    assert call.excinfo is not None  # noqa: S101 - for the type checker: it failed
    if isinstance(report.longrepr, ExceptionRepr) and not _replaces_traceback(item.config, call):
        report.longrepr.addsection(SECTION, block, "-")
        return
    message = for_terminal(_message(call.excinfo))
    file, line, _ = report.location
    test_file = str(item.path)
    entry = next(
        (
            entry
            for entry in reversed(call.excinfo.traceback)
            if entry.frame.code.raw.co_filename == test_file
        ),
        None,
    )
    if entry is None:
        # Nothing of the test itself ran, as where its fixture `scores` gives up.
        place = ReprFileLocation(file, (line or 0) + 1, message)
        lines = [f"{file}:{place.lineno}: {type(call.excinfo.value).__name__}\n"]
    else:
        place = ReprFileLocation(file, entry.lineno + 1, message)
        lines = [f"{file}:{place.lineno}: {_statement(entry.frame.code.raw, entry.lineno)}\n"]
    if message not in block and not NUMBERS_ALONE.fullmatch(message):
        lines += [f"E   {line}\n" for line in message.splitlines()]
    trace = ReprTraceback([ReprEntryNative(lines)], None, "native")
    explained = ReprExceptionInfo(trace, place)
    explained.addsection(SECTION, block, "-")
    report.longrepr = explained


@contextmanager
def sparing_traceback(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """Keeps pytest from working out a traceback that `explain` replaces: it takes longer than the case itself."""
    if call.when != "call" or call.excinfo is None or not _replaces_traceback(item.config, call):
        yield
        return
    item.repr_failure = lambda excinfo, style=None: ""  # type: ignore[method-assign] # noqa: ARG005 - as pytest calls it
    try:
        yield
    finally:
        # The item may be run again, and fail in another way.
        del item.repr_failure


def _replaces_traceback(config: pytest.Config, call: pytest.CallInfo[None]) -> bool:
    """Whether the explanation says all that a traceback would, and nobody asked for one."""
    assert call.excinfo is not None  # noqa: S101 - for the type checker: it failed
    error = call.excinfo.value
    return config.option.tbstyle == "auto" and isinstance(
        error, AssertionError | EvalsuiteError | pytest.fail.Exception
    )


@lru_cache(maxsize=256)
def _statement(code: CodeType, line: int) -> str:
    """The statement at a line; to find it means to parse the file, and a benchmark's cases fail at the same few."""
    # pytest's own way asks inspect, which looks through all modules of the process for the file.
    lines = linecache.getlines(code.co_filename)
    return for_terminal(str(Source(lines).getstatement(line)).strip()) if line < len(lines) else ""


def _message(raised: pytest.ExceptionInfo[BaseException]) -> str:
    """What was raised, without the names of our own exceptions and their modules."""
    return str(raised.value) if isinstance(raised.value, EvalsuiteError) else raised.exconly(tryshort=True)


def block_of(report: pytest.TestReport) -> str:
    """The block in a report; empty where it has none."""
    sections = getattr(report.longrepr, "sections", [])
    return next((str(block) for name, block, _ in sections if name == SECTION), "")


def add_baseline(report: pytest.TestReport, line: str) -> None:
    """Adds what the baseline answered to the block of a failed report."""
    sections = getattr(report.longrepr, "sections", [])
    for at, (name, block, sep) in enumerate(sections):
        if name == SECTION:
            sections[at] = (name, f"{block}\n{line}", sep)
