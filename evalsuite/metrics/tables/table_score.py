"""The table score: one number for the quality of a predicted table, computed from its content and its form.

In a study of 282 outputs, this score agrees better with people's ratings than TEDS and GriTS;
docs/table_metrics.md has the figures and the method.
"""

import html
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from operator import attrgetter
from typing import Any, Literal

from evalsuite.core.errors import ScoringError, shorten_line
from evalsuite.metrics.tables.alignment import MOST_ASSIGNED, Order
from evalsuite.metrics.tables.cells import EQUAL, INCOMPLETE, CellVerdict, compare_cells, strip_cell_markup
from evalsuite.metrics.tables.content import ContentComparison, TablePair, ValueGrid, compare_content
from evalsuite.metrics.tables.form import OF_MARKUP, FormFact, list_form_facts
from evalsuite.metrics.tables.grid import Format
from evalsuite.metrics.tables.plain_data import convert_to_markup
from evalsuite.metrics.tables.readings import (
    LONGEST_TEXT,
    MOST_CELLS,
    MarkupReading,
    detect_format,
    parse_format,
    read_in_all_formats,
    read_reference_tables,
    strip_answer,
)

LinePlaces = tuple[int | None, int | None]  # The index of a line in the predicted and in the wanted table.
VERSION = 15  # Version of the score's definition, increased whenever a score can change.


@dataclass(frozen=True)
class TableMatch:
    """The predicted and the wanted tables, with the alignment of tables and cells."""

    predicted: MarkupReading
    wanted: MarkupReading
    content: ContentComparison
    format: Format  # The format that the reference should have.

    @cached_property
    def facts(self) -> tuple[FormFact, ...]:
        """Statements about the reference's layout and markup, checked on the prediction."""
        return list_form_facts(self.predicted, self.wanted, self.content)

    def compute_form(self, *, is_printed: bool) -> float:
        """Compute the share of fulfilled `facts`, halved for broken markup.

        Args:
            is_printed: whether to leave out the facts in `OF_MARKUP`, which some markup cannot express or which are not
                printed.
        """
        fulfilled = [fact.fulfilled for fact in self.facts if not (is_printed and fact.name in OF_MARKUP)]
        share = sum(fulfilled) / len(fulfilled)
        # Markup is broken if the table disappears, or if values appear under the wrong heads.
        unbroken = {"well_formed", "compiles"} if self.predicted.markup == "latex" else {"well_formed"}
        is_broken = any(fact.name in unbroken and not fact.fulfilled for fact in self.facts)
        return share * INCOMPLETE if is_broken else share

    @property
    def value(self) -> float:
        """The table score, in [0, 1]."""
        content = self.content.overlap.f1
        return content * (3 * content + self.compute_form(is_printed=True)) / 4


@dataclass(frozen=True, slots=True, repr=False)
class TableScore:
    """The likeness of predicted tables to the wanted tables in content and form, as one score with its parts.

    Attributes:
        value: the score in [0, 1], content * (3 * content + form) / 4, where form counts only facts that are visible in
            the printed table. A table with the right form but no right content scores 0; half of the content scores
            less than 0.5.
        content: the F1 of aligned cells, in [0, 1]; a right value under the name of another row or column counts two
            thirds.
        form: the share, in [0, 1], of statements about the reference's layout and markup that are also true of the
            prediction; broken markup halves the share.
        parts: precision and recall of cells, the F1 of cells with equal values, then the fulfilled share of each kind
            of statement in `facts`.
        facts: the statements about the reference's layout and markup, from which `form` is computed.
        signature: a line that identifies the computation; cite this line with the score.
        match: the aligned tables from which the scores are computed.
    """

    value: float
    content: float
    form: float
    parts: dict[str, float]
    facts: tuple[FormFact, ...]
    signature: str
    match: TableMatch = field(repr=False, compare=False)

    def __repr__(self) -> str:
        """Show value, content and form."""
        return f"TableScore(value={self.value:.4f}, content={self.content:.4f}, form={self.form:.4f})"

    def _repr_html_(self) -> str:
        return _render_score_as_html(self)

    @property
    def cells(self) -> "list[ComparedCell]":
        """All cells of both sides with their verdicts and the names of their rows and columns."""
        return [cell for rows in self.compared for row in rows for cell in row]

    @property
    def differences(self) -> "list[ComparedCell]":
        """The cells that lower the content score, except blank cells in rows and columns that only one side has."""
        return [cell for cell in self.cells if cell.verdict not in EQUAL]

    @property
    def compared(self) -> "list[list[list[ComparedCell]]]":
        """The compared cells by table and row, including rows and columns that only one side has."""
        return [_list_compared_cells(pair) for pair in self.match.content.pairs]

    def show(self, *, colour: bool = False) -> str:
        """Write the score, the statements about form and the differing cells for a terminal."""
        from tabulate import tabulate

        lines = [f"table score {self.value:.3f}   content {self.content:.3f}   form {self.form:.3f}", ""]
        lines += [f"{'[x]' if fact.fulfilled else '[ ]'} {shorten_to_printable(fact.text)}" for fact in self.facts]
        for rows in self.compared:
            shown = [[_format_cell(cell, colour=colour) for cell in row] for row in rows]
            lines += ["", tabulate(shown, tablefmt="presto", disable_numparse=True)]
        return "\n".join([*lines, "", LEGEND, "", self.signature])

    def to_dict(self) -> dict[str, Any]:
        """Return the scores, the facts of form, the differing cells and the signature as plain data for JSON."""
        return {
            "value": self.value,
            "content": self.content,
            "form": self.form,
            "parts": dict(self.parts),
            "facts": [asdict(fact) for fact in self.facts],
            "differences": list(map(asdict, self.differences)),
            "signature": self.signature,
        }


