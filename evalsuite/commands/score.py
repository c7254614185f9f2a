"""`evalsuite score`: score existing tables, or compare `metrics` of tables with people's ratings."""

from __future__ import annotations

import argparse
import csv
import io
import json
import os
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evalsuite.builders.model_session import TAKEN, add_options, make_model_settings
from evalsuite.core.errors import DatasetError, ScoringError, SettingsError, escape_formula, write_count
from evalsuite.core.option_values import declare_arguments
from evalsuite.output.reports.markdown import format_plain_cell, render_table
from evalsuite.samples.items import read_json_lines, read_text

if TYPE_CHECKING:
    from evalsuite.metrics.tables import Format, TableScore
    from evalsuite.output.reports.section import Table

FIELDS = ("pair", "value", "content", "form")


@declare_arguments(
    """
    what=KIND           the kind of output to score
    --reference FILE   the wanted table
    --prediction FILE  a model's answer; prose may surround the table
    --pairs FILE       JSON lines {prediction, reference} with optional id and format, instead of --reference and
        --prediction
    --format --any-order --html
    --json             print JSON: one object per table
    --csv              print a line of numbers per table
    """,
    what=["tables"],
)
def run_score(options: argparse.Namespace) -> int:
    """Print one pair's score, format checks, diff and signature, or one line for each pair of `--pairs`."""
    sides = [side is not None for side in (options.reference, options.prediction)]
    if (any(sides) if options.pairs else not all(sides)) or (options.json and options.csv):
        options.parser.error("give --reference and --prediction, or --pairs; and at most one of --json and --csv")
    score = partial(score_pair, syntax=options.format, any_order=options.any_order)
    if options.pairs is None:
        pair = {"prediction": read_table(options.prediction), "reference": read_table(options.reference)}
        scored = [(options.prediction.name, score(pair))]
    else:
        pairs = _read_table_pairs(options.pairs)
        scored = [(name, score(pair, place=f"{options.pairs}, pair {name}: ")) for name, pair in pairs]
    if options.json:
        for name, result in scored:
            sys.stdout.write(f"{json.dumps({'pair': name, **result.to_dict()}, ensure_ascii=False)}\n")
    elif options.csv:
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(FIELDS)
        writer.writerows((escape_formula(name), result.value, result.content, result.form) for name, result in scored)
    elif options.pairs is not None:
        _print_score_table(scored)
    else:
        print_score(scored[0][1])
    write_diff_page(scored, options.html)
    return 0


def print_score(score: TableScore) -> None:
    """Print a score and its diff, in colours on a terminal unless NO_COLOR is set."""
    colour = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    sys.stdout.write(f"{score.show(colour=colour)}\n")


def write_diff_page(scored: Sequence[tuple[str, TableScore]], file: Path | None) -> None:
    """Write the diffs and their names as an HTML page, unless `file` is None."""
    if file:
        from evalsuite.metrics.tables.table_score import render_html_page

        file.write_text(render_html_page(scored), "utf-8")


def score_pair(pair: dict[str, Any], syntax: str | None, *, any_order: bool, place: str = "") -> TableScore:
    """Score the table in a prediction against the table in its reference; error messages begin with `place`."""
    from evalsuite.metrics.tables import table_score

    syntax = pair.get("format") or syntax
    try:
        return table_score(pair["prediction"], pair["reference"], format=syntax, row_order=not any_order)
    except (TypeError, ValueError, ScoringError) as error:
        raise ScoringError(f"{place}{error}") from error


def read_table(path: Path) -> str:
    """Read a table's file; every line end becomes a line feed."""
    return io.StringIO(read_text(path, "a file with a table"), newline=None).read()


