"""`index.html`: all runs of a folder, newest first, and their metrics over time."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from evalsuite.core.errors import RunError
from evalsuite.output.page.document import page
from evalsuite.output.page.write import PAGE
from evalsuite.results.run_folders import SUMMARY, RunFolder, interruption, is_run, replace_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

INDEX = "index.html"


def write_index(folders: Iterable[RunFolder], reports: Path) -> Path:
    """Writes the index of runs into their folder; runs that cannot be read are listed with the reason."""
    rows = sorted((_row(folder) for folder in folders), key=lambda row: (row["started"] or "", row["name"]))
    overview = {
        "kind": "index",
        "runs": rows,
        "benchmarks": [],
        "sections": [],
        "lower_is_better": [],
        "ranges": {},
        "trends": _trends(rows),
        "bytes": 0,
    }
    file = reports / INDEX
    replace_text(file, page(f"Runs in {reports.absolute().name}", overview))
    return file


def all_runs(reports: Path) -> list[RunFolder]:
    """Every run of a folder."""
    return [RunFolder(path) for path in sorted(reports.glob("*")) if path.is_dir() and is_run(path)]


def _row(folder: RunFolder) -> dict[str, Any]:
    row: dict[str, Any] = {"name": folder.name, "started": None, "page": (folder.path / PAGE).is_file()}
    try:
        info = folder.info()
    except RunError as error:
        return row | {"verdict": f"cannot be read: {error}", "status": None}
    summary = _summary(folder)
    return row | {
        "model": info.get("model"),
        "started": info.get("started"),
        "seconds": info.get("seconds"),
        "usage": info.get("usage"),
        "status": summary.get("status"),
        "verdict": summary.get("verdict") or interruption(info) or "no summary",
        "counts": summary.get("cases", {}),
        "metrics": {
            f"{name}.{bench['primary']}": bench["metrics"].get(bench["primary"])
            for name, bench in summary.get("benchmarks", {}).items()
            if bench.get("primary")
        },
    }


def _summary(folder: RunFolder) -> dict[str, Any]:
    try:
        summary: Any = json.loads((folder.path / SUMMARY).read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return summary if isinstance(summary, dict) else {}


def _trends(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """One line chart per metric that at least two runs have, with one line per model."""
    charts = []
    for metric in sorted({metric for row in rows for metric in row.get("metrics", {})}):
        measured = [row for row in rows if row.get("metrics", {}).get(metric)]
        if len(measured) < 2:
            continue
        models = list(dict.fromkeys(row["model"] for row in measured))
        charts.append(
            {
                "kind": "lines",
                "title": metric,
                "labels": [row["name"] for row in measured],
                "series": [
                    {
                        "name": model or "no model",
                        "values": [
                            row["metrics"][metric] if row["model"] == model else None for row in measured
                        ],
                    }
                    for model in models
                ],
                "unit": "number",
                "limits": None,
                "x_title": "",
                "y_title": f"{metric.rpartition('.')[2]}, 95% interval",
                "joined": True,
            }
        )
    return charts
