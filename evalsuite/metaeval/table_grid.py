"""Measure how the table score responds to known changes of the user's own tables."""

import itertools
import random
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from evalsuite.metrics.tables import Format, read_reference_tables, table_score
from evalsuite.metrics.tables.plain_data import format_rows_as_markup
from evalsuite.output.reports.section import Cell, Table, parse_columns

Rows = list[list[str]]

RULES = re.compile(r"\\(?:top|mid|bottom)rule\b")
HLINES = re.compile(r"\\hline\b")
SEPARATOR = re.compile(r"^[ \t]*\|?[ \t]*:?-{3,}.*$", re.MULTILINE)
BETWEEN_TAGS = re.compile(r">\s+<")
TEXT = re.compile(r"(?<=>)[^<>&]+(?=<)")  # Text without entities.


def make_equal_notations(table: str, markup: Format) -> Iterator[tuple[str, str]]:
    """Yield the table in other notations, each with the notation's name; all notations look the same to a reader."""
    if markup == "latex":
        if RULES.search(table):
            yield "booktabs as \\hline", RULES.sub(r"\\hline", table)
        else:
            yield "\\hline as booktabs", HLINES.sub(r"\\midrule", table)
        yield "commented", re.sub(r"\\\\[ \t]*\n", "\\\\\\\\ % a row\n", table)
        yield "in an answer", f"Here is the table:\n\n```latex\n{table}\n```\n\nI hope that this helps."
    elif markup == "html":
        yield "minified", BETWEEN_TAGS.sub("><", table)
        entities = {ord(char): f"&#{ord(char)};" for char in table if char.isalpha()}
        yield "entities", TEXT.sub(lambda text: text[0].translate(entities), table)
        yield "in an answer", f"Here is the table:\n\n```html\n{table}\n```"
    else:
        yield "alignment rows", SEPARATOR.sub(lambda match: match[0].replace("---", ":--"), table)
        yield "wide cells", re.sub(r"(?<!\\)\|", " | ", table)
        yield "in an answer", f"Here you are:\n\n```\n{table}\n```"


def rewrite_table(table: str, markup: Format, edit: Callable[[Rows], Rows] = list) -> str:
    """Write the table with edited rows, and with a spanning cell's text in every position that the cell covers."""
    grids = read_reference_tables(table, markup).tables
    return "\n\n".join(format_rows_as_markup(edit([[*row] for row in one.rows]), markup, one.name) for one in grids)


# Names of corruptions, from the mildest to the most severe.
CORRUPTIONS = (
    *("one typo", "one wrong cell", "a tenth wrong", "half of the rows missing"),
    *("nine tenths wrong", "all wrong", "no table"),
)