def _read_table_pairs(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    pairs = list(read_json_lines(path, "a file of pairs", refuse_surrogates=False))
    if not pairs:
        raise DatasetError(path, "", "no line", "JSON lines {prediction, reference}")
    for pair in pairs:
        if not {"prediction", "reference"} <= pair.fields.keys():
            raise pair.make_error(f"fields {', '.join(pair.fields)}", "{prediction, reference}")
        yield str(pair.fields.get("id", pair.where.removeprefix("line "))), dict(pair.fields)


def _print_score_table(scored: Sequence[tuple[str, TableScore]]) -> None:
    from evalsuite.metrics.tables.table_score import shorten_to_printable

    width = max(len("mean"), *(len(name) for name, _ in scored))
    numbers = [(name, (score.value, score.content, score.form)) for name, score in scored]
    means = tuple(sum(column) / len(scored) for column in zip(*(row for _, row in numbers), strict=True))
    write = sys.stdout.write
    write(f"{'pair':<{width}}  value  content  form\n")
    for name, (value, content, form) in [*numbers, ("mean", means)]:
        write(f"{shorten_to_printable(name):<{width}}  {value:.3f}    {content:.3f} {form:.3f}\n")
    write("\n")
    for signature in dict.fromkeys(score.signature for _, score in scored):
        write(f"{signature}\n")


SUFFIXES: dict[str, Format] = {".html": "html", ".htm": "html", ".tex": "latex", ".md": "markdown", ".txt": "markdown"}
PICTURES = (".svg", ".png")


def _add_judge_options(parser: argparse.ArgumentParser) -> None:
    judge = parser.add_argument_group("a judge", "With --model, the model's P-Score is measured beside the metrics.")
    add_options(judge, TAKEN)


@declare_arguments(
    """
    what=KIND           the metrics to measure
    files=FILE+        rated outputs: JSON or JSON Lines of {reference, prediction, human, format}; further numbers,
        such as a judge's, are compared too. With --grid: tables (.html, .tex, .md) or items of Struc-Bench (.json)
    --grid             score each table against known changes of itself; the exit status is 1 unless every rewrite
        scores 1 and every corruption scores less
    --to FILE          also write the tables as Markdown
    --plot FILE        also draw the correlations, as .svg or .png (extra `plots`)
    --judgements FILE  store of the answers of --model, so that no answer is paid for twice (default: judgements.sqlite)
    """,
    what=["tables"],
    judgements=Path("judgements.sqlite"),
    extend_parser=_add_judge_options,
)
def run_metaeval(options: argparse.Namespace) -> int:
    """Print how well the metrics agree with people or, with `--grid`, how the metrics react to known changes."""
    if not options.grid:
        return _print_agreement_with_people(options)
    from evalsuite.metaeval.table_grid import tabulate_change_effects

    table, holds = tabulate_change_effects([item for path in options.files for item in _read_tables(path)])
    _print_and_write_tables([table], options.to)
    return int(not holds)


def _print_agreement_with_people(options: argparse.Namespace) -> int:
    from evalsuite.metaeval import agreement

    everything = [rated for path in options.files for rated in agreement.read_rated_tables(path)]
    read = list(map(agreement.is_readable, everything))
    rated = [pair for pair, readable in zip(everything, read, strict=True) if readable]
    left_out = len(everything) - len(rated)
    if not rated:
        raise SettingsError(f"{left_out} of {left_out} outputs have no readable table")
    if options.plot and options.plot.suffix not in PICTURES:
        raise SettingsError(f"--plot {options.plot}: the name of a picture ends in {' or '.join(PICTURES)}")
    title = f"Agreement with people: {write_count(len(rated), 'output')}"
    title += f", {left_out} unreadable left out" if left_out else ""
    values = agreement.compute_metrics(rated)
    if options.model:
        values |= agreement.judge_tables(rated, make_model_settings(vars(options)), options.judgements)
    lines = agreement.compute_agreements(rated, values)
    shown = agreement.tabulate_agreements(lines, title)
    if left_out:
        title = f"Agreement with people: {write_count(len(everything), 'output')}, {left_out} unreadable as zeros"
        filled = agreement.fill_unreadable_scores(everything, read, values)
        shown += agreement.tabulate_agreements(agreement.compute_agreements(everything, filled), title)
    _print_and_write_tables(shown, options.to)
    if options.plot:
        from evalsuite.output.reports.plots import draw_chart

        draw_chart(agreement.draw_agreements(lines, shown[0].title), options.plot)
    return 0


def _read_tables(path: Path) -> Iterator[tuple[str, str, Format]]:
    from evalsuite.benchmarks.struc_bench.items import find_format, read_items

    if path.suffix in SUFFIXES:
        yield path.stem, read_table(path), SUFFIXES[path.suffix]
    elif path.suffix == ".json" and (written := find_format(path)):
        for place, item in enumerate(read_items(path)):
            yield f"{written}-{place:03}", item.output, written
    else:
        raise DatasetError(path, "", "a file of unknown format", f"{', '.join(SUFFIXES)}, or items: table_test.json")


def _print_and_write_tables(tables: list[Table], file: Path | None) -> None:
    from tabulate import tabulate

    for table in tables:
        rows = [list(map(format_plain_cell, row, table.columns)) for row in table.rows]
        text = tabulate(rows, [column.title for column in table.columns], disable_numparse=True)
        sys.stdout.write(f"{table.title}\n\n{text}\n" + (f"\n{table.note}\n\n" if table.note else ""))
    if file:
        file.write_text("\n\n".join(map(render_table, tables)) + "\n", "utf-8")
