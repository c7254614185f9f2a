"""Render report sections as Markdown for GitHub. No other module rounds the numbers in reports."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from itertools import chain, groupby, zip_longest
from typing import TYPE_CHECKING, Literal

from evalsuite.core.errors import CONTROL, escape_for_terminal, shorten_to_ends, write_number
from evalsuite.output.reports.section import (
    Block,
    Cell,
    Column,
    Passage,
    Section,
    Table,
    drop_unmeasured_columns,
    is_best,
)
from evalsuite.results.tally import Estimate

if TYPE_CHECKING:
    from evalsuite.decisions.gates import GateDecision

USER_MENTION = re.compile(r"@(?=[\w-])")
ABSENT = "–"  # noqa: RUF001 - a dash: not measured
LONGEST = 1500  # Maximum characters of a model's text in a report.

CODE_SPAN = re.compile(r"(?<![`\\])(`+)(?!`)([^\n]+?)(?<!`)\1(?!`)")

# Matches lines that do not help in a terminal: pictures, links to sections, ends of folded blocks.
LEFT_OUT = re.compile(r"!\[.*\]\([^()]*\.svg\)$|\[[^\]]*\]\(#|</details>$")


def render_sections(sections: Sequence[Section], pictures: Sequence[str]) -> str:
    """Render sections as a document; show only charts whose names are in `pictures`."""
    parts = []
    for section in sections:
        parts.append(f"## {escape_markdown(section.title)}")
        for is_detail, blocks in groupby(section.blocks, lambda block: block.folded and not isinstance(block, Passage)):
            texts = [text for block in blocks if (text := _render_block(block, pictures))]
            if is_detail and texts:
                texts = ["<details><summary>More tables and pictures</summary>", *texts, "</details>"]
            parts += texts
    return "\n\n".join(parts)


def _render_block(block: Block, pictures: Sequence[str]) -> str:
    if isinstance(block, Table):
        return render_table(block)
    if isinstance(block, Passage):
        return render_passage(block)
    return f"![{escape_markdown(block.title)}]({block.name}.svg)" if block.name in pictures else ""


def render_table(table: Table) -> str:
    """Render a table with its title and its note."""
    if not table.rows:
        return ""
    table = drop_unmeasured_columns(table)
    title = f"### {escape_markdown(table.title)}" if table.title else ""
    return "\n\n".join(part for part in (title, _render_rows(table, "pipe"), _render_prose(table.note)) if part)


def _render_prose(text: str) -> str:
    """Keep the Markdown of a report's own text, but make tags and links inert, because labels and errors are in it."""
    text = CONTROL.sub("", text)
    words, codes = CODE_SPAN.split(text)[::3], [match[0] for match in CODE_SPAN.finditer(text)]
    inert = [re.sub(r"\\*\](?=[(\[:])", "&#93;", word.replace("<", "&lt;")) for word in words]
    return "".join(chain.from_iterable(zip_longest(inert, codes, fillvalue="")))


def render_terminal_table(table: Table) -> str:
    """Render a table for a terminal, without control characters; mark each row's best value with the word "best"."""
    return _render_rows(drop_unmeasured_columns(table), "simple")


def _render_rows(table: Table, table_format: Literal["pipe", "simple"]) -> str:
    from tabulate import tabulate

    def show_cell(cell: Cell, column: Column, best: float | None) -> str:
        marked = is_best(cell, column, best)
        if table_format == "pipe":
            return f"**{format_cell(cell, column)}**" if marked else format_cell(cell, column)
        text = re.sub(r"[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]+", " ", format_plain_cell(cell, column))
        return f"{text} best" if marked else text

    rows = [
        [show_cell(cell, column, best) for cell, column in zip(row, table.columns, strict=True)]
        for row, best in zip(table.rows, table.best or [None] * len(table.rows), strict=True)
    ]
    heads = [escape_markdown(column.title) if table_format == "pipe" else column.title for column in table.columns]
    sides = ["left" if column.style == "text" else "right" for column in table.columns]
    return tabulate(rows, heads, table_format, colalign=sides, disable_numparse=True)


