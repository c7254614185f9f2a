"""Read tables of delimited values, reStructuredText and AsciiDoc, and frames as pandas prints them."""

import csv
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import dropwhile, groupby, pairwise, zip_longest

from evalsuite.metrics.tables.grid import CellGrid, normalise_text

FILLER = "\0"  # Filler after each wide character, so that a character's index is its column in a terminal.
LONGEST_NAME = 80  # Maximum characters of a table's name.
BLOCK_END = re.compile(r"\n[ \t\r]*(?:(?=\n)|[`~]{3,}[^\n]*)")  # A blank line or a code fence.
LONGEST_FIELD = 80  # Maximum characters of a field; longer text is prose, unless tabs separate the fields.
SENTENCE_END = re.compile(r"[a-z]{2}[.!?]$")
RULER = re.compile(r" *(?:={2,}|-{2,})(?: +(?:={2,}|-{2,}))+ *")  # A rule of reStructuredText's simple tables.
LONE_RULE = re.compile(r"\s*([-=~\u2500\u2501\u2550])\1\1(?:\1| )*")  # A rule below a head or between rows.
ASCIIDOC = re.compile(r"^(?:\[([^\n]*)\n(?:\.[^\n]*\n)?)?\|={3,}\n(.*?)^\|={3,}", re.MULTILINE | re.DOTALL)
COLUMNS = re.compile(r'cols="([^"]*)"')
ASCIIDOC_BAR = re.compile(r"(?:^|(?<=\s))[<>^.+\d*a-z]*(?<!\\)\|", re.MULTILINE)
CSV_TABLE = re.compile(
    r"^[ \t]*\.\. csv-table::.*\n(?:[ \t]+:(?!header:).*\n)*[ \t]+:header:(.*)\n(?:[ \t]+:.*\n)*\s*\n"
    r"((?:[ \t]+\S.*\n?)+)",
    re.MULTILINE,
)
"""The directive for a table in reStructuredText; the groups are the table's head and its body."""
LIST_CELL = re.compile(r"\s*(\* )?- ?(.*)")  # A cell of reStructuredText's list-table; a star begins a row.
SPACES = re.compile(r"(?<=\S) {2,}(?=\S)")
MINUS = re.compile(r"(?<= )-(?=[\d.]|inf)")  # The sign of a number in a printed frame.


def _split_blocks(text: str) -> list[str]:
    """Split a text at blank lines and code fences."""
    return [stripped for block in BLOCK_END.split(f"\n{text}") if (stripped := block.strip("\r\n"))]


def read_delimited_tables(text: str) -> list[CellGrid]:
    """Read the blocks in which at least two lines have the same number of fields."""
    return [grid for block in _split_blocks(text) if (grid := _read_delimited_block(block))]


def _read_delimited_block(block: str) -> CellGrid | None:
    lines = block.splitlines()
    if rulers := [place for place, line in enumerate(lines) if RULER.fullmatch(line)]:
        return _read_simple_table(lines, rulers)
    if block.lstrip().startswith("* - "):
        return _read_rst_list_table(lines)
    found = list[tuple[str, list[list[str]], list[list[str]]]]()
    for delimiter in ("\t", ",", ";"):
        parsed = list(_parse_delimited_rows(lines, delimiter))
        parsed = _pad_tabbed_rows(parsed) if delimiter == "\t" else parsed
        found.append((delimiter, parsed, _find_longest_series(parsed, delimiter)))
    if not any(rows for *_, rows in found):
        parsed = list(_parse_delimited_rows([SPACES.sub("\t", line.strip()) for line in lines], "\t"))
        found.append(("  ", parsed, _find_longest_series(parsed, "  ")))
    # A tab is a delimiter, but a cell may contain a comma, such as 1,200.
    delimiter, parsed, rows = max(found, key=lambda one: (one[0] == "\t" and bool(one[2]), len(one[2])))
    if not rows:
        return None
    # The line above the first row may be the table's name.
    above = parsed.index(rows[0]) - 1
    name = normalise_text(delimiter.join(parsed[above]).strip("#*_:` \t")) if above >= 0 else ""
    return CellGrid(
        tuple(tuple(map(normalise_text, row)) for row in rows), name=name if len(name) <= LONGEST_NAME else ""
    )


