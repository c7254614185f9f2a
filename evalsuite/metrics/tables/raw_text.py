"""Read tables of raw text: rows with bars, as in Markdown and drawn grids, or else text without bars."""

import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby, pairwise, product, zip_longest
from operator import itemgetter

from evalsuite.metrics.tables.delimited import (
    FILLER,
    LONGEST_NAME,
    drop_counting_index,
    merge_wrapped_lines,
    read_asciidoc,
    read_csv_directive,
    read_delimited_tables,
    read_printed_frames,
)
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
    yield read_csv_directive(text)
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
        GRID_RULE.fullmatch(line) is not None or _is_separator_row(place, row)
        for place, (line, row) in enumerate(zip(lines, split, strict=True))
    ]
    split = _keep_bars_in_code(lines, split, separators)
    if (types := _find_polars_types(split)) is not None:
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


def _find_polars_types(rows: Sequence[tuple[str, ...]]) -> int | None:
    """Find the row of column types in a frame as polars prints it: three dashes per column, then the types."""
    for place, (row, below) in enumerate(pairwise(rows), 1):
        if {*row} == {"---"} and all(map(POLARS_TYPE.fullmatch, below)):
            return place
    return None


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


def _is_separator_row(place: int, row: tuple[str, ...]) -> bool:
    """Tell whether a row separates others: dashes below the first row, or three dashes per cell in any row."""
    dashes = all(SEPARATOR.fullmatch(cell) for cell in row)
    return dashes and (place == 1 or all(len(cell) >= 3 for cell in row))


def _is_fence_or_rule(line: str) -> bool:
    return FENCE_START.match(line) is not None or GRID_RULE.fullmatch(line) is not None
