"""Read tables of raw text: rows with bars, as in Markdown and drawn grids, or else text without bars.

Text without bars is delimited values, reStructuredText, AsciiDoc, or frames as pandas prints them.
"""

import csv
import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import dropwhile, groupby, pairwise, product, zip_longest
from operator import itemgetter

from evalsuite.metrics.tables.grid import CellGrid, Span, normalise_text

FENCE = re.compile(r"[ \t]*(`{3,}|~{3,}+)[^`]*")
LINE_END = re.compile(r"\n|<NEWLINE>|<newline>")
BARE_BAR = re.compile(r"(?<!\\)\|")
BARE_BAR_OR_CORNER = re.compile(r"(?<!\\)\||\+")
PIPE = re.compile(r"(?<!\\)((?:\\\\)*)\|")
SEPARATOR = re.compile(r":?-+:?|=+|")
HTML_ROW = re.compile(r"\s*</?(?:table|thead|tbody|tr|th|td)\b", re.IGNORECASE)
GRID_RULE = re.compile(r"(?=[^+]*\+)[|+]?[-=+:]+[|+]?")
RULE_AROUND_SPAN = re.compile(r"\+[-=].*[-=]\+")  # A grid's rule, interrupted by a cell that spans several rows.
GRID = re.compile(r"^[ \t]*[+\u251c\u255f\u2560\u255e\u2523\u2520][-=\u2500-\u256c]", re.MULTILINE)
CORNER = re.compile(r"(?<=[-=:])\+|\+(?=[-=:])")
RULE = re.compile(r"\s*+(?=[^-=]*[-=]{2})[-=:|+ ]+")  # A grid's rule, or the line of dashes below a head.
EDGE = re.compile(r"(?<![^-=: ])[|+](?![^-=: ])")
RULE_PART = re.compile(r"\+[-=:]+\+")
POLARS_TYPE = re.compile(r"[iuf]\d{1,3}|str|bool|date|time|cat|enum|binary|null|object|[a-z]+\[.*\]")
POLARS_SHAPE = re.compile(r"shape: \([\d_,]+, [\d_,]+\)")
DOUBLE_BARS = re.compile(r"\|\|(?:[^|]+\|\|)+")  # A table row in Jira's or MoinMoin's markup.
CODE = re.compile(r"(?<!`)(`{1,9})(?!`).*?(?<!`)\1(?!`)|(?<!\\)\$[^$]*\$")
"""A piece of code, or a formula; nine lengths of quotation marks bound the number of searches to the end of a line."""
TEXTILE = re.compile(r"\|[_<>=]+\. ")  # The start of a cell in Textile, with its alignment.
BOX_BARS = "│┃┆┇┊┋╎╏║╽╿"
BAR = re.compile(f"[|{BOX_BARS}]")
BOX_LINES = {code: "+" for code in range(0x2500, 0x2580) if not 0x2571 <= code <= 0x2573} | {
    **dict.fromkeys(map(ord, BOX_BARS), "|"),
    **dict.fromkeys(map(ord, "─━┄┅┈┉╌╍═╼╾"), "-"),
}
"""Characters that draw boxes, each with its counterpart in ASCII."""
FENCE_START = re.compile(r"[`~]{3,}")
QUOTED = re.compile(r"^\s*>[> ]*+(?=\||[^|]*$)")
NAMED_ROW = re.compile(r"([^|\\:]{1,80}:)[*_ ]*(\|.*\|)")
BOLD = re.compile(r"(\*\*|__)\S[^*_]*\1")


def read_raw_text(text: str, *, joins_lines: bool | None = None) -> list[CellGrid]:
    """Read all raw-text tables in order; if the text has no pipes, read tab- or comma-separated values.

    A table is a block of lines with pipes: at least two lines, or one line that begins with a pipe. A short line above
    the block is the table's name, even if blank lines or a code fence follow. Text before a line's first pipe is also a
    table's name if the text ends with a colon and a pipe begins the next line.
    """
    tables: list[CellGrid] = []
    block, name = list[str](), ""
    text = "\n".join(map(_write_box_in_ascii, LINE_END.split(text)))
    # The blank line at the end ends the last block.
    for written in (*_split_lines(text), ""):
        line = written.strip()
        if _is_pipe_row(line) or (block and (GRID_RULE.fullmatch(line) or RULE_AROUND_SPAN.fullmatch(line))):
            block.append(written)
            continue
        if block:
            tables += _read_pipe_block(block, name, joins_lines=joins_lines)
            block, name = [], ""
        if _is_table_name(line):
            name = line
        elif line and not _is_fence_or_rule(line):
            name = ""
    return tables or read_delimited_tables(text)


