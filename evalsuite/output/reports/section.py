"""What a report is made of, as data: sections of tables, charts and passages, with unrounded numbers.

`markdown.py` and `plots.py` turn it into text and pictures; nothing here knows how it will look.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from evalsuite.results.tally import Estimate

if TYPE_CHECKING:
    from collections.abc import Sequence

Style = Literal["text", "count", "percent", "number", "pvalue"]
ChartKind = Literal["bars", "lines", "radar", "heatmap"]


Cell = str | int | float | Estimate | None


@dataclass(frozen=True, slots=True)
class Column:
    """A table's column.

    Attributes:
        title: heading.
        style: how its numbers are printed; `percent` multiplies by 100, `pvalue` says `<0.0001` below that.
        digits: digits after the point.
    """

    title: str
    style: Style = "text"
    digits: int = 1


@dataclass(frozen=True, slots=True)
class Table:
    """A table; None in a cell is printed as a dash, which means: not measured.

    Attributes:
        title: heading.
        columns: see above.
        rows: cells, one for each column.
        note: below the table.
        best: for each row the value that is set in bold, None for none; empty where no row has one.
        folded: shown closed, among the details of its section.
    """

    title: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell]]
    note: str = ""
    best: Sequence[float | None] = ()
    folded: bool = False


@dataclass(frozen=True, slots=True)
class Series:
    """One line, set of bars, polygon or heat-map row; None where there is no value."""

    name: str
    values: Sequence[float | Estimate | None]


@dataclass(frozen=True, slots=True)
class Chart:
    """A picture, drawn from data.

    Attributes:
        kind: `bars`, `lines` and `radar` have one value per label and series; in a `heatmap` each series is a row.
        name: the stem of the picture's file, unique within the run (`head_to_tail_by_bucket`).
        title: heading.
        labels: of the horizontal axis, the radar's spokes or the heat map's columns.
        series: see above.
        unit: `percent` multiplies by 100.
        limits: of the value axis, before any multiplication; None lets the data decide.
        x_title: of the horizontal axis.
        y_title: of the value axis.
        folded: shown closed, among the details of its section.
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


@dataclass(frozen=True, slots=True)
class Passage:
    """Text to read: a paragraph of Markdown, or (`folded`) words of a model, shown verbatim and closed.

    Attributes:
        title: heading, or what stands where it is closed.
        text: the words.
        folded: see above.
        whole: what is folded is not cut, however long: a debate is only understood from beginning to end.
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