def table_score(
    prediction: Any,
    reference: Any,
    *,
    format: str | None = None,  # noqa: A002 - the word of the contract
    row_order: bool = True,
    column_order: bool = True,
) -> TableScore:
    """Score a predicted table against the wanted table.

    The prediction is a complete answer: text around its table is ignored, and the table may be written in any
    markup. An answer without any table scores 0.0 in every part, as does an answer of more than a million characters or
    100,000 cells.

    Args:
        prediction: the model's text, a pandas or polars frame, a list of rows or a list of records.
        reference: the wanted table, in any of these forms.
        format: the markup of the reference, which the prediction should also have: `markdown` (`md`), `html`
            or `latex` (`tex`); by default detected from the reference, or else from the prediction.
        row_order: whether rows must be in the reference's order.
        column_order: whether columns must be in the reference's order.

    Raises:
        ScoringError: the reference contains no readable table, or has more than a million characters or 100,000 cells.
        ValueError: the format is unknown.
        TypeError: the prediction or the reference is neither a text nor a table.
    """
    match = match_tables(prediction, reference, format, (row_order, column_order))
    overlap, facts = match.content.overlap, match.facts
    by_name: dict[str, list[bool]] = {}
    for fact in facts:
        by_name.setdefault(fact.name, []).append(fact.fulfilled)
    parts = {
        "cell_precision": overlap.similarity / overlap.predicted if overlap.predicted else 0.0,
        "cell_recall": overlap.similarity / overlap.wanted if overlap.wanted else 0.0,
        "cell_exact_f1": 2 * overlap.equal / max(1, overlap.predicted + overlap.wanted),
        **{f"form_{name}": sum(values) / len(values) for name, values in by_name.items()},
    }
    order = "+".join(name for name, matters in (("rows", row_order), ("columns", column_order)) if matters) or "none"
    if not (row_order and column_order):
        order += f"|assigned:{MOST_ASSIGNED}"
    signature = (
        f"table_score|version:{VERSION}|reader:{match.predicted.markup}|reference:{match.format}|cells:value+signs+lcs"
        f"|order:{order}|value:content*(3*content+printed_form)/4"
    )
    return TableScore(match.value, overlap.f1, match.compute_form(is_printed=False), parts, facts, signature, match)


def table_scores(
    pairs: Iterable[tuple[Any, Any] | Mapping[str, Any]],
    *,
    format: str | None = None,  # noqa: A002 - the word of the contract
    row_order: bool = True,
    column_order: bool = True,
) -> list[TableScore]:
    """Score many pairs of a predicted and a wanted table.

    Args:
        pairs: predictions with their references, as tuples or as mappings `{prediction, reference, format}`;
            a mapping's own format takes precedence.
        format: the markup of the references, as in `table_score`.
        row_order: whether rows must be in the reference's order.
        column_order: whether columns must be in the reference's order.

    Raises:
        ScoringError: a reference contains no readable table; the message names the pair.
    """
    scores = []
    for place, pair in enumerate(pairs):
        if isinstance(pair, Mapping):
            prediction, reference, own = pair["prediction"], pair["reference"], pair.get("format", format)
        else:
            (prediction, reference), own = pair, format
        try:
            score = table_score(prediction, reference, format=own, row_order=row_order, column_order=column_order)
            scores.append(score)
        except ScoringError as error:
            raise ScoringError(f"pair {place}: {error}") from error
    return scores


