"""Read the tables of a text in any markup, and strip other text from answers."""

from __future__ import annotations

import csv
import html
import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import dropwhile, groupby, pairwise, product, zip_longest
from operator import itemgetter
from typing import Literal

from evalsuite.metrics.tables.cells import normalise_cell
from evalsuite.metrics.tables.grid import FORMATS, CellGrid, Format, Span, normalise_text
from evalsuite.metrics.tables.html import LIST_TAGS, WHITELIST, PageTables
from evalsuite.metrics.tables.latex import read_latex
from evalsuite.metrics.tables.plain_data import find_json_tables

HINTS = {"html": re.compile(r"<t[rdh]\b|<table\b", re.IGNORECASE), "latex": re.compile(r"\\begin\s*\{")}
LONGEST_TEXT = 1_000_000  # Maximum characters of an answer or a reference.
MOST_CELLS = 100_000  # Maximum positions (rows times columns) of a text's tables.


@dataclass(frozen=True, slots=True)
class MarkupReading:
    """The tables that were read from a text."""

    markup: Format | Literal["json", "mediawiki"]  # The markup of the tables.
    text: str  # The text that contains the tables, without other text around it.
    tables: tuple[CellGrid, ...]  # The tables in order.
    is_list: bool = False  # Whether list items or texts were read as one column, because the text has no table.

    @property
    def size(self) -> int:
        """The number of positions in all tables, after all rows are filled up to the same length."""
        return sum(len(table.rows) * table.width for table in self.tables)


def read_tables(text: str, format: Format) -> list[CellGrid]:  # noqa: A002 - the word of the contract
    """Read all tables of a text; of invalid markup, read as much as possible."""
    if format == "html":
        return PageTables(text).tables
    return read_latex(text) if format == "latex" else _read_raw_text(text)


def _make_markup_reading(text: str, markup: Format) -> MarkupReading:
    tables = read_tables(text, markup)
    return MarkupReading(markup, text, tuple(table for table in tables if any(map(normalise_cell, table.cells))))


def read_in_all_formats(answer: str, wanted_markup: Format) -> list[MarkupReading]:
    """Read an answer in each possible markup, the wanted markup first; skip readings without tables.

    To limit time and memory, answers longer than `LONGEST_TEXT` and readings with more than `MOST_CELLS` cells are
    skipped.
    """
    if len(answer) > LONGEST_TEXT:
        return []
    readings = [
        _make_markup_reading(strip_answer(answer, markup), markup)
        for markup in (wanted_markup, *(markup for markup in FORMATS if markup != wanted_markup))
        if markup == wanted_markup or markup not in HINTS or HINTS[markup].search(answer)
    ]
    return [reading for reading in (*readings, *_read_other_markup(answer)) if 0 < reading.size <= MOST_CELLS]


ESCAPED_TAG = re.compile(r"&(?:amp;)*lt;(?:t[rdh]|table)\b", re.IGNORECASE)
RAW_SIGN = re.compile(r"(?<=\d)%|\$(?=\d+(?:[.,]\d+)*(?![\w$.,]))")  # A sign that LaTeX requires to be escaped.
JSON_START = re.compile(r"[\[{]\s*[\[{\"]")


def _read_other_markup(text: str) -> Iterator[MarkupReading]:
    """Read markup that is not a `Format`: JSON, MediaWiki, and HTML whose tags are escaped."""
    if JSON_START.search(text):
        found = tuple(find_json_tables(text))
        yield MarkupReading("json", text.strip(), found)
        # Also try the largest table alone, because the others may be metadata, such as the types of columns.
        yield MarkupReading("json", text.strip(), tuple(sorted(found, key=lambda table: len(table.cells))[-1:]))
    if "{|" in text:
        yield MarkupReading("mediawiki", text.strip(), tuple(read_tables(_write_wiki_as_html(text), "html")))
    if ESCAPED_TAG.search(text):
        before = ""
        while before != text and ESCAPED_TAG.search(text):
            before, text = text, html.unescape(text)
        yield _make_markup_reading(strip_answer(text, "html"), "html")
    if RAW_SIGN.search(text) and HINTS["latex"].search(text):
        latex = strip_answer(text, "latex")
        yield MarkupReading("latex", latex, tuple(read_latex(RAW_SIGN.sub(r"\\\g<0>", latex))))
    for tables in _read_other_raw_text(text):
        yield MarkupReading("markdown", text.strip(), tuple(tables))