def read_csv_directive(text: str) -> list[CellGrid]:
    """Read the first `csv-table` directive of reStructuredText."""
    directive = CSV_TABLE.search(text)
    return read_delimited_tables("\n".join(directive.groups())) if directive else []


def _pad_tabbed_rows(rows: list[list[str]]) -> list[list[str]]:
    """Add missing blank cells at the ends of tab-separated lines; stop at the first line of prose."""
    tabbed = [place for place, row in enumerate(rows) if len(row) > 1]
    if not tabbed or any(len(row) > len(rows[tabbed[0]]) for row in rows):
        return rows
    first, end, width = tabbed[0], tabbed[-1] + 1, len(rows[tabbed[0]])
    while end < len(rows) and not _is_prose(rows[end], ""):
        end += 1
    return [*rows[:first], *(row + [""] * (width - len(row)) for row in rows[first:end]), *rows[end:]]


def _read_simple_table(lines: list[str], rulers: list[int]) -> CellGrid | None:
    """Read a table whose rules show its columns; the first rule, or the second of at least three, ends the head."""
    starts = [match.start() for match in re.finditer(r"[=-]+", lines[rulers[0]])]
    first = max(0, rulers[0] - 1) if len(rulers) < 3 else rulers[0]
    last = rulers[-1] if len(rulers) > 1 else len(lines)
    rows = list[tuple[str, ...]]()
    head, is_rest = 0, lines[rulers[0]].lstrip().startswith("=")
    for place in range(first, last):
        if place in rulers:
            continue
        fields = SPACES.split(lines[place].strip())
        row = tuple(map(normalise_text, fields)) if len(fields) == len(starts) else _split_line_at(lines[place], starts)
        if is_rest:
            row = tuple("" if cell in {"..", "\\"} else cell for cell in row)
        if is_rest and rows and not lines[place][starts[0] : starts[1]].strip():
            rows[-1] = merge_wrapped_lines([rows[-1], row])
            continue
        rows.append(row)
        head += place < rulers[len(rulers) >= 3]
    return CellGrid(tuple(rows), head_rows=head) if rows else None


def _split_line_at(line: str, starts: Sequence[int]) -> tuple[str, ...]:
    return tuple(normalise_text(line[start:end].replace(FILLER, "")) for start, end in pairwise([*starts, None]))


