"""`evalsuite runs`: a table of the runs in the folder of reports, the newest first."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

from evalsuite.commands.arguments import add_reports_folder
from evalsuite.core.errors import RunError
from evalsuite.output.page.view import all_runs
from evalsuite.output.reports.markdown import terminal_table
from evalsuite.output.reports.section import Column, Table
from evalsuite.results.run_folders import SUMMARY, begun

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from evalsuite.output.reports.section import Cell
    from evalsuite.results.run_folders import RunFolder

COLUMNS = (
    Column("run"),
    Column("started"),
    Column("model"),
    *(Column(outcome, "count") for outcome in ("passed", "failed", "error")),
    Column("cost in $", "number", 4),
    Column("verdict"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the folder of runs."""
    add_reports_folder(parser)


def run(options: argparse.Namespace) -> int:
    """Print the table.

    Raises:
        RunError: the folder holds no run.
    """
    folders = newest_first(all_runs(options.reports))
    if not folders:
        raise RunError(f"no run in {options.reports}; pytest leaves them there")
    rows = [_row(folder) for folder in folders]
    sys.stdout.write(f"{terminal_table(Table('', COLUMNS, rows))}\n")
    return 0


def newest_first(folders: Sequence[RunFolder]) -> list[RunFolder]:
    """Sort runs by when they began, the newest first."""
    return sorted(folders, key=lambda folder: begun(folder.path), reverse=True)


def _row(folder: RunFolder) -> list[Cell]:
    info, summary = _info(folder), _summary(folder)
    cases, usage = summary.get("cases") or {}, summary.get("usage") or {}
    return [
        folder.name,
        str(info.get("started", ""))[:19].replace("T", " "),
        info.get("model") or "none",
        *(cases.get(outcome, 0) if summary else None for outcome in ("passed", "failed", "error")),
        usage.get("cost"),
        str(summary.get("verdict", "not finished")),
    ]


def _info(folder: RunFolder) -> dict[str, Any]:
    try:
        return folder.info()
    except RunError:
        # One damaged run must not hide the others.
        return {}


def _summary(folder: RunFolder) -> dict[str, Any]:
    try:
        summary = json.loads((folder.path / SUMMARY).read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return summary if isinstance(summary, dict) else {}
