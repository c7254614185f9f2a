"""A report as data: sections with tables, charts and passages; numbers are not yet rounded.

The modules `markdown.py` and `plots.py` turn a report's sections into text and pictures.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, cast

from evalsuite.results.tally import Estimate, RunView

Style = Literal["text", "count", "percent", "number", "pvalue"]
ChartKind = Literal["bars", "lines", "radar", "heatmap"]
Cell = str | int | float | Estimate | None


@dataclass(frozen=True, slots=True)
class Column:
    """A table's column.

    Attributes:
        title: the column's heading.
        style: how the column's numbers are printed; `percent` multiplies by 100, and `pvalue` prints small values as
            `<0.0001`.
        digits: the number of decimal places.
    """

    title: str
    style: Style = "text"
    digits: int = 1


def parse_columns(heads: str, titles: Iterable[str] = (), form: str = "percent") -> list[Column]:
    """Make columns, with title, style and decimal places, from a line: `Judge | Cases: count | Kappa: number 2`.

    Args:
        titles: the titles of further columns.
        form: the style of these columns and, if needed, their decimal places, such as `number 2`.
    """
    columns = []
    parts = [head.rpartition(": ") for head in heads.split(" | ")]
    for title, has_form, its_form in (*parts, *((title, ": ", form) for title in titles)):
        style, _, digits = its_form.partition(" ")
        columns.append(Column(title, cast("Style", style), int(digits or 1)) if has_form else Column(its_form))
    return columns


@dataclass(frozen=True, slots=True)
class Table:
    """A table; a cell with None is printed as a dash, because nothing was measured.

    Attributes:
        title: the table's heading.
        columns: the table's columns.
        rows: the cells of each row, in the order of the columns.
        note: the text that is printed below the table.
        best: the value to print in bold per row, or None; empty if the table has no bold values.
        folded: whether the table is among its section's details, which are folded at first.
    """

    title: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell]]
    note: str = ""
    best: Sequence[float | None] = ()
    folded: bool = False


@dataclass(frozen=True, slots=True)
class Series:
    """The data of one line, one set of bars, one polygon or one heat-map row; None stands for a missing value."""

    name: str
    values: Sequence[float | Estimate | None]


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart, drawn from its data.

    Attributes:
        kind: `bars`, `lines` and `radar` have a value for each label and series; in a `heatmap`, each series is a row.
        name: the beginning of the chart's file name, unique in the run (`head_to_tail_by_bucket`).
        title: the chart's heading.
        labels: the labels along the horizontal axis, at the radar's spokes or above the heat map's columns.
        series: the chart's lines, sets of bars, polygons or rows.
        unit: the unit of the values; `percent` multiplies by 100.
        limits: the ends of the value axis, in the unit of the data; None chooses them from the data.
        x_title: the title of the horizontal axis.
        y_title: the title of the value axis.
        folded: whether the chart is among its section's details, which are folded at first.
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
    """A paragraph of Markdown or, if `folded` is true, a model's text that is shown unchanged in a folded block.

    Attributes:
        title: the passage's heading; for a folded block, the line that stays visible.
        text: the text of the passage; its tags and links are shown as text.
        folded: whether the text is from a model; it is then shown unchanged in a folded block.
        whole: whether a folded text is shown completely. A debate, for example, cannot be understood in part.
    """

    title: str
    text: str
    folded: bool = False
    whole: bool = False


Block = Table | Chart | Passage


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a report, such as the part about one benchmark."""

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
    """Convert a cell to JSON: an estimate becomes an object; infinity and nan, which JSON lacks, become None."""
    if isinstance(cell, Estimate):
        parts = {"value": cell.value, "low": cell.low, "high": cell.high, "n": cell.n}
        return {name: convert_cell(value) for name, value in parts.items()}
    return None if isinstance(cell, float) and not math.isfinite(cell) else cell


def drop_unmeasured_columns(table: Table) -> Table:
    """Remove columns in which nothing was measured, and name them in the table's note.

    If no column has a measured value, keep all columns, so that the table shows that nothing was measured.
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
    """Tell whether a cell contains `best`, the best number of its row."""
    value = cell.value if isinstance(cell, Estimate) else cell
    return best is not None and column.style != "text" and value == best


def find_best_value(cells: Iterable[Cell], *, lower_is_better: bool) -> float | None:
    """Return a row's best number, unrounded; None if fewer than two numbers were measured or all are equal."""
    values = [cell.value if isinstance(cell, Estimate) else cell for cell in cells]
    numbers = [value for value in values if isinstance(value, float | int)]
    if len(numbers) < 2 or min(numbers) == max(numbers):
        return None
    return min(numbers) if lower_is_better else max(numbers)


def split_distinct_metrics(metrics: Sequence[str], values: Sequence[Sequence[object]]) -> tuple[list[str], list[str]]:
    """Leave out each metric whose values equal an earlier metric's; return the others, and a sentence per omission.

    Args:
        values: the values of each metric; all metrics list their cases in the same order.
    """
    kept: dict[tuple[object, ...], str] = {}
    repeated = []
    for metric, its in zip(metrics, values, strict=True):
        first = kept.setdefault(tuple(its), metric)
        if first != metric:
            repeated.append(f"{metric} has the values of {first}")
    return list(kept.values()), repeated


def split_by_mode(views: Sequence[RunView], *, name_run: bool) -> list[RunView]:
    """Make a view of each run's cases in each mode; a run with fewer than two modes keeps its view.

    Args:
        name_run: whether labels begin with the run's name even if there is only one run.
    """
    split = []
    for view in views:
        modes = view.tally.groups("mode")
        for mode, tally in modes.items() if len(modes) > 1 else [("", view.tally)]:
            label = f"{view.label}, {mode}" if name_run or len(views) > 1 else mode
            split.append(replace(view, label=label if mode else view.label, tally=tally))
    return split