def render_passage(passage: Passage) -> str:
    """Render a passage; a model's text is in a folded block, and is shortened if `whole` is false.

    Remove control characters, because `cat report.md` would send them to a terminal.
    """
    if not passage.folded:
        heading = f"### {escape_markdown(passage.title)}\n\n" if passage.title else ""
        return heading + _render_prose(passage.text)
    words = CONTROL.sub("", passage.text if passage.whole else shorten_to_ends(passage.text, LONGEST))
    longest_run = max((len(run) for run in re.findall("`+", words)), default=0)
    fence = "`" * max(3, longest_run + 1)
    # Escape the title as HTML without empty lines: inside HTML, Markdown's escapes would be visible.
    summary = html.escape(" ".join(CONTROL.sub("", passage.title).split()), quote=False)
    return f"<details><summary>{summary}</summary>\n\n{fence}text\n{words}\n{fence}\n\n</details>"


def format_cell(cell: Cell, column: Column) -> str:
    """Convert a table cell to Markdown."""
    # Escape text and p-values: brackets could become a link, and the `<` before a small p-value could become a tag.
    text = format_plain_cell(cell, column)
    return escape_markdown(text) if isinstance(cell, str) or column.style == "pvalue" else text


def render_section_links(sections: Sequence[Section]) -> str:
    """Return one line with a link to each section; the links use GitHub's anchors."""
    links = [f"[{escape_markdown(section.title)}](#{make_anchor(section.title)})" for section in sections]
    return " · ".join(links)


def make_anchor(title: str) -> str:
    """Convert a heading to its anchor on GitHub: lower case, hyphens instead of spaces, no other punctuation."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def format_plain_cell(cell: Cell, column: Column) -> str:
    """Convert a table cell to text in its column's style; leave text unchanged."""
    if cell is None:
        return ABSENT
    if isinstance(cell, str):
        return cell
    if isinstance(cell, Estimate):
        value = format_number(cell.value, column)
        if cell.low is None or cell.high is None:
            return value
        return f"{value} [{format_number(cell.low, column)}, {format_number(cell.high, column)}]"
    return format_number(cell, column)


def format_number(value: float, column: Column) -> str:
    """Round a number to the column's decimal places; omit the percent sign, which is in the heading."""
    if column.style == "pvalue":
        return "<0.0001" if value < 0.0001 else f"{value:.4f}"
    scaled = value * 100 if column.style == "percent" else value
    return write_number(scaled, ",.0f" if column.style == "count" else f".{column.digits}f")


def collapse_to_line(text: str) -> str:
    """Put a text on one line: single spaces between words, and no control characters."""
    words = (CONTROL.sub("", word) for word in text.split())
    return " ".join(word for word in words if word)


def escape_markdown(text: str) -> str:
    """Escape a text of a model or dataset, so that it cannot leave its table cell or become markup."""
    quoted = collapse_to_line(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    # A model's text must not notify users or contain links, so escape its mentions and addresses.
    inert = USER_MENTION.sub("&#64;", quoted).replace("://", "&#58;//")
    return re.sub(r"([\\`*_\[\]|~!])", r"\\\1", inert)


def unescape_markdown(text: str) -> str:
    """Undo `escape_markdown`."""
    return html.unescape(re.sub(r"\\([\\`*_\[\]|~!])", r"\1", text))


def convert_for_terminal(text: str) -> str:
    """Convert a rendered document for a terminal: remove escapes, pictures, tags and internal links.

    Keep fenced text unchanged, because it contains no escapes.
    """
    lines, fence = [], ""
    for line in text.splitlines():
        if fence:
            fence = "" if line == fence else fence
            lines.append(line)
        elif opened := re.match("`{3,}", line):
            fence = opened[0]
            lines.append(line)
        elif line.startswith("|"):
            lines.append("|".join(map(_unescape_and_pad_cell, re.split(r"(?<!\\)\|", line))))
        elif not LEFT_OUT.match(line):
            lines.append(unescape_markdown(re.sub(r"^<details><summary>(.*)</summary>$", r"\1", line)))
    return escape_for_terminal(re.sub(r"\n{3,}", "\n\n", "\n".join(lines)))


def _unescape_and_pad_cell(cell: str) -> str:
    plain = unescape_markdown(cell)
    return plain.rjust(len(cell)) if cell.startswith("  ") else plain.ljust(len(cell))


def format_decision_line(decision: GateDecision) -> str:
    """Format a gate's decision as one line: verdict, gate, metric, measured value and reason."""
    return f"{decision.verdict:>8}  {decision.gate.text}   {format_measured_line(decision)}"


def format_measured_line(decision: GateDecision) -> str:
    """Format the metric that a gate checks, its measured value, and the reason for the decision as one line."""
    reason, estimate = decision.reason, decision.estimate
    if estimate is not None:
        reason = f"{format_cell(estimate, Column('', 'number', 4))} {reason}".rstrip()
    return f"{decision.subject}: {reason}"