def corrupt_table(table: str, markup: Format) -> Iterator[tuple[str, str]]:
    """Yield corruptions of the table with their names, mildest first; some are impossible in small tables."""
    grids = read_reference_tables(table, markup).tables
    cells = sum(bool(cell) for grid in grids for row in grid.rows for cell in row)
    rng = random.Random(0)  # noqa: S311 - the same changes each time
    write_changed_table = partial(rewrite_table, table, markup)

    def write_cell_change(change: Callable[[str], str]) -> str:
        changed = list[str]()

        def change_cell_once(cell: str) -> str:
            if not changed and (other := change(cell)) != cell:
                changed.append(other)
                return other
            return cell

        return write_changed_table(lambda rows: [list(map(change_cell_once, row)) for row in rows])

    yield "one typo", write_cell_change(lambda cell: f"{cell[:-1]}q" if len(cell) > 3 and cell.isalpha() else cell)
    yield "one wrong cell", write_cell_change(lambda cell: _write_nonsense(cell, rng) if cell else cell)
    if cells >= 20:
        yield "a tenth wrong", write_changed_table(lambda rows: _replace_cells_by_nonsense(rows, 0.1, rng))
    yield "half of the rows missing", write_changed_table(lambda rows: rows[: max(1, len(rows) // 2)])
    yield "nine tenths wrong", write_changed_table(lambda rows: _replace_cells_by_nonsense(rows, 0.9, rng))
    yield "all wrong", write_changed_table(lambda rows: _replace_cells_by_nonsense(rows, 1.0, rng))
    yield "no table", "I am sorry, but I cannot make a table of this text."


def _replace_cells_by_nonsense(rows: Rows, share: float, rng: random.Random) -> Rows:
    places = [(row, column) for row, cells in enumerate(rows) for column, cell in enumerate(cells) if cell]
    for row, column in rng.sample(places, round(share * len(places))):
        rows[row][column] = _write_nonsense(rows[row][column], rng)
    return rows


def _write_nonsense(cell: str, rng: random.Random) -> str:
    if any(char.isdigit() for char in cell):
        return str(rng.randrange(10**6, 10**7))
    return "".join(rng.choice("jkqvwxyz") for _ in range(max(5, len(cell))))


MARKS = {
    "another sign": ("+{}", "-{}"),
    "fewer stars": ("{}***", "{}*"),
    "another unit": ("{} kg", "{} mg"),
    "another currency": ("€{}", "£{}"),
    "another arrow": ("{} ↑", "{} ↓"),
}
"""For each change, how the table's first number is written in the reference and in the answer."""
BARS = "|x| + |y|"


def make_slightly_changed_pairs(table: str, markup: Format) -> Iterator[tuple[str, str, str]]:
    """Yield each small change that the table allows, as a name, a reference table and a changed table."""
    grid = read_reference_tables(table, markup).tables[0]
    first, *body = grid.rows

    def write_table_with_cell(place: tuple[int, int], text: str) -> str:
        rows = [list(row) for row in grid.rows]
        rows[place[0]][place[1]] = text
        return format_rows_as_markup(rows, markup, grid.name)

    def write_table_with_swapped_columns(one: int, two: int, last_row: int | None) -> str:
        order = [{one: two, two: one}.get(at, at) for at in range(len(first))]
        rows = [[row[at] for at in order] for row in grid.rows[:last_row]]
        return format_rows_as_markup([*rows, *map(list, grid.rows[len(rows) :])], markup, grid.name)

    cells = {(row, at): cell for row, cells in enumerate(body, 1) for at, cell in enumerate(cells) if cell}
    if place := next(iter(cells), None):
        barred = write_table_with_cell(place, BARS)
        yield "bars in a cell", barred, barred
    if place := next((place for place, cell in cells.items() if cell.isdecimal()), None):
        for change, forms in MARKS.items():
            wanted, answer = (write_table_with_cell(place, form.format(cells[place])) for form in forms)
            yield change, wanted, answer
    columns = list(zip(*grid.rows, strict=True))
    for one, two in itertools.combinations(range(len(first)), 2):
        if columns[one][0] != columns[two][0] and columns[one][1:] != columns[two][1:]:
            yield "two heads swapped", table, write_table_with_swapped_columns(one, two, 1)
            yield "two columns swapped", table, write_table_with_swapped_columns(one, two, None)
            return


NEAR_ZERO = 0.05
SLACK = 1e-9
FAILURES_SHOWN = 3


def tabulate_change_effects(items: Sequence[tuple[str, str, Format]]) -> tuple[Table, bool]:
    """Compare every table with changed versions of itself; tabulate how the score responds to each kind of change.

    `items` has each table's name, text and format. Also return whether every score meets its rule, such as `stays 1`.
    """
    scores: dict[tuple[str, str], list[float]] = defaultdict(list)
    failures: dict[tuple[str, str], list[str]] = defaultdict(list)
    for name, table, markup in items:
        for change, rule, score, holds in _score_changes(table, markup):
            scores[change, rule].append(score)
            if not holds:
                failures[change, rule].append(f"{name} ({score:.3f})")
    # Sort corruptions by severity; in order of appearance, those that the first table lacks would come last.
    keys = sorted(scores, key=lambda key: CORRUPTIONS.index(key[0]) if key[0] in CORRUPTIONS else -1)
    rows: list[list[Cell]] = []
    for key in keys:
        values, failed = scores[key], failures[key]
        where = ", ".join(failed[:FAILURES_SHOWN]) + (" ..." if len(failed) > FAILURES_SHOWN else "")
        rows.append([*key, len(values), sum(values) / len(values), len(failed), where])
    columns = parse_columns("Change | The score | Tables: count | Mean: number 3 | Fails: count | Where")
    return Table("Known changes", columns, rows), not any(failures.values())


def _score_changes(table: str, markup: Format) -> Iterator[tuple[str, str, float, bool]]:
    """Yield each change of a table, the rule for its score, the score, and whether the score meets the rule."""
    whole = table_score(table, table, format=markup).value
    yield "none", "stays 1", whole, abs(whole - 1) < SLACK
    for change, changed in make_equal_notations(table, markup):
        score = table_score(changed, table, format=markup).value
        yield change, "stays 1", score, abs(score - 1) < SLACK
    content = table_score(rewrite_table(table, markup), table, format=markup).content
    yield "spans written out", "content stays 1", content, abs(content - 1) < SLACK
    for change, wanted, answer in make_slightly_changed_pairs(table, markup):
        score = table_score(answer, wanted, format=markup).value
        same = answer == wanted
        yield change, "stays 1" if same else "below 1", score, (score > 1 - SLACK) == same
    before = content
    for change, changed in corrupt_table(table, markup):
        score = table_score(changed, table, format=markup).content
        if change == "all wrong":
            yield change, f"content at most {NEAR_ZERO:g}", score, score <= NEAR_ZERO
        elif change == CORRUPTIONS[-1]:
            yield change, "content 0", score, score == 0.0
        else:
            yield change, "content no higher than above", score, score <= before + SLACK
        before = score
