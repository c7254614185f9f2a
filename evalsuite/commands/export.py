"""`evalsuite export RUN ... --to FORMAT`: a run's cases, or its numbers, for other tools."""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evalsuite.commands.arguments import add_reports_folder, own_declarations
from evalsuite.core.errors import RunError
from evalsuite.core.json_codec import encode_record
from evalsuite.output.exports import inert, inspect_file_name, inspect_log, lm_eval_results
from evalsuite.output.paper import latex_table
from evalsuite.output.reports.compare import GLANCE, compare_runs, label_runs
from evalsuite.output.reports.section import Table
from evalsuite.results.run_folders import find_folder
from evalsuite.results.runs import columns_of, flat_row, load_run

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterator, Sequence

    from evalsuite.results.runs import Run


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the runs, the format, and where the file goes."""
    add_reports_folder(parser)
    parser.add_argument("names", metavar="RUN", nargs="+", help="names or folders of runs, or `last`")
    parser.add_argument("--to", required=True, choices=FORMATS, dest="format", help="the format")
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="PATH",
        help="file (for inspect: folder) to write; default: by format",
    )
    parser.epilog = (
        "csv, parquet and jsonl hold every case; text that a spreadsheet would run as a formula gets an apostrophe "
        "in CSV. latex is a table of the benchmarks' primary metrics with intervals. inspect is a log for each "
        "benchmark, lm-eval the harness's results JSON."
    )


def run(options: argparse.Namespace) -> int:
    """Write what was asked for and say where."""
    runs = [load_run(find_folder(options.reports, name), own_declarations()) for name in options.names]
    write, usual = FORMATS[options.format]
    target = options.output or Path(usual)
    target.parent.mkdir(parents=True, exist_ok=True)
    for file in write(runs, target):
        sys.stdout.write(f"{file}\n")
    return 0


def _rows(runs: Sequence[Run]) -> Iterator[dict[str, Any]]:
    for run in runs:
        for record in run.records:
            yield {"run": run.folder.name, **flat_row(record)}


def _write_csv(runs: Sequence[Run], target: Path) -> list[Path]:
    # Twice over the records rather than all of them in memory: the columns are known only at the end.
    columns = columns_of(_rows(runs))
    with target.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(map(inert, columns))
        for row in _rows(runs):
            writer.writerow([inert(row.get(name)) for name in columns])
    return [target]


def _write_jsonl(runs: Sequence[Run], target: Path) -> list[Path]:
    with target.open("w", encoding="utf-8", errors="replace") as stream:
        for run in runs:
            for record in run.records:
                plain = {"run": run.folder.name, **encode_record(record)}
                stream.write(json.dumps(plain, ensure_ascii=False, default=dict) + "\n")
    return [target]


def _write_parquet(runs: Sequence[Run], target: Path) -> list[Path]:
    try:
        import duckdb
        import pandas as pd
    except ImportError as error:
        raise RunError("Parquet needs duckdb and pandas: pip install 'evalsuite[build,sandbox]'") from error
    frame = pd.DataFrame(_rows(runs))
    # A target may be text in one case and a number in another.
    frame["target"] = frame["target"].map(lambda value: None if value is None else str(value))
    with duckdb.connect() as database:
        database.register("cases", frame)
        database.table("cases").write_parquet(str(target))
    return [target]


def _write_latex(runs: Sequence[Run], target: Path) -> list[Path]:
    sections = compare_runs(runs, label_runs(runs))
    tables = [
        latex_table(block, "Benchmarks with 95% intervals.")
        for section in sections
        if section.title == GLANCE
        for block in section.blocks
        if isinstance(block, Table)
    ]
    target.write_text("% needs \\usepackage{booktabs}\n" + "\n".join(tables), "utf-8")
    return [target]


def _write_inspect(runs: Sequence[Run], target: Path) -> list[Path]:
    files = []
    for run in runs:
        for name in run.benchmarks:
            file = target / inspect_file_name(run, name)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(json.dumps(inspect_log(run, name), indent=1, default=dict), "utf-8")
            files.append(file)
    return files


def _write_lm_eval(runs: Sequence[Run], target: Path) -> list[Path]:
    if len(runs) > 1:
        raise RunError("lm-eval's results are of one run; export each by itself")
    target.write_text(json.dumps(lm_eval_results(runs[0]), indent=1), "utf-8")
    return [target]


FORMATS: dict[str, tuple[Callable[[Sequence[Run], Path], list[Path]], str]] = {
    "csv": (_write_csv, "cases.csv"),
    "parquet": (_write_parquet, "cases.parquet"),
    "latex": (_write_latex, "benchmarks.tex"),
    "jsonl": (_write_jsonl, "cases.jsonl"),
    "inspect": (_write_inspect, "inspect-logs"),
    "lm-eval": (_write_lm_eval, "results.json"),
}
"""What writes each format, and where without `-o`."""