def _read_other_raw_text(text: str) -> Iterator[Iterable[CellGrid]]:
    """Yield the tables of raw text by each possible reading except the usual one."""
    if GRID.search(text):
        usual = _read_raw_text(text)
        others = (_read_raw_text(text, joins_lines=joins_lines) for joins_lines in (True, False))
        yield from (tables for tables in others if tables != usual)
    # Try delimited text, because text that separates cells by commas or tabs may also contain bars.
    if "|" in text and any(line[:1] not in "|+" for line in text.splitlines()):
        yield _read_delimited_tables(text)
    if "|===" in text:
        yield _read_asciidoc(text)
    if table := CSV_TABLE.search(text):
        yield _read_delimited_tables("\n".join(table.groups()))
    shown = dict.fromkeys((text, _fill_wide_characters(text)))
    printed = [_read_printed_frames(each, minimum) for minimum in (2, 1) for each in shown]
    yield from printed
    yield from (map(_drop_counting_index, frames) for frames in printed)


WIKI_LINK = re.compile(r"\[\[(?:[^\[\]|]*\|)?([^\[\]|]*)\]\]")
WIKI_SPAN = re.compile(r"""\b((?:col|row)span)\s*=\s*["']?([0-9]{1,6})""")
WIKI_ATTRIBUTES = re.compile(r"""\s*(?:[\w-]+\s*=\s*(?:"[^"|]*"|'[^'|]*'|[^\s"'|=]+)(?:\s+|(?=\|)))+\|(?!\|)""")


def _write_wiki_as_html(text: str) -> str:
    """Write MediaWiki tables as HTML; of the cells' attributes, keep only column and row spans."""
    written, is_inside, has_row = list[str](), False, False
    for line in map(str.strip, WIKI_LINK.sub(r"\1", text).replace("'''", "").replace("''", "").splitlines()):
        if line.startswith("{|"):
            written, is_inside, has_row = [*written, "<table>"], True, False
        elif is_inside and line.startswith("|}"):
            written, is_inside = [*written, "</table>"], False
        elif is_inside and line.startswith("|+"):
            written.append(f"<caption>{line[2:]}</caption>")
        elif is_inside and line.startswith("|-"):
            written, has_row = [*written, "<tr>"], True
        elif is_inside and line[:1] in {"|", "!"}:
            written += [] if has_row else ["<tr>"]
            has_row, tag = True, "td" if line[0] == "|" else "th"
            for cell in re.split(r"\|\|" if tag == "td" else r"\|\||!!", line[1:]):
                attributes = WIKI_ATTRIBUTES.match(cell)
                spans = WIKI_SPAN.findall(attributes[0]) if attributes else []
                start = "".join(f' {name}="{count}"' for name, count in spans)
                written.append(f"<{tag}{start}>{cell[attributes.end() :] if attributes else cell}")
        elif is_inside:
            written.append(f" {line}")
    return "".join(written)


@lru_cache(maxsize=128)
def read_wanted(reference: str, markup: Format) -> MarkupReading:
    """Read the tables of a reference; in HTML without a table, its list items or texts become a table of one column."""
    reading = _make_markup_reading(reference, markup)
    if not reading.tables:
        reading = next((other for other in _read_other_markup(reference) if other.tables), reading)
    if reading.tables or markup != "html":
        return reading
    page = PageTables(reference)
    items = page.list_texts(LIST_TAGS) or page.list_texts(WHITELIST)
    if not any(map(normalise_cell, items)):
        return reading
    return MarkupReading(markup, reference, (CellGrid(tuple((item,) for item in items)),), is_list=True)


