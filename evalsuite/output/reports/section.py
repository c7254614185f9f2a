"""The parts of a report as data: sections of tables, charts and passages, with unrounded numbers.

`markdown.py` and `plots.py` convert sections to text and pictures.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, cast

from evalsuite.results.tally import Estimate, RunView, Tally

Style = Literal["text", "count", "percent", "number", "pvalue"]
ChartKind = Literal["bars", "lines", "radar", "heatmap"]
Cell = str | int | float | Estimate | None


@dataclass(frozen=True, slots=True)
class Column:
    """A table's column.

    Attributes:
        title: the column's heading.
        style: the style of the column's numbers; `percent` multiplies by 100, and `pvalue` prints small values as
            `<0.0001`.
        digits: the number of decimal places.
    """

    title: str
    style: Style = "text"
    digits: int = 1


def parse_columns(heads: str) -> list[Column]:
    """Make columns from a line such as `Judge | Cases: count | Kappa: number 2`: title, style and decimal places."""
    columns = []
    for head in heads.split(" | "):
        title, has_style, form = head.rpartition(": ")
        style, _, digits = form.partition(" ")
        columns.append(Column(title, cast("Style", style), int(digits or 1)) if has_style else Column(head))
    return columns


@dataclass(frozen=True, slots=True)
class Table:
    """A table; None in a cell is printed as a dash, which means that the value was not measured.

    Attributes:
        title: the table's heading.
        columns: the table's columns.
        rows: the cells of each row, one for each column.
        note: the text below the table.
        best: the value to print in bold for each row, or None; empty if no value in the table is bold.
        folded: whether the table is folded among the details of its section.
    """

    title: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell]]
    note: str = ""
    best: Sequence[float | None] = ()
    folded: bool = False


@dataclass(frozen=True, slots=True)
class Series:
    """The data of one line, set of bars, polygon or heat-map row in a chart; a missing value is None."""

    name: str
    values: Sequence[float | Estimate | None]


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart, drawn from its data.

    Attributes:
        kind: the kind of chart; `bars`, `lines` and `radar` have one value per label and series, and in a
            `heatmap` each series is a row.
        name: the stem of the chart's file name, unique within the run (`head_to_tail_by_bucket`).
        title: the chart's heading.
        labels: the labels of the horizontal axis, of the radar's spokes or of the heat map's columns.
        series: the chart's lines, sets of bars, polygons or rows.
        unit: the unit of the values; `percent` multiplies by 100.
        limits: the ends of the value axis, before any multiplication; None derives them from the data.
        x_title: the title of the horizontal axis.
        y_title: the title of the value axis.
        folded: whether the chart is folded among the details of its section.
    """

    kind: ChartKind
    name: str
    title: str
    labels: Sequence[str]
    series: Sequence[Series]
    unit: Style = "number"
    limits: tuple[float, float] | None = None
    x_title: str = ""
    y_title: str = ""
    folded: bool = False

    @property
    def has_values(self) -> bool:
        """Whether any value was measured."""
        return any(value is not None for series in self.series for value in series.values)


@dataclass(frozen=True, slots=True)
class Passage:
    """A paragraph of Markdown or, if `folded` is true, a model's text, shown verbatim in a folded block.

    Attributes:
        title: the heading, or the visible line of the folded block.
        text: the text of the passage.
        folded: whether the text is a model's, shown verbatim in a folded block.
        whole: whether a folded text is shown in full length, because a debate must be read completely.
    """

    title: str
    text: str
    folded: bool = False
    whole: bool = False


Block = Table | Chart | Passage


@dataclass(frozen=True, slots=True)
class Section:
    """One benchmark's part of a report."""

    title: str
    blocks: Sequence[Block] = field(default_factory=tuple)


def list_charts(sections: Iterable[Section]) -> list[Chart]:
    """List all charts of a report."""
    return [block for section in sections for block in section.blocks if isinstance(block, Chart)]


def convert_tables(sections: Iterable[Section]) -> list[dict[str, Any]]:
    """Convert all tables of a report to plain data."""
    return [
        {
            "section": section.title,
            "title": block.title,
            "columns": [column.title for column in block.columns],
            "rows": [[convert_cell(cell) for cell in row] for row in block.rows],
        }
        for section in sections
        for block in section.blocks
        if isinstance(block, Table)
    ]


def convert_cell(cell: Cell) -> Any:
    """Convert a cell: an estimate becomes an object, and a number that JSON lacks, such as infinity, becomes None."""
    if isinstance(cell, Estimate):
        parts = {"value": cell.value, "low": cell.low, "high": cell.high, "n": cell.n}
        return {name: convert_cell(value) for name, value in parts.items()}
    return None if isinstance(cell, float) and not math.isfinite(cell) else cell


def drop_unmeasured_columns(table: Table) -> Table:
    """Remove columns without any measured value; the table's note names the removed columns.

    If nothing at all was measured, all columns stay, because the table must show that nothing was measured.
    """
    empty = [
        place
        for place, column in enumerate(table.columns)
        if column.style != "text" and all(row[place] is None for row in table.rows)
    ]
    if not empty or not table.rows or len(empty) == sum(column.style != "text" for column in table.columns):
        return table
    names = ", ".join(table.columns[place].title for place in empty)
    kept = [place for place in range(len(table.columns)) if place not in empty]
    return replace(
        table,
        columns=[table.columns[place] for place in kept],
        rows=[[row[place] for place in kept] for row in table.rows],
        note=f"{table.note} Not measured: {names}.".strip(),
    )


def is_best(cell: Cell, column: Column, best: float | None) -> bool:
    """Tell whether a cell contains the best number of its row, which is given as `best`."""
    value = cell.value if isinstance(cell, Estimate) else cell
    return best is not None and column.style != "text" and value == best


def find_best_value(cells: Iterable[Cell], *, lower_is_better: bool) -> float | None:
    """Return the best number, unrounded; None if fewer than two numbers were measured, or if all numbers are equal."""
    values = [cell.value if isinstance(cell, Estimate) else cell for cell in cells]
    numbers = [value for value in values if isinstance(value, float | int)]
    if len(numbers) < 2 or min(numbers) == max(numbers):
        return None
    return min(numbers) if lower_is_better else max(numbers)


def split_distinct_metrics(metrics: Sequence[str], values: Sequence[Sequence[object]]) -> tuple[list[str], list[str]]:
    """Separate metrics with distinct values from metrics that repeat another metric; describe each repetition.

    Args:
        values: all values of each metric, with the cases in the same order.
    """
    kept: dict[tuple[object, ...], str] = {}
    repeated = []
    for metric, its in zip(metrics, values, strict=True):
        first = kept.setdefault(tuple(its), metric)
        if first != metric:
            repeated.append(f"{metric} has the values of {first}")
    return list(kept.values()), repeated


@dataclass(frozen=True, slots=True)
class LabelledCases:
    """One row of a report's table: its heading, its cases, and the view of the run with these cases."""

    label: str
    tally: Tally
    view: RunView


def list_rows_by_mode(view: RunView, *, alone: bool) -> Iterator[LabelledCases]:
    """Yield one row per mode, or one row for a run without modes; labels omit the run if `alone` is true."""
    modes = view.tally.groups("mode")
    if len(modes) < 2:
        yield LabelledCases(view.label, view.tally, view)
        return
    for mode, tally in modes.items():
        yield LabelledCases(mode if alone else f"{view.label}, {mode}", tally, view)
