"""Runs by the kind of their model, as in the paper's Table 4: the mean over the models of a kind."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import TYPE_CHECKING

from evalsuite.benchmarks.dataset_files import read_json
from evalsuite.benchmarks.treb.averages import METRICS, column_mean, columns_of, overall
from evalsuite.output.reports.section import Chart, Column, Series, Table

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from evalsuite.output.reports.section import Block, Cell
    from evalsuite.results.tally import RunView

FILE = Path(__file__).parent / "data" / "published_kinds.json"
# The first that fits a model's name counts; the paper's models fall into its own kinds by these.
KINDS: dict[str, re.Pattern[str]] = {
    "table-reasoning-optimised": re.compile(r"(?<!s)table", re.IGNORECASE),
    "code-optimised": re.compile(r"code|starcoder|codestral|devstral", re.IGNORECASE),
    "math-optimised": re.compile(r"math|prover", re.IGNORECASE),
    "deep-thinking": re.compile(r"\br1\b|qwq|qwen-?3|think|reason|\bo[134]\b", re.IGNORECASE),
    "general": re.compile(""),
}


def kind_of(model: str) -> str:
    """The kind of a model, read off its name."""
    return next(kind for kind, name in KINDS.items() if name.search(model))


def by_kind(views: Sequence[RunView], metric: str, *, published: bool) -> Iterator[Block]:
    """Table and picture of several runs by kind; nothing for a single run.

    Args:
        views: the runs.
        metric: the one that both show.
        published: whether the paper's rows stand below, which are of the judge.
    """
    if len(views) < 2:
        return
    columns = columns_of(metric)
    kinds: dict[str, list[list[float | None]]] = {}
    for view in views:
        estimate = overall(view.tally, metric)
        means = [column_mean(view.tally, metric, column) for column in columns]
        row = [*means, estimate.value if estimate is not None else None]
        kinds.setdefault(kind_of(view.label), []).append(row)
    rows: list[list[Cell]] = [
        [kind, len(kinds[kind]), *_means(kinds[kind])] for kind in reversed(KINDS) if kind in kinds
    ]
    labels = [" ".join(column) for column in columns]
    series = [Series(str(row[0]), [_value(cell) for cell in row[2:-1]]) for row in rows]
    note = f"{METRICS[metric]}, in percent: the mean over the models of a kind, which is read off a model's name."
    if published and metric == "judge":
        board = read_json(FILE, dict)
        rows += [
            [f"{kind} (published)", count, *(value / 100 for value in values)]
            for kind, count, *values in board["rows"]
        ]
        note += f" Rows marked as published: {board['source']}."
    heads = [Column("Kind"), Column("Models", "count"), *(Column(label, "percent", 2) for label in labels)]
    yield Table("By kind of model", (*heads, Column("Overall", "percent", 2)), rows, note)
    if len(series) > 1:
        title = f"TReB by kind of model: {METRICS[metric]}"
        yield Chart(
            "radar", "treb_by_kind", title, labels, series, "percent", (0.0, 1.0), y_title=METRICS[metric]
        )


def _means(rows: Sequence[Sequence[float | None]]) -> Iterator[float | None]:
    for values in zip(*rows, strict=True):
        yield _mean(value for value in values if value is not None)


def _mean(values: Iterable[float]) -> float | None:
    measured = list(values)
    return math.fsum(measured) / len(measured) if measured else None


def _value(cell: Cell) -> float | None:
    return cell if isinstance(cell, float) else None
