"""Tables and figures of a report in LaTeX, for the packages booktabs and graphicx."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from evalsuite.output.reports.markdown import one_line, plain_text
from evalsuite.output.reports.table_looks import without_unmeasured
from evalsuite.results.tally import Estimate

if TYPE_CHECKING:
    from collections.abc import Mapping

    from evalsuite.output.reports.section import Cell, Column, Table

NO_STARS: Mapping[tuple[str, str], str] = MappingProxyType({})

SPECIAL = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "↑": r"$\uparrow$",
    "↓": r"$\downarrow$",
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
}


def escape(text: str) -> str:
    """Text in LaTeX in which no character is a command."""
    return "".join(SPECIAL.get(sign, sign) for sign in one_line(text))


def latex_table(table: Table, caption: str, stars: Mapping[tuple[str, str], str] = NO_STARS) -> str:
    """A table with its caption and note; the best of a row is bold.

    Args:
        table: what it shows.
        caption: above it.
        stars: marks of significance, by a row's first cell and a column's title.
    """
    table = without_unmeasured(table)
    bests = table.best or [None] * len(table.rows)
    rows = []
    for row, best in zip(table.rows, bests, strict=True):
        marks = (stars.get((str(row[0]), column.title), "") for column in table.columns)
        cells = zip(row, table.columns, marks, strict=True)
        rows.append(" & ".join(_cell(cell, column, best) + mark for cell, column, mark in cells))
    shape = "".join("l" if column.style == "text" else "r" for column in table.columns)
    lines = [
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{escape(caption)}}}",
        rf"\begin{{tabular}}{{{shape}}}",
        r"\toprule",
        " & ".join(escape(column.title) for column in table.columns) + r" \\",
        r"\midrule",
        *(rf"{row} \\" for row in rows),
        r"\bottomrule",
        r"\end{tabular}",
        *([rf"\par\smallskip\footnotesize {escape(table.note)}"] if table.note else []),
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def _cell(cell: Cell, column: Column, best: float | None) -> str:
    value = cell.value if isinstance(cell, Estimate) else cell
    text = escape(plain_text(cell, column))
    bold = best is not None and column.style != "text" and value == best
    return rf"\textbf{{{text}}}" if bold else text


def latex_figure(name: str, caption: str) -> str:
    """A picture that stands beside the document, with its caption."""
    return (
        "\\begin{figure}\n\\centering\n"
        rf"\includegraphics[width=\linewidth]{{\evalsuitefigures {name}.pdf}}"
        f"\n\\caption{{{escape(caption)}}}\n\\end{{figure}}\n"
    )


def latex_words(text: str) -> str:
    """Text of several lines as it stands, in type of one width."""
    lines = (escape(line) or r"\mbox{}" for line in text.splitlines())
    return "\\begin{quote}\\small\\ttfamily\\raggedright\n" + "\\\\\n".join(lines) + "\n\\end{quote}"
