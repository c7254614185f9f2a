"""The page of a run in progress: rewritten again and again, and reloaded by every browser that has it open."""

from __future__ import annotations

import json
import platform
import time
from typing import TYPE_CHECKING

from evalsuite.core.errors import RunError
from evalsuite.decisions.verdict import judge_run, measure
from evalsuite.journal.lease import is_held
from evalsuite.output.page.chunks import FOLDER
from evalsuite.output.page.write import PAGE, write_page
from evalsuite.output.reports.report import build_report
from evalsuite.results.record_file import JOURNAL, RECORDS
from evalsuite.results.run_folders import replace_text
from evalsuite.results.runs import load_run

if TYPE_CHECKING:
    from collections.abc import Callable

    from evalsuite.core.declarations import Declarations
    from evalsuite.results.run_folders import RunFolder

LIVE = "live.js"
"""A script beside the page whose content changes with it; the page in the browser asks for it."""

QUIET = 600.0
"""Seconds without a new record after which a run without an end counts as killed, where its lock cannot tell."""


def goes_on(folder: RunFolder) -> bool:
    """Whether a run is being written to; a damaged one is not."""
    try:
        info = folder.info()
    except RunError:
        return False
    if "seconds" in info or info.get("stopped"):
        return False
    held = is_held(folder.path, platform.node())
    return time.time() - _last_written(folder) < QUIET if held is None else held


def _last_written(folder: RunFolder) -> float:
    """When a case last ended, by the run's journal, or by its records where it has none; 0 without either."""
    journal = [folder.path / JOURNAL, folder.path / f"{JOURNAL}-wal"]
    files = [file for file in journal if file.is_file()] or [folder.path / RECORDS]
    return max((file.stat().st_mtime for file in files if file.is_file()), default=0.0)


def write_live_page(folder: RunFolder, declarations: Declarations) -> int:
    """Writes the page of the cases so far.

    Returns:
        How many there are.
    """
    run = load_run(folder, declarations)
    cases = sum(len(bench.tally) for bench in run.benchmarks.values())
    measured = measure(run)
    verdict = judge_run(run)
    write_page(run, verdict, measured, build_report(run, verdict, measured), None, folder.path, live=cases)
    beside = folder.path / FOLDER
    beside.mkdir(exist_ok=True)
    replace_text(beside / LIVE, f"keepChunk('live',{json.dumps(str(cases))})\n")
    return cases


def follow(
    folder: RunFolder,
    declarations: Declarations,
    tell: Callable[[int], None],
    wait: Callable[[], None],
) -> None:
    """Keeps the page of a run up to date until the run ends.

    Args:
        folder: of the run.
        declarations: finds the benchmarks that the records name.
        tell: hears how many cases the page shows, whenever it was written.
        wait: called between two looks.
    """
    shown = 0.0
    while goes_on(folder):
        written = _last_written(folder)
        if written != shown:
            shown = written
            tell(write_live_page(folder, declarations))
        wait()
    # The run wrote its own page at its end, which ours may have replaced in the same moment.
    finish(folder, declarations)


def finish(folder: RunFolder, declarations: Declarations) -> None:
    """Writes the page of a run that has ended."""
    run = load_run(folder, declarations)
    measured = measure(run)
    verdict = judge_run(run)
    write_page(run, verdict, measured, build_report(run, verdict, measured), None, folder.path)
    (folder.path / FOLDER / LIVE).unlink(missing_ok=True)


def page_of(folder: RunFolder) -> str:
    """The address of a run's page."""
    return (folder.path / PAGE).absolute().as_uri()