def read_other_raw_text(text: str) -> Iterator[Iterable[CellGrid]]:
    """Yield the tables of raw text by each possible reading except the usual one."""
    if GRID.search(text):
        usual = read_raw_text(text)
        others = (read_raw_text(text, joins_lines=joins_lines) for joins_lines in (True, False))
        yield from (tables for tables in others if tables != usual)
    # Try delimited text, because text that separates cells by commas or tabs may also contain bars.
    if "|" in text and any(line[:1] not in "|+" for line in text.splitlines()):
        yield read_delimited_tables(text)
    if "|===" in text:
        yield read_asciidoc(text)
    if directive := CSV_TABLE.search(text):
        yield read_delimited_tables("\n".join(directive.groups()))
    shown = dict.fromkeys((text, _fill_wide_characters(text)))
    printed = [read_printed_frames(each, minimum) for minimum in (2, 1) for each in shown]
    yield from printed
    yield from (map(drop_counting_index, frames) for frames in printed)


def cut_to_markdown(text: str) -> str:
    """Cut an answer from its first table's name or row to its last row; return an empty text without a table."""
    lines = [line for line in LINE_END.split(text) if not FENCE.fullmatch(line.rstrip())]
    rows = [place for place, line in enumerate(map(_write_box_in_ascii, lines)) if _is_pipe_row(line.strip())]
    if not rows or not _is_table([lines[place].strip() for place in rows]):
        return ""
    above = [place for place in range(rows[0]) if lines[place].strip()]
    first = above[-1] if above and _is_table_name(lines[above[-1]].strip()) else rows[0]
    return "\n".join(lines[first : rows[-1] + 1]).rstrip()


def _read_pipe_block(block: list[str], name: str, *, joins_lines: bool | None) -> list[CellGrid]:
    """Read a block of adjacent lines with pipes as a table; return an empty list if the block is not a table.

    Args:
        name: the line above the block that names the table.
        joins_lines: see `_join_wrapped_rows`.
    """
    lines = [line.strip() for line in block]
    if not _is_table(lines):
        return []
    name = normalise_text(name.lstrip("-+>").strip("#*_:` \t"))
    if grid := _read_spanned_grid(lines):
        return [replace(grid, name=name)]
    lines = [line.strip() for line in _escape_inner_bars(block)]
    split = [_split_row_into_cells(line) for line in lines]
    separators = [
        GRID_RULE.fullmatch(line) is not None
        # Dashes below the first row, or three dashes per cell in any row.
        or (all(map(SEPARATOR.fullmatch, row)) and (place == 1 or all(len(cell) >= 3 for cell in row)))
        for place, (line, row) in enumerate(zip(lines, split, strict=True))
    ]
    split = _keep_bars_in_code(lines, split, separators)
    # In a frame as polars prints it, three dashes per column are above the types of the columns.
    underlined = (at for at, row in enumerate(split[:-1], 1) if {*row} == {"---"})
    types = next((at for at in underlined if all(map(POLARS_TYPE.fullmatch, split[at]))), None)
    if types is not None:
        name = "" if POLARS_SHAPE.fullmatch(name) else name
        separators[types] = True
        split = [tuple("" if cell == "null" else cell for cell in row) for row in split if set(row) != {"\u2026"}]
    if any("+" in line for line in lines):
        split, separators = _join_wrapped_rows(lines, split, separators, joins_lines=joins_lines)
    rows = [row for row, is_separator in zip(split, separators, strict=True) if any(row) and not is_separator]
    first = separators.index(False) if False in separators else 0
    head = sum(map(any, split[first : separators.index(True, first)])) if True in separators[first:] else 0
    is_bold = any("**" in line or "__" in line for line in lines)
    bold = tuple(cell for row in rows for cell in row if BOLD.search(cell)) if is_bold else ()
    return [CellGrid(tuple(rows), name=name, head_rows=head, bold=bold)] if rows else []


