"""Show the differences between two tables cell by cell, as text and as HTML, from the comparison used for scoring."""

from __future__ import annotations

import html
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

from evalsuite.metrics.tables.cells import judge_cell, plain_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from evalsuite.metrics.tables.cells import CellVerdict
    from evalsuite.metrics.tables.content import ContentComparison, TablePair, ValueGrid
    from evalsuite.metrics.tables.form import FormFact

CellState = Literal["equal", "differs", "missing", "surplus"]
LEGEND = "predicted → wanted   [-missing-]   {+not wanted+}"
"""Explains the diff in the terminal, even without colours."""
COLOURS: dict[CellState, str] = {"equal": "", "differs": "33", "missing": "31", "surplus": "35"}
EQUAL: frozenset[CellVerdict] = frozenset({"same", "other form", "blank"})
"""Verdicts of cells that do not reduce the content score."""
STYLE = """\
.evalsuite-tables table { border-collapse: collapse; margin: 1rem 0 }
.evalsuite-tables td { border: 1px solid #ccc; padding: .25rem .6rem }
.evalsuite-tables .differs { background: #fff0c2 } .evalsuite-tables .missing { background: #ffd9d6 }
.evalsuite-tables .surplus { background: #e8dcff } .evalsuite-tables code { overflow-wrap: anywhere }
.evalsuite-tables del { color: #8a1c12 }
.evalsuite-tables ins { color: #14532d; text-decoration: none; font-weight: 600 }
"""
PAGE = """\
<!doctype html>
<html lang="en"><meta charset="utf-8"><title>Cells compared</title>
<style>body {{ font: 15px/1.4 system-ui, sans-serif; margin: 2rem; color: #1a1a1a; background: #fff }}</style>
{body}</html>
"""


@dataclass(frozen=True, slots=True)
class ComparedCell:
    """A cell position in one table or in both.

    Attributes:
        state: how the position is shown; `missing` and `surplus` cells are in rows or columns that only one
            side has.
        verdict: the result of comparing the cell with the wanted one.
        predicted: the predicted text without markup; empty if the prediction lacks the position.
        wanted: the wanted text without markup; empty if the position is unwanted.
        row: the name of the row, which is its first cell.
        column: the name of the column, which is its cell in the first row.
    """

    state: CellState
    verdict: CellVerdict
    predicted: str
    wanted: str
    row: str
    column: str

    def __str__(self) -> str:
        """Describe the difference in one line, such as `Gulls / Wins: 7, not 8`."""
        where = " / ".join(name for name in (self.row, self.column) if name)
        values = {
            "equal": self.wanted or "(blank)",
            "differs": f"{self.predicted or '(blank)'}, not {self.wanted or '(blank)'}",
            "missing": f"missing {self.wanted or '(blank)'}",
            "surplus": f"not wanted {self.predicted or '(blank)'}",
        }
        return printable(f"{where}: {values[self.state]}" if where else values[self.state])


class ShownScore(Protocol):
    """The parts of a table score that are displayed."""

    @property
    def value(self) -> float:
        """The score."""

    @property
    def content(self) -> float:
        """The score of the table's content."""

    @property
    def form(self) -> float:
        """The score of the table's form."""

    @property
    def facts(self) -> tuple[FormFact, ...]:
        """The checklist of form."""

    @property
    def signature(self) -> str:
        """The version and settings of the computation."""

    @property
    def compared(self) -> list[list[list[ComparedCell]]]:
        """The compared cells, as rows of tables."""


def compare_cells(content: ContentComparison) -> list[list[list[ComparedCell]]]:
    """List the rows of each wanted table; rows and columns that only one side has are inserted in their positions."""
    return [_compare_pair(pair) for pair in content.pairs]


def _compare_pair(pair: TablePair) -> list[list[ComparedCell]]:
    columns = list(_merge_lines(pair.columns, pair.left.width, pair.right.width))
    rows = list(_merge_lines(pair.rows, len(pair.left.rows), len(pair.right.rows)))
    names = [_text(pair, rows[0], column) for column in columns] if rows else []
    return [
        [
            _compare(pair, row, column, _text(pair, row, columns[0]), name)
            for column, name in zip(columns, names, strict=True)
        ]
        for row in rows
    ]