def match_tables(prediction: Any, reference: Any, format: str | None, order: Order = (True, True)) -> TableMatch:  # noqa: A002
    """Read the prediction in each possible markup, align it with the reference, and return the best-scoring reading.

    The arguments are those of `table_score`; `order` is its `row_order` and `column_order`.
    """
    if format is None:
        texts = (side for side in (reference, prediction) if isinstance(side, str))
        markup = detect_format(next(texts, "<table>"))
    else:
        markup = parse_format(format)
    prediction, reference = convert_to_markup(prediction, markup), convert_to_markup(reference, markup)
    wanted = read_reference_tables(reference, markup) if len(reference) <= LONGEST_TEXT else None
    if wanted is None or wanted.size > MOST_CELLS:
        size = f"{len(reference):,} characters" if wanted is None else f"{wanted.size:,} cells"
        raise ScoringError(
            f"the reference has {size}, but a table score compares at most {LONGEST_TEXT:,} characters and "
            f"{MOST_CELLS:,} cells (rows times columns). Split the table, and score its parts"
        )
    if not wanted.tables:
        start = " ".join(reference.split())[:60]
        raise ScoringError(
            f"the reference contains no table that can be read as {markup}, so nothing can be compared with it: "
            f"{start!r}. Check its format, or write the table in markup that evalsuite reads (docs/table_metrics.md)"
        )
    if len(prediction) > LONGEST_TEXT:
        prediction = ""
    if prediction.strip() == reference.strip():
        readings = [wanted]
    else:
        readings = read_in_all_formats(prediction, markup)
        if wanted.is_list:
            # If the reference is an HTML list without a table, the answer may also be a list.
            readings.append(read_reference_tables(strip_answer(prediction, markup), markup))
    matches = list[TableMatch]()
    for reading in readings or [MarkupReading(markup, strip_answer(prediction, markup), ())]:
        content = compare_content(reading.tables, wanted.tables, order)
        found = (content, content.compare_regardless_of_order())
        matches += (TableMatch(reading, wanted, comparison, markup) for comparison in found if comparison)
    return max(matches, key=attrgetter("value"))


LONGEST_SHOWN = 400  # Maximum characters of a cell that are shown; `TableScore.to_dict` has complete texts.
CellState = Literal["equal", "differs", "missing", "surplus"]
LEGEND = "predicted → wanted   [-missing-]   {+not wanted+}"
COLOURS: dict[CellState, str] = {"equal": "", "differs": "33", "missing": "31", "surplus": "35"}
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
    """A position of the compared tables, with the predicted and the wanted cell."""

    # How the cell is shown; `missing` and `surplus` mean that one side lacks the cell's row or column.
    state: CellState
    verdict: CellVerdict  # The result of comparing the cell with the wanted cell.
    predicted: str  # The predicted text without markup; empty if the prediction lacks the position.
    wanted: str  # The wanted text without markup; empty if the wanted table lacks the position.
    row: str  # The name of the row, which is its first cell.
    column: str  # The name of the column, which is its cell in the first row.

    def __str__(self) -> str:
        """Describe the difference in one line, such as `Gulls / Wins: 7, not 8`."""
        names = ("head",) if self.column and self.column == (self.wanted or self.predicted) else (self.row, self.column)
        where = " / ".join(map(shorten_to_printable, filter(None, names)))
        predicted, wanted = (shorten_to_printable(text) or "(blank)" for text in (self.predicted, self.wanted))
        value = {
            "equal": wanted,
            "differs": f"{predicted}, not {wanted}",
            "missing": f"missing {wanted}",
            "surplus": f"not wanted {predicted}",
        }[self.state]
        return f"{where}: {value}" if where else value


