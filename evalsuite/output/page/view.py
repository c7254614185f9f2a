"""Rewrites the page of a run in progress regularly; browsers that show the page reload the page."""

import json
import platform
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from evalsuite.core.declarations import Declarations, is_run_folder
from evalsuite.core.errors import RunError
from evalsuite.decisions.verdict import make_verdict
from evalsuite.journal.lease import is_run_locked
from evalsuite.output.page.document import FOLDER, build_page
from evalsuite.output.page.write import PAGE, convert_block, summarise_benchmarks, write_page
from evalsuite.output.reports.report import build_report
from evalsuite.output.reports.section import Chart, Series
from evalsuite.output.reports.write import make_report
from evalsuite.results.run_folders import JOURNAL, RECORDS, RunFolder, explain_interruption, replace_file
from evalsuite.results.runs import load_run

LIVE = "live.js"  # Script that is rewritten together with the page; browsers poll it to notice changes.
# If the lock cannot show whether a run continues, the run counts as ended after this many seconds without a record.
QUIET = 600.0


def is_in_progress(folder: RunFolder) -> bool:
    """Tell whether a process is still writing a run's folder; return False for a damaged run."""
    try:
        info = folder.info()
    except RunError:
        return False
    if "seconds" in info or info.get("stopped"):
        return False
    held = is_run_locked(folder.path, platform.node())
    return time.time() - _find_last_case_end(folder) < QUIET if held is None else held


def _find_last_case_end(folder: RunFolder) -> float:
    """Read the time at which the last case ended, from the journal or the records; return 0 if both are missing."""
    journal = [folder.path / JOURNAL, folder.path / f"{JOURNAL}-wal"]
    files = [file for file in journal if file.is_file()] or [folder.path / RECORDS]
    return max((file.stat().st_mtime for file in files if file.is_file()), default=0.0)


def write_live_page(folder: RunFolder, declarations: Declarations) -> int:
    """Write the page of an unfinished run with the cases that have ended; return the number of these cases."""
    run = load_run(folder, declarations)
    cases = sum(len(bench.tally) for bench in run.benchmarks.values())
    verdict = make_verdict(run)
    write_page(run, verdict, summarise_benchmarks(run), build_report(run, verdict), None, folder.path, cases)
    beside = folder.path / FOLDER
    beside.mkdir(exist_ok=True)
    replace_file(beside / LIVE, f"keepChunk('live',{json.dumps(str(cases))})\n")
    return cases


def update_page_until_end(folder: RunFolder, declarations: Declarations) -> Iterator[int | None]:
    """Keep the page of a run up to date until the run ends; the caller sleeps between the iterations.

    Yields:
        The number of ended cases if the page was written; None if no case has ended since the last iteration.
    """
    shown = 0.0
    while is_in_progress(folder):
        last_end = _find_last_case_end(folder)
        yield write_live_page(folder, declarations) if last_end != shown else None
        shown = last_end
    # Write the final page again, because a live page may have replaced the final page that the run wrote.
    report = make_report(load_run(folder, declarations))
    benchmarks = summarise_benchmarks(report.run)
    write_page(report.run, report.verdict, benchmarks, report.sections, report.baseline, folder.path)
    (folder.path / FOLDER / LIVE).unlink(missing_ok=True)


INDEX = "index.html"


def write_index(folders: Iterable[RunFolder], reports: Path) -> Path:
    """Write an index of all runs into the folder that contains them; for an unreadable run, show the reason."""
    rows = sorted((_make_index_row(folder) for folder in folders), key=lambda row: (row["started"] or "", row["name"]))
    overview = {
        "kind": "index",
        "runs": rows,
        "benchmarks": [],
        "sections": [],
        "lower_is_better": [],
        "estimates": [],
        "differences": [],
        "trends": _make_trend_charts(rows),
        "bytes": 0,
    }
    file = reports / INDEX
    replace_file(file, build_page(f"Runs in {reports.absolute().name}", overview))
    return file


def list_runs(reports: Path) -> list[RunFolder]:
    """List every run in a folder."""
    return [RunFolder(path) for path in sorted(reports.glob("*")) if path.is_dir() and is_run_folder(path)]


def _make_index_row(folder: RunFolder) -> dict[str, Any]:
    row: dict[str, Any] = {"name": folder.name, "started": None, "page": (folder.path / PAGE).is_file()}
    try:
        info = folder.info()
    except RunError as error:
        return row | {"verdict": f"cannot be read: {error}", "status": None}
    summary = folder.summary()
    return row | {
        "model": info.get("model"),
        "started": info.get("started"),
        "seconds": info.get("seconds"),
        "usage": info.get("usage"),
        "status": summary.get("status"),
        "verdict": summary.get("verdict") or explain_interruption(info) or "no summary",
        "counts": summary.get("cases", {}),
        "metrics": {
            f"{name}.{bench['primary']}": bench["metrics"].get(bench["primary"])
            for name, bench in summary.get("benchmarks", {}).items()
            if bench.get("primary")
        },
    }


def _make_trend_charts(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Make one line chart for each metric that at least two runs have, with one line per model."""
    charts = []
    for metric in sorted({metric for row in rows for metric in row.get("metrics", {})}):
        measured = [row for row in rows if row.get("metrics", {}).get(metric)]
        if len(measured) < 2:
            continue
        models = list(dict.fromkeys(row["model"] for row in measured))
        series = [
            Series(model or "no model", [row["metrics"][metric] if row["model"] == model else None for row in measured])
            for model in models
        ]
        title = f"{metric.rpartition('.')[2]}, 95% interval"
        chart = Chart("lines", "", metric, [row["name"] for row in measured], series, y_title=title)
        charts.append({**convert_block(chart), "joined": True})
    return charts
