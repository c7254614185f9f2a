"""Tables of a report in LaTeX, for the package booktabs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalsuite.reporting.markdown import one_line, plain_text
from evalsuite.reporting.table_looks import without_unmeasured
from evalsuite.results.estimate import Estimate

if TYPE_CHECKING:
    from evalsuite.reporting.section import Cell, Column, Table

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
    """Text of anybody's as nothing but text in LaTeX."""
    return "".join(SPECIAL.get(sign, sign) for sign in one_line(text))


def latex_table(table: Table, caption: str) -> str:
    """A table with its caption and note; the best of a row is bold."""
    table = without_unmeasured(table)
    bests = table.best or [None] * len(table.rows)
    rows = [
        " & ".join(_cell(cell, column, best) for cell, column in zip(row, table.columns, strict=True))
        for row, best in zip(table.rows, bests, strict=True)
    ]
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