def _list_compared_cells(pair: TablePair) -> list[list[ComparedCell]]:
    columns = list(_merge_lines(pair.columns, pair.left.width, pair.right.width))
    rows = list(_merge_lines(pair.rows, len(pair.left.rows), len(pair.right.rows)))

    def get_text(grid: ValueGrid, row: int | None, column: int | None) -> str | None:
        return None if row is None or column is None else grid.texts[row][column]

    def find_name(row: LinePlaces, column: LinePlaces) -> str:
        """Return the wanted text or else the predicted text, without markup."""
        wanted = get_text(pair.right, row[1], column[1])
        return strip_cell_markup(get_text(pair.left, row[0], column[0]) or "" if wanted is None else wanted)

    def compare(row: LinePlaces, column: LinePlaces, row_name: str, column_name: str) -> ComparedCell:
        predicted, wanted = get_text(pair.left, row[0], column[0]), get_text(pair.right, row[1], column[1])
        verdict = compare_cells(predicted or "", wanted or "")
        state: CellState = "equal" if verdict in EQUAL else "differs"
        if predicted is None or wanted is None:
            state = "missing" if predicted is None else "surplus"
        stripped = strip_cell_markup(predicted or ""), strip_cell_markup(wanted or "")
        return ComparedCell(state, verdict, *stripped, row_name, column_name)

    names = [find_name(rows[0], column) for column in columns] if rows else []
    return [
        [compare(row, column, find_name(row, columns[0]), name) for column, name in zip(columns, names, strict=True)]
        for row in rows
    ]


def _merge_lines(pairs: Sequence[tuple[int, int]], height: int, wanted_height: int) -> Iterator[LinePlaces]:
    """Yield the aligned and unaligned lines in the wanted order; an unaligned line precedes the next aligned line."""
    partner = {there: here for here, there in pairs}
    surplus = set(range(height)).difference(partner.values())
    for there in range(wanted_height):
        here = partner.get(there)
        if here is not None:
            start = here
            while start - 1 in surplus:
                start -= 1
            yield from ((place, None) for place in range(start, here))
            surplus.difference_update(range(start, here))
        yield here, there
    yield from ((place, None) for place in sorted(surplus))


def _format_cell(cell: ComparedCell, *, colour: bool) -> str:
    wanted, predicted = shorten_to_printable(cell.wanted), shorten_to_printable(cell.predicted)
    text = {
        "equal": wanted,
        "differs": f"{predicted or '(blank)'} → {wanted or '(blank)'}",
        "missing": f"[-{wanted}-]" if wanted else "",
        "surplus": f"{{+{predicted}+}}" if predicted else "",
    }[cell.state]
    return f"\033[{COLOURS[cell.state]}m{text}\033[0m" if colour and COLOURS[cell.state] else text


def shorten_to_printable(text: str) -> str:
    """Shorten a long text; replace control characters, of a terminal or of the text direction, by spaces."""
    return "".join(char if char.isprintable() else " " for char in shorten_line(text, LONGEST_SHOWN))


def render_html_page(scores: Iterable[tuple[str, TableScore]]) -> str:
    """Write scores with their names as a complete HTML page."""
    return PAGE.format(body="\n".join(_render_score_as_html(score, f"{name}: ") for name, score in scores))


def _render_score_as_html(score: TableScore, name: str = "") -> str:
    facts = "".join(
        f"<li>{'&#10003;' if fact.fulfilled else '&#10007;'} {html.escape(shorten_to_printable(fact.text))}</li>"
        for fact in score.facts
    )
    tables = "".join(
        "<table>" + "".join(f"<tr>{''.join(map(_render_cell_as_html, row))}</tr>" for row in rows) + "</table>"
        for rows in score.compared
    )
    return (
        f'<div class="evalsuite-tables"><style>{STYLE}</style>'
        f"<h1>{html.escape(shorten_to_printable(name))}table score {score.value:.3f}</h1>\n"
        f"<p>Content {score.content:.3f}, form {score.form:.3f}. A cell that differs shows the predicted text struck "
        "through and the wanted text after it; red cells are missing, violet ones were not wanted.</p>\n"
        f"{tables}\n<h2>Form</h2><ul>{facts}</ul>\n<p><code>{html.escape(score.signature)}</code></p></div>"
    )


def _render_cell_as_html(cell: ComparedCell) -> str:
    wanted, predicted = (html.escape(shorten_to_printable(text)) for text in (cell.wanted, cell.predicted))
    text = f"<del>{predicted}</del> <ins>{wanted}</ins>" if cell.state == "differs" else wanted or predicted
    return f'<td class="{cell.state}">{text}</td>'
