"""Read the tables of a text in any markup, and strip other text from answers."""

import html
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from evalsuite.metrics.tables.cells import normalise_cell
from evalsuite.metrics.tables.grid import FORMATS, CellGrid, Format
from evalsuite.metrics.tables.html import LIST_TAGS, WHITELIST, PageTables
from evalsuite.metrics.tables.latex import read_latex
from evalsuite.metrics.tables.plain_data import find_json_tables
from evalsuite.metrics.tables.raw_text import FENCE, cut_to_markdown, read_other_raw_text, read_raw_text

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
    return read_latex(text) if format == "latex" else read_raw_text(text)


def _read_markup(text: str, markup: Format) -> MarkupReading:
    return _make_reading(markup, text, read_tables(text, markup))


def _make_reading(
    markup: Format | Literal["json", "mediawiki"], text: str, tables: Iterable[CellGrid]
) -> MarkupReading:
    """Return the reading of a text with its tables, without tables whose cells are all blank."""
    return MarkupReading(markup, text, tuple(table for table in tables if any(map(normalise_cell, table.cells))))


def read_in_all_formats(answer: str, wanted_markup: Format) -> list[MarkupReading]:
    """Read an answer in each possible markup, the wanted markup first; skip readings without tables.

    To limit time and memory, answers longer than `LONGEST_TEXT` and readings with more than `MOST_CELLS` cells are
    skipped.
    """
    if len(answer) > LONGEST_TEXT:
        return []
    readings = [
        _read_markup(strip_answer(answer, markup), markup)
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
        yield _make_reading("json", text.strip(), found)
        # Also try the largest table alone, because the others may be metadata, such as the types of columns.
        yield _make_reading("json", text.strip(), sorted(found, key=lambda table: len(table.cells))[-1:])
    if "{|" in text:
        yield _make_reading("mediawiki", text.strip(), read_tables(_write_wiki_as_html(text), "html"))
    if ESCAPED_TAG.search(text):
        before = ""
        while before != text and ESCAPED_TAG.search(text):
            before, text = text, html.unescape(text)
        yield _read_markup(strip_answer(text, "html"), "html")
    if RAW_SIGN.search(text) and HINTS["latex"].search(text):
        latex = strip_answer(text, "latex")
        yield _make_reading("latex", latex, read_latex(RAW_SIGN.sub(r"\\\g<0>", latex)))
    for tables in read_other_raw_text(text):
        yield _make_reading("markdown", text.strip(), tables)


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
def read_reference_tables(reference: str, markup: Format) -> MarkupReading:
    """Read the tables of a reference; in HTML without a table, its list items or texts become a table of one column."""
    reading = _read_markup(reference, markup)
    if not reading.tables:
        reading = next((other for other in _read_other_markup(reference) if other.tables), reading)
    if reading.tables or markup != "html":
        return reading
    page = PageTables(reference)
    items = page.list_texts(LIST_TAGS) or page.list_texts(WHITELIST)
    if not any(map(normalise_cell, items)):
        return reading
    return MarkupReading(markup, reference, (CellGrid(tuple((item,) for item in items)),), is_list=True)


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
        before = stripped
        if format == "markdown":
            # Remove fences line by line, because the names of tables may be outside of the fences. Keep tabs at the
            # start and end of a line, because tabs separate blank cells.
            blanks = " \r\n" if "\t" in before else None
            stripped = cut_to_markdown(before) or (before.strip() and before.strip(blanks))
        else:
            piece = TAG if format == "html" else ENVIRONMENT
            blocks = [cut for block in _find_fenced_blocks(before) if (cut := _cut_to_tags(block, piece))]
            stripped = "\n\n".join(blocks) or _cut_to_tags(before, piece) or before.strip()
    return stripped


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
