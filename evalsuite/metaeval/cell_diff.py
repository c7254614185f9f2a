"""A predicted table beside the wanted one, cell by cell, in colour: for the terminal and as a page."""

from __future__ import annotations

import html
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from evalsuite.metrics.tables.cells import cell_value, plain_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from evalsuite.metrics.tables import TableScore
    from evalsuite.metrics.tables.content import TablePair, ValueGrid

CellState = Literal["equal", "differs", "missing", "surplus"]
LEGEND = "predicted → wanted   [-missing-]   {+not wanted+}"
"""How a diff in the terminal is to be read, without colours too."""
COLOURS: dict[CellState, str] = {"equal": "", "differs": "33", "missing": "31", "surplus": "35"}
PAGE = """\
<!doctype html>
<html lang="en"><meta charset="utf-8"><title>Cells compared</title>
<style>
body {{ font: 15px/1.4 system-ui, sans-serif; margin: 2rem; color: #1a1a1a; background: #fff }}
table {{ border-collapse: collapse; margin: 1rem 0 }} td {{ border: 1px solid #ccc; padding: .25rem .6rem }}
.differs {{ background: #fff0c2 }} .missing {{ background: #ffd9d6 }} .surplus {{ background: #e8dcff }}
code {{ overflow-wrap: anywhere }}
del {{ color: #8a1c12 }} ins {{ color: #14532d; text-decoration: none; font-weight: 600 }}
</style>
<h1>Table score {value:.3f}</h1>
<p>Content {content:.3f}, form {form:.3f}. A cell that differs shows what was predicted struck through and what was
wanted after it; red cells are missing, violet ones were not wanted.</p>
{tables}
<h2>Form</h2><ul>{facts}</ul>
<p><code>{signature}</code></p></html>
"""


@dataclass(frozen=True, slots=True)
class DiffCell:
    """What stands in one place of either table, or of both."""

    verdict: CellState
    predicted: str = ""
    wanted: str = ""


def diff_cells(score: TableScore) -> list[list[list[DiffCell]]]:
    """List the rows of each wanted table, with the rows and columns that only one side has in their places."""
    return [_diff(pair) for pair in score.match.content.pairs]


def _diff(pair: TablePair) -> list[list[DiffCell]]:
    columns = list(_merge_lines(pair.columns, pair.left.width, pair.right.width))
    rows = _merge_lines(pair.rows, len(pair.left.rows), len(pair.right.rows))
    return [[_cell(pair, row, column) for column in columns] for row in rows]


def _merge_lines(
    pairs: Sequence[tuple[int, int]], height: int, other: int
) -> Iterator[tuple[int | None, int | None]]:
    """Return all lines of both sides: aligned ones together, and before them what each side alone has."""
    one = two = 0
    taken = {here for here, _ in pairs}
    for here, there in [*sorted(pairs, key=lambda pair: pair[1]), (height, other)]:
        yield from ((None, place) for place in range(two, there))
        yield from ((place, None) for place in range(one, here) if place not in taken)
        if here < height and there < other:
            yield here, there
        one, two = max(one, here + 1), there + 1


def _cell(
    pair: TablePair, row: tuple[int | None, int | None], column: tuple[int | None, int | None]
) -> DiffCell:
    predicted, wanted = _text(pair.left, row[0], column[0]), _text(pair.right, row[1], column[1])
    if predicted is not None and wanted is not None:
        return DiffCell(
            "equal" if cell_value(predicted) == cell_value(wanted) else "differs", predicted, wanted
        )
    if wanted is not None:
        return DiffCell("missing", wanted=wanted)
    return DiffCell("surplus", predicted=predicted or "")


def _text(grid: ValueGrid, row: int | None, column: int | None) -> str | None:
    return None if row is None or column is None else plain_text(grid.texts[row][column])


def show_cell(cell: DiffCell, *, colour: bool) -> str:
    """Format a cell for the terminal, without control characters."""
    wanted, predicted = (
        "".join(char if char.isprintable() else " " for char in text)
        for text in (cell.wanted, cell.predicted)
    )
    text = {
        "equal": wanted,
        "differs": f"{predicted or '(blank)'} → {wanted or '(blank)'}",
        "missing": f"[-{wanted}-]" if wanted else "",
        "surplus": f"{{+{predicted}+}}" if predicted else "",
    }[cell.verdict]
    return f"\033[{COLOURS[cell.verdict]}m{text}\033[0m" if colour and COLOURS[cell.verdict] else text


def diff_page(tables: Sequence[Sequence[Sequence[DiffCell]]], score: TableScore) -> str:
    """Format the comparison as an HTML page."""
    facts = "".join(
        f"<li>{'&#10003;' if fact.fulfilled else '&#10007;'} {html.escape(fact.text)}</li>"
        for fact in score.facts
    )
    return PAGE.format(
        value=score.value,
        content=score.content,
        form=score.form,
        tables="".join(map(_html_table, tables)),
        facts=facts,
        signature=html.escape(score.signature),
    )


def _html_table(rows: Sequence[Sequence[DiffCell]]) -> str:
    return "<table>" + "".join(f"<tr>{''.join(map(_html_cell, row))}</tr>" for row in rows) + "</table>"


def _html_cell(cell: DiffCell) -> str:
    wanted, predicted = html.escape(cell.wanted), html.escape(cell.predicted)
    text = f"<del>{predicted}</del> <ins>{wanted}</ins>" if cell.verdict == "differs" else wanted or predicted
    return f'<td class="{cell.verdict}">{text}</td>'
