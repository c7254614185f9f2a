"""`evalsuite score metrics tables FILE ...`: table metrics against human ratings, and on known changes (`--grid`)."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from evalsuite.builders.model_session import add_model_options
from evalsuite.core.errors import DatasetError, SettingsError
from evalsuite.core.phrases import number_of

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from evalsuite.metrics.tables import Format
    from evalsuite.output.reports.section import Table

SUFFIXES: dict[str, Format] = {
    ".html": "html",
    ".htm": "html",
    ".tex": "latex",
    ".md": "markdown",
    ".txt": "markdown",
}

PICTURES = (".svg", ".png")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what is measured and where the result goes."""
    parser.add_argument("what", choices=["tables"], help="the metrics to measure")
    parser.add_argument(
        "files",
        metavar="FILE",
        nargs="+",
        type=Path,
        help="rated outputs: JSON or JSON Lines of {reference, prediction, human, format}; further numbers, such as a "
        "judge's, are compared too. With --grid: tables (.html, .tex, .md) or items of Struc-Bench (.json)",
    )
    parser.add_argument(
        "--grid",
        action="store_true",
        help="score each table against known changes of itself: rewrites must keep 1, corruptions must lower it; "
        "status 1 where they do not",
    )
    parser.add_argument(
        "--all",
        action="store_true",
        help="count outputs without a readable table, too (default: leave them out)",
    )
    parser.add_argument("--to", metavar="FILE", type=Path, help="also write the tables as Markdown")
    parser.add_argument(
        "--plot",
        metavar="FILE",
        type=Path,
        help="also draw the correlations, as .svg or .png (extra `plots`)",
    )
    parser.add_argument(
        "--judgements",
        metavar="FILE",
        type=Path,
        default=Path("judgements.sqlite"),
        help="where answers of --model are kept, which are not asked for twice (default: judgements.sqlite)",
    )
    judge = parser.add_argument_group("a judge", "With --model its P-Score is measured beside the metrics.")
    add_model_options(judge, required=False)


def run(options: argparse.Namespace) -> int:
    """Print the tables.

    Raises:
        EvalsuiteError: a file cannot be read, or no output has a readable table.
    """
    return _run_grid(options) if options.grid else _run_agreement(options)


def _run_agreement(options: argparse.Namespace) -> int:
    from evalsuite.builders.model_session import model_settings
    from evalsuite.metaeval.agreement import agreements, is_readable, measure
    from evalsuite.metaeval.judged_tables import judged
    from evalsuite.metaeval.rated_tables import read_rated_tables
    from evalsuite.metaeval.table_report import agreement_chart, agreement_table

    everything = [rated for path in options.files for rated in read_rated_tables(path)]
    rated = everything if options.all else [pair for pair in everything if is_readable(pair)]
    left_out = len(everything) - len(rated)
    if not rated:
        raise SettingsError(f"{left_out} of {left_out} outputs have no readable table (see --all)")
    if options.plot and options.plot.suffix not in PICTURES:
        raise SettingsError(f"--plot {options.plot}: the name of a picture ends in {' or '.join(PICTURES)}")
    title = f"Agreement with people: {number_of(len(rated), 'output')}" + (
        f", {left_out} unreadable left out" if left_out else ""
    )
    values = measure(rated)
    if options.model:
        values |= judged(rated, model_settings(vars(options)), options.judgements)
    lines = agreements(rated, values)
    _show([agreement_table(lines, title)], options.to)
    if options.plot:
        from evalsuite.output.reports.plots import draw

        draw(agreement_chart(lines, title), options.plot)
    return 0


def _run_grid(options: argparse.Namespace) -> int:
    from evalsuite.metaeval.table_grid import run_grid
    from evalsuite.metaeval.table_report import grid_table

    lines = run_grid([item for path in options.files for item in _items(path)])
    _show([grid_table(lines)], options.to)
    return int(any(line.failures for line in lines))


def _items(path: Path) -> Iterator[tuple[str, str, Format]]:
    from evalsuite.benchmarks.struc_bench.items import format_of, read_items

    if path.suffix in SUFFIXES:
        yield path.stem, path.read_text("utf-8"), SUFFIXES[path.suffix]
    elif path.suffix == ".json" and (written := format_of(path)):
        for place, item in enumerate(read_items(path)):
            yield f"{written}-{place:03}", item.output, written
    else:
        raise DatasetError(
            path, "", "a file of unknown format", f"{', '.join(SUFFIXES)}, or items: table_test.json"
        )


def _show(tables: list[Table], file: Path | None) -> None:
    from tabulate import tabulate

    from evalsuite.output.reports.markdown import plain_text, render_table

    for table in tables:
        rows = [
            [plain_text(cell, column) for cell, column in zip(row, table.columns, strict=True)]
            for row in table.rows
        ]
        text = tabulate(rows, [column.title for column in table.columns], disable_numparse=True)
        sys.stdout.write(f"{table.title}\n\n{text}\n" + (f"\n{table.note}\n" if table.note else ""))
    if file:
        file.write_text("\n\n".join(map(render_table, tables)) + "\n", "utf-8")