FENCE = re.compile(r"[ \t]*(`{3,}|~{3,}+)[^`]*")
TAG = re.compile(r"<(?:(?P<opens>[a-zA-Z!])|/[a-zA-Z])[^<>]*>?")
ENVIRONMENT = re.compile(r"\\(?:(?P<opens>begin)|end)[ \t]*\{[^{}]*\}?")


def strip_answer(answer: str, format: Format) -> str:  # noqa: A002 - the word of the contract
    """Remove everything but the markup from an answer.

    If code fences contain markup, only their contents are read; otherwise, the whole answer is read. Everything before
    the first and after the last piece of markup is removed. A piece of markup is a tag (HTML), an environment (LaTeX),
    or a row or table name (raw text). Applying this function to its own result changes nothing.

    Args:
        answer: the model's answer.
        format: the markup that the model was asked to write.

    Returns:
        The markup; if the answer has no markup, the whole answer without surrounding blanks.
    """
    before, stripped = "", answer
    while stripped != before:
        before, stripped = stripped, _strip_answer_once(stripped, format)
    return stripped


def _strip_answer_once(answer: str, markup: Format) -> str:
    if markup == "markdown":
        # Remove fences line by line, because the names of tables may be outside of the fences. Keep tabs at the start
        # and end of a line, because tabs separate blank cells.
        return _cut_to_markdown(answer) or (answer.strip() and answer.strip(" \r\n" if "\t" in answer else None))
    piece = TAG if markup == "html" else ENVIRONMENT
    blocks = [cut for block in _find_fenced_blocks(answer) if (cut := _cut_to_tags(block, piece))]
    return "\n\n".join(blocks) or _cut_to_tags(answer, piece) or answer.strip()


def _find_fenced_blocks(answer: str) -> Iterator[str]:
    """Yield the blocks between code fences; the last block may lack its closing fence."""
    fence, lines = "", list[str]()
    for line in answer.split("\n"):
        match = FENCE.fullmatch(line.rstrip("\r"))
        if not fence and match:
            fence, lines = match[1], []
        elif fence and line.strip().startswith(fence) and not line.strip().strip(fence[0]):
            yield "\n".join(lines)
            fence = ""
        elif fence:
            lines.append(line)
    if fence:
        yield "\n".join(lines)


def _cut_to_tags(text: str, piece: re.Pattern[str]) -> str:
    """Cut a text from its first opening tag to its last tag, or to its end if the last tag's element is truncated."""
    pieces = list(piece.finditer(text))
    first = next((match.start() for match in pieces if match["opens"]), None)
    if first is None:
        return ""
    return text[first:].rstrip() if pieces[-1]["opens"] else text[first : pieces[-1].end()]


def _cut_to_markdown(text: str) -> str:
    lines = [line for line in LINE_END.split(text) if not FENCE.fullmatch(line.rstrip())]
    rows = [place for place, line in enumerate(map(_write_box_in_ascii, lines)) if _is_pipe_row(line.strip())]
    if not rows or not _is_table([lines[place].strip() for place in rows]):
        return ""
    above = [place for place in range(rows[0]) if lines[place].strip()]
    first = above[-1] if above and _is_table_name(lines[above[-1]].strip()) else rows[0]
    return "\n".join(lines[first : rows[-1] + 1]).rstrip()


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
FILLER = "\0"
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
LONGEST_NAME = 80


def _read_raw_text(text: str, *, joins_lines: bool | None = None) -> list[CellGrid]:
    """Read all raw-text tables in order; if the text has no pipes, read tab- or comma-separated values.

    A table is a block of lines with pipes: at least two lines, or one line that begins with a pipe. A short line above
    the block is the table's name, even if blank lines or a code fence follow. The text before a line's first pipe is
    also a table's name, if it ends with a colon and the next line begins with a pipe.
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
    return tables or _read_delimited_tables(text)


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
    """Replace box-drawing characters by ASCII; escape pipes unless the first bar of the line is a pipe."""
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
    """Read a drawn grid with cells that span rows or columns; None if no cell does, or if lines are not aligned."""
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
    """Escape the bars of cells' texts: in an aligned grid, those at positions where no rule and no head has a bar."""
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
    joined = [(kind, [_merge_wrapped_lines(rows)] if not kind else rows) for kind, rows in groups]
    return [row for _, rows in joined for row in rows], [kind for kind, rows in joined for _ in rows]