def _write_box_in_ascii(line: str) -> str:
    """Escape pipes and replace box-drawing characters by ASCII; keep a line whose first bar is a pipe."""
    if line.isascii():
        return line
    first = BAR.search(line)
    if first is None or first[0] != "|":
        line = line.replace("|", "\\|").translate(BOX_LINES)
    return line


def _split_lines(text: str) -> Iterator[str]:
    """Yield a text's lines without marks of quotations; a name before a table's first row becomes a separate line."""
    lines = [QUOTED.sub("", raw.rstrip(), count=1) for raw in LINE_END.split(text)]
    for line, below in zip_longest(lines, lines[1:], fillvalue=""):
        named = NAMED_ROW.fullmatch(line.strip()) if below.lstrip().startswith("|") else None
        yield from (named[1], named[2]) if named else (line,)


def _is_pipe_row(line: str) -> bool:
    return "|" in line and PIPE.search(line) is not None and not HTML_ROW.match(line)


def _is_table_name(line: str) -> bool:
    """Tell whether a line without pipes can be the name of the table below it: short, and not a sentence."""
    return 0 < len(line) <= LONGEST_NAME and not line.endswith((".", "!", "?")) and not _is_fence_or_rule(line)


def _is_table(lines: list[str]) -> bool:
    """Tell whether adjacent lines with pipes are a table, rather than a pipe within a sentence."""
    return len(lines) > 1 or any(line.startswith("|") for line in lines)


def _read_spanned_grid(lines: Sequence[str]) -> CellGrid | None:
    """Read a drawn grid with cells that span rows or columns; None without such cells, or if lines are not aligned."""
    rules = [at for at, line in enumerate(lines) if RULE_PART.search(line)]
    edges = sorted({corner.start() for at in rules for corner in CORNER.finditer(lines[at])})
    if len({*map(len, lines)}) != 1 or len(edges) < 3 or (edges[0], edges[-1]) != (0, len(lines[0]) - 1):
        return None
    parts = [(above + 1, below) for above, below in pairwise([-1, *rules, len(lines)]) if above + 1 < below]
    texts: dict[tuple[int, int], str] = {}
    spans = list[Span]()
    for row, (start, end) in enumerate(parts):
        for column in range(len(edges) - 1):
            if (row, column) in texts:
                continue
            last = column + 1
            while last < len(edges) - 1 and any(line[edges[last]] not in "|+" for line in lines[start:end]):
                last += 1
            left, right, bottom = edges[column] + 1, edges[last], row
            while bottom + 1 < len(parts) and not set(lines[parts[bottom][1]][left:right]) <= set("-=+:"):
                bottom += 1
            text = normalise_text(" ".join(line[left:right] for line in lines[start : parts[bottom][1]]))
            places = list(product(range(row, bottom + 1), range(column, last)))
            # A bar within a span is a border that is not aligned, so the grid cannot be read.
            if not texts.keys().isdisjoint(places) or (last > column + 1 and "|" in text):
                return None
            texts.update(dict.fromkeys(places, text))
            if len(places) > 1:
                spans.append(Span(text, row, column, bottom + 1 - row, last - column))
    head = next((at for at in rules if "=" in lines[at]), 0)
    rows = tuple(tuple(texts[row, column] for column in range(len(edges) - 1)) for row in range(len(parts)))
    heads = sum(end <= head for _, end in parts)
    return CellGrid(rows, head_rows=heads, spans=tuple(spans)) if spans else None


def _escape_inner_bars(lines: list[str]) -> list[str]:
    """Escape bars within cells: in an aligned grid, bars where the rules (or, without rules, the head) have none."""
    for written in (lines, list(map(_fill_wide_characters, lines))):
        rules = list(filter(RULE.fullmatch, written)) or written[:1]
        edges = {edge.start() for line in set(rules) for edge in EDGE.finditer(line)}
        rows = set(written).difference(rules)
        bars = BARE_BAR_OR_CORNER if "+" in rules[0] else BARE_BAR
        if (
            len(edges) >= rules[0].count("|")
            and max(map(len, written)) <= len(rules[0])
            and all(edges <= {bar.start() for bar in bars.finditer(line)} for line in rows)
        ):
            return [_escape_bars_within_cells(line, edges).replace(FILLER, "") for line in written]
    return lines