def merge_wrapped_lines(rows: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """Join the lines of a row whose cells are wrapped."""
    return tuple(map(normalise_text, map(" ".join, zip_longest(*rows, fillvalue=""))))


def read_asciidoc(text: str) -> Iterator[CellGrid]:
    """Read the tables of AsciiDoc; the columns are counted in the attributes, or else in the first line of cells."""
    for attributes, body in ASCIIDOC.findall(text):
        columns = COLUMNS.search(attributes)
        cells = list(map(normalise_text, ASCIIDOC_BAR.split(body)[1:]))
        head = body.strip().partition("\n")[0]
        width = columns[1].count(",") + 1 if columns and columns[1] else len(ASCIIDOC_BAR.findall(head))
        if width and len(cells) % width == 0:
            yield CellGrid(tuple(tuple(cells[at : at + width]) for at in range(0, len(cells), width)))


def read_printed_frames(text: str, minimum: int) -> list[CellGrid]:
    """Read frames as pandas prints them.

    If the columns of a frame are printed in several blocks, each head but the last ends with a backslash. Rows and
    columns of dots mark omitted data and are removed.

    Args:
        text: the text that contains the frames.
        minimum: the minimum number of spaces between columns. pandas prints two, or one if it prints no index.
    """
    tables, continues = list[CellGrid](), False
    for block in _split_blocks(text):
        lines = [line for line in block.splitlines() if not LONE_RULE.fullmatch(line)]
        is_framed = len(set(map(len, lines))) == 1
        while (
            not is_framed
            and lines
            and (lines[0].endswith(":") or len(SPACES.split(lines[0].strip())) < 2)
            and lines[0][:1].strip()
        ):
            del lines[0]
        spaced = sum("  " in line.rstrip() for line in lines)
        if len(lines) < 2 or (2 * spaced < len(lines) and len(set(map(len, lines))) > 1):
            continue
        wrapped = lines[0].endswith("\\")
        lines[0] = lines[0].removesuffix("\\")
        rows = [_split_line_at(line, starts) for starts in [_find_printed_columns(lines, minimum)] for line in lines]
        # The second line may name the index.
        if not any(rows[1][1:]) and not rows[0][0]:
            rows[:2] = [(rows[1][0], *rows[0][1:])]
        if continues and len(rows) == len(tables[-1].rows):
            rows = [(*row, *more[1:]) for row, more in zip(tables.pop().rows, rows, strict=True)]
        continues = wrapped
        dots = {column for column, cells in enumerate(zip(*rows, strict=True)) if set(cells) <= {"...", ".."}}
        rows = [tuple(cell for at, cell in enumerate(row) if at not in dots) for row in rows]
        rows = [row for row in rows if not set(row) <= {"...", "..", ""}]
        if len(rows) > 1 and len(rows[0]) > 1:
            tables.append(CellGrid(tuple(rows)))
    return tables


def _find_printed_columns(lines: Sequence[str], minimum: int) -> list[int]:
    """Find where a printed frame's columns begin; the minus of a number counts as a space."""
    unsigned, head = [MINUS.sub(" ", line) for line in lines], lines[0]
    gaps = set(_find_gap_starts(unsigned, 2))
    # pandas aligns to the right, so a column's name ends at the same position as the values below it.
    ends = {at for at in _find_gap_starts(unsigned[1:], minimum) if not head[at : at + 1].strip()}
    starts = [0]
    for at in sorted(gaps | ends):
        # Text without a column name above it belongs to the next column, unless the text is the index.
        if head[starts[-1] : at].strip() or starts[-1] in gaps or (len(starts) == 1 and minimum == 2):
            starts.append(at)
    return starts


def _find_gap_starts(lines: Sequence[str], minimum: int) -> list[int]:
    """Find where gaps begin: at least `minimum` adjacent positions that are blank in all lines."""
    blank = "".join("x" if "".join(column).strip() else " " for column in zip_longest(*lines, fillvalue=" "))
    return [gap.start() for gap in re.finditer(f"(?<=x) {{{minimum},}}(?=x)", blank)]


def drop_counting_index(table: CellGrid) -> CellGrid:
    """Remove the first column if it is pandas' default index: it has no name, and counts the rows from 0."""
    head, *index = (row[0] for row in table.rows)
    counts = not head and index[0] == "0" and all(map(str.isdecimal, index))
    return CellGrid(tuple(row[1:] for row in table.rows)) if counts else table


def _read_rst_list_table(lines: list[str]) -> CellGrid:
    rows: list[list[str]] = []
    for line in lines:
        cell = LIST_CELL.match(line)
        if cell and (cell[1] or not rows):
            rows.append([cell[2]])
        elif cell:
            rows[-1].append(cell[2])
        elif rows:
            rows[-1][-1] += f" {line}"
    return CellGrid(tuple(tuple(map(normalise_text, row)) for row in rows))


def _parse_delimited_rows(lines: list[str], delimiter: str) -> Iterator[list[str]]:
    """Yield the rows above the first line that cannot be parsed, without blank rows."""
    with suppress(csv.Error):
        yield from (row for row in csv.reader(lines, delimiter=delimiter, skipinitialspace=True) if row)


def _find_longest_series(rows: list[list[str]], delimiter: str) -> list[list[str]]:
    """Return the longest series of rows with the same number of fields, without prose above and below."""
    longest: list[list[str]] = []
    for width, series in groupby(rows, key=len):
        run = list(dropwhile(lambda row: _is_prose(row, delimiter), series))
        # Rows of prose at the end are not part of the table, unless most of the table's rows look like prose.
        few = 2 * sum(_is_prose(row, delimiter) for row in run) <= len(run)
        while few and run and _is_prose(run[-1], delimiter):
            del run[-1]
        if width > 1 and max(1, len(longest)) < len(run):
            longest = run
    return longest


def _is_prose(row: list[str], delimiter: str) -> bool:
    if delimiter == "\t":
        return False
    return max(map(len, row)) > LONGEST_FIELD or row[-1].endswith(":") or SENTENCE_END.search(row[-1]) is not None