def _keep_bars_in_code(
    lines: list[str], split_rows: list[tuple[str, ...]], separators: list[bool]
) -> list[tuple[str, ...]]:
    """Split rows again, but not at bars in code and formulas, if they then have the most frequent width.

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


def _read_delimited_tables(text: str) -> list[CellGrid]:
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
    """Read a table whose rules show its columns; the second of three rules ends the head, or the first of fewer."""
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
            rows[-1] = _merge_wrapped_lines([rows[-1], row])
            continue
        rows.append(row)
        head += place < rulers[len(rulers) >= 3]
    return CellGrid(tuple(rows), head_rows=head) if rows else None


def _split_line_at(line: str, starts: Sequence[int]) -> tuple[str, ...]:
    return tuple(normalise_text(line[start:end].replace(FILLER, "")) for start, end in pairwise([*starts, None]))


def _merge_wrapped_lines(rows: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """Join the lines of a row whose cells are wrapped."""
    return tuple(map(normalise_text, map(" ".join, zip_longest(*rows, fillvalue=""))))


def _read_asciidoc(text: str) -> Iterator[CellGrid]:
    """Read the tables of AsciiDoc; the columns are counted in the attributes, or else in the first line of cells."""
    for attributes, body in ASCIIDOC.findall(text):
        columns = COLUMNS.search(attributes)
        cells = list(map(normalise_text, ASCIIDOC_BAR.split(body)[1:]))
        head = body.strip().partition("\n")[0]
        width = columns[1].count(",") + 1 if columns and columns[1] else len(ASCIIDOC_BAR.findall(head))
        if width and len(cells) % width == 0:
            yield CellGrid(tuple(tuple(cells[at : at + width]) for at in range(0, len(cells), width)))


def _read_printed_frames(text: str, minimum: int) -> list[CellGrid]:
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
        # Without a name above it, a part of the lines is the beginning of the next column, unless it is the index.
        if head[starts[-1] : at].strip() or starts[-1] in gaps or (len(starts) == 1 and minimum == 2):
            starts.append(at)
    return starts


def _find_gap_starts(lines: Sequence[str], minimum: int) -> list[int]:
    """Find where gaps begin: at least `minimum` adjacent positions that are blank in all lines."""
    blank = "".join("x" if "".join(column).strip() else " " for column in zip_longest(*lines, fillvalue=" "))
    return [gap.start() for gap in re.finditer(f"(?<=x) {{{minimum},}}(?=x)", blank)]


def _drop_counting_index(table: CellGrid) -> CellGrid:
    """Remove a first column without a name that counts the rows from 0, which is pandas' default index."""
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
        # Rows of prose at the end are not part of the table, unless most of its rows look like prose.
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


ALIASES: Mapping[str, Format] = {
    "markdown": "markdown", "md": "markdown", "text": "markdown",
    "html": "html", "htm": "html",
    "latex": "latex", "tex": "latex",
}  # fmt: skip
"""Formats by their names in lower case."""


def parse_format(name: str) -> Format:
    """Return the format with this name or alias."""
    try:
        return ALIASES[name.lower()]
    except (KeyError, AttributeError):
        raise ValueError(f"the format of a table is markdown (md), html or latex (tex), not {name!r}") from None


def detect_format(text: str) -> Format:
    """Find the format of a text's tables: HTML or LaTeX if the text contains their tags, otherwise Markdown."""
    return next((markup for markup in ("html", "latex") if HINTS[markup].search(text)), "markdown")