def _escape_bars_within_cells(line: str, edges: Collection[int]) -> str:
    return BARE_BAR.sub(lambda bar: bar[0] if bar.start() in edges else "\\|", line)


def _fill_wide_characters(line: str) -> str:
    """Insert a filler after each character that takes two columns in a terminal."""
    if line.isascii():
        return line
    return "".join(char + FILLER if unicodedata.east_asian_width(char) in {"W", "F"} else char for char in line)


def _join_wrapped_rows(
    lines: list[str], split_rows: list[tuple[str, ...]], separators: list[bool], *, joins_lines: bool | None
) -> tuple[list[tuple[str, ...]], list[bool]]:
    """Join the lines of grid rows whose text is wrapped.

    Args:
        joins_lines: whether to join lines. With None, lines are joined if rules separate all rows, and every line of a
            row after its first has a blank cell.
    """
    groups = [
        (is_separator, [row for row, _ in group])
        for is_separator, group in groupby(zip(split_rows, separators, strict=True), key=itemgetter(1))
    ]
    bodies = [rows for is_separator, rows in groups if not is_separator]
    has_rules = len(bodies) > 2 or any(GRID_RULE.fullmatch(line) and "=" in line for line in lines)
    if joins_lines is None:
        joins_lines = has_rules and all(not all(row) for rows in bodies for row in rows[1:])
    if not joins_lines:
        return split_rows, separators
    joined = [(kind, [merge_wrapped_lines(rows)] if not kind else rows) for kind, rows in groups]
    return [row for _, rows in joined for row in rows], [kind for kind, rows in joined for _ in rows]


def _keep_bars_in_code(
    lines: list[str], split_rows: list[tuple[str, ...]], separators: list[bool]
) -> list[tuple[str, ...]]:
    """Keep bars in code and formulas within cells, if the row then has the most frequent width.

    In a table without outer bars, a row that begins with a bar begins with a blank cell.
    """
    widths = Counter(len(row) for row, is_separator in zip(split_rows, separators, strict=True) if not is_separator)
    widths.update({len(split_rows[1]): len(split_rows)} if separators[1:2] == [True] and "+" not in lines[1] else {})
    width = widths.most_common(1)[0][0] if widths else 0
    rows = []
    for line, row in zip(lines, split_rows, strict=True):
        kept = row
        if len(row) > width:
            kept = _split_row_into_cells(CODE.sub(lambda match: match[0].replace("|", "\\|"), line))
        elif line.startswith("|") and not (lines[0].startswith("|") or line.endswith("|")):
            kept = ("", *row)
        rows.append(kept if len(kept) == width else row)
    return rows


def _split_row_into_cells(line: str) -> tuple[str, ...]:
    if DOUBLE_BARS.fullmatch(line):
        line = line.replace("||", "|")
    elif TEXTILE.match(line):
        line = TEXTILE.sub("| ", line)
    line = normalise_text(line)
    cells = PIPE.sub(r"\1\n", line).split("\n") if "\\" in line else line.split("|")
    if line.startswith("|") and not cells[0]:
        del cells[0]
    if cells and not cells[-1].strip():
        del cells[-1]
    return tuple([cell.replace("\\|", "|").strip() for cell in cells] if "\\" in line else map(str.strip, cells))


def _is_fence_or_rule(line: str) -> bool:
    return FENCE_START.match(line) is not None or GRID_RULE.fullmatch(line) is not None


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
    if block.lstrip().startswith("* - "):  # reStructuredText's list-table
        listed: list[list[str]] = []
        for line in lines:
            cell = LIST_CELL.match(line)
            if cell and (cell[1] or not listed):
                listed.append([cell[2]])
            elif cell:
                listed[-1].append(cell[2])
            elif listed:
                listed[-1][-1] += f" {line}"
        return CellGrid(tuple(tuple(map(normalise_text, row)) for row in listed))
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