def _merge_lines(pairs: Sequence[tuple[int, int]], height: int, other: int) -> Iterator[tuple[int | None, int | None]]:
    """Yield the lines of both sides in the wanted order; a line of one side comes before its next aligned neighbour."""
    partner = {there: here for here, there in pairs}
    surplus = set(range(height)).difference(partner.values())
    for there in range(other):
        here = partner.get(there)
        if here is not None:
            start = here
            while start - 1 in surplus:
                start -= 1
            yield from ((place, None) for place in range(start, here))
            surplus.difference_update(range(start, here))
        yield here, there
    yield from ((place, None) for place in sorted(surplus))


def _compare(
    pair: TablePair,
    row: tuple[int | None, int | None],
    column: tuple[int | None, int | None],
    row_name: str,
    column_name: str,
) -> ComparedCell:
    predicted, wanted = _cell(pair.left, row[0], column[0]), _cell(pair.right, row[1], column[1])
    verdict = judge_cell(predicted or "", wanted or "")
    if predicted is None:
        state: CellState = "missing"
    elif wanted is None:
        state = "surplus"
    else:
        state = "equal" if verdict in EQUAL else "differs"
    texts = plain_text(predicted or ""), plain_text(wanted or "")
    return ComparedCell(state, verdict, *texts, row_name, column_name)


def _cell(grid: ValueGrid, row: int | None, column: int | None) -> str | None:
    return None if row is None or column is None else grid.texts[row][column]


def _text(pair: TablePair, row: tuple[int | None, int | None], column: tuple[int | None, int | None]) -> str:
    wanted = _cell(pair.right, row[1], column[1])
    return plain_text(_cell(pair.left, row[0], column[0]) or "" if wanted is None else wanted)


def show_score(score: ShownScore, *, colour: bool = False) -> str:
    """Write a score for the terminal: the numbers, the checklist of form, the diff and the signature."""
    from tabulate import tabulate

    lines = [f"table score {score.value:.3f}   content {score.content:.3f}   form {score.form:.3f}", ""]
    lines += [f"{'[x]' if fact.fulfilled else '[ ]'} {printable(fact.text)}" for fact in score.facts]
    for rows in score.compared:
        shown = [[_show_cell(cell, colour=colour) for cell in row] for row in rows]
        lines += ["", tabulate(shown, tablefmt="presto", disable_numparse=True)]
    return "\n".join([*lines, "", LEGEND, "", score.signature])


def _show_cell(cell: ComparedCell, *, colour: bool) -> str:
    wanted, predicted = printable(cell.wanted), printable(cell.predicted)
    text = {
        "equal": wanted,
        "differs": f"{predicted or '(blank)'} → {wanted or '(blank)'}",
        "missing": f"[-{wanted}-]" if wanted else "",
        "surplus": f"{{+{predicted}+}}" if predicted else "",
    }[cell.state]
    return f"\033[{COLOURS[cell.state]}m{text}\033[0m" if colour and COLOURS[cell.state] else text


def printable(text: str) -> str:
    """Replace control characters by spaces, because a file or a model may contain them."""
    return "".join(char if char.isprintable() else " " for char in text)


def html_page(*scores: ShownScore) -> str:
    """Write scores as a complete HTML page."""
    return PAGE.format(body="\n".join(map(html_block, scores)))


def html_block(score: ShownScore) -> str:
    """Write a score as HTML for a page or a notebook."""
    facts = "".join(
        f"<li>{'&#10003;' if fact.fulfilled else '&#10007;'} {html.escape(fact.text)}</li>" for fact in score.facts
    )
    tables = "".join(map(_html_table, score.compared))
    return (
        f'<div class="evalsuite-tables"><style>{STYLE}</style><h1>Table score {score.value:.3f}</h1>\n'
        f"<p>Content {score.content:.3f}, form {score.form:.3f}. A cell that differs shows the predicted text struck "
        "through and the wanted text after it; red cells are missing, violet ones were not wanted.</p>\n"
        f"{tables}\n<h2>Form</h2><ul>{facts}</ul>\n<p><code>{html.escape(score.signature)}</code></p></div>"
    )


def _html_table(rows: Iterable[Sequence[ComparedCell]]) -> str:
    return "<table>" + "".join(f"<tr>{''.join(map(_html_cell, row))}</tr>" for row in rows) + "</table>"


def _html_cell(cell: ComparedCell) -> str:
    wanted, predicted = html.escape(cell.wanted), html.escape(cell.predicted)
    text = f"<del>{predicted}</del> <ins>{wanted}</ins>" if cell.state == "differs" else wanted or predicted
    return f'<td class="{cell.state}">{text}</td>'
