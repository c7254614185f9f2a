"""Tables in other forms than markup: pandas and polars frames, lists of rows, lists of records."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from evalsuite.metrics.tables.readings import HINTS

if TYPE_CHECKING:
    from evalsuite.metrics.tables.grid import Format

ALIASES: Mapping[str, Format] = {
    "markdown": "markdown",
    "md": "markdown",
    "text": "markdown",
    "html": "html",
    "htm": "html",
    "latex": "latex",
    "tex": "latex",
}
"""Formats by their names in lower case."""
ESCAPED_IN_LATEX = re.compile(r"(?<!\\)([&%#_$])")


def format_named(name: str) -> Format:
    """Return the format with this name or alias.

    Raises:
        ValueError: the name is unknown.
    """
    try:
        return ALIASES[name.lower()]
    except (KeyError, AttributeError):
        raise ValueError(f"table scores know the formats markdown (md), html and latex (tex), not {name!r}") from None


def find_format(text: str) -> Format:
    """Find the format of a text's tables: HTML or LaTeX if it contains their tags, else Markdown."""
    return next((markup for markup in ("html", "latex") if HINTS[markup].search(text)), "markdown")


def as_markup(table: Any, written: Format) -> str:
    """Write a table as markup; a text is returned unchanged.

    Args:
        table: a text, a pandas or polars frame, a list of rows, or a list of records with the same keys.
        written: the markup to write.

    Raises:
        TypeError: the table has none of these forms.
    """
    return table if isinstance(table, str) else write_table(as_rows(table), written)


def as_rows(table: Any) -> list[list[str]]:
    """Return the rows of a frame or list as texts, the names of columns first.

    Raises:
        TypeError: the table is neither a frame nor a list.
    """
    if hasattr(table, "columns") and hasattr(table, "itertuples"):
        return _pandas_rows(table)
    if hasattr(table, "columns") and hasattr(table, "rows"):
        return [list(map(_as_text, row)) for row in (table.columns, *table.rows())]
    if isinstance(table, Sequence) and table and all(isinstance(row, Mapping) for row in table):
        names = list(dict.fromkeys(name for record in table for name in record))
        records = ([record.get(name) for name in names] for record in table)
        return [list(map(_as_text, row)) for row in (names, *records)]
    if isinstance(table, Sequence) and all(isinstance(row, Sequence) and not isinstance(row, str) for row in table):
        return [list(map(_as_text, row)) for row in table]
    raise TypeError(
        f"a table is a text, a pandas or polars frame, a list of rows or a list of records, not {type(table).__name__}"
    )


def write_table(rows: Sequence[Sequence[str]], written: Format, name: str = "") -> str:
    """Write rows of cell texts as markup, with a caption if a name is given."""
    if written == "html":
        body = "".join("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
        return f"<table>{f'<caption>{html.escape(name)}</caption>' if name else ''}{body}</table>"
    if written == "latex":
        lines = " \\\\\n".join(" & ".join(map(_escape_latex, row)) for row in rows)
        width = max(map(len, rows), default=1)
        caption = f"\\caption{{{_escape_latex(name)}}}\n" if name else ""
        begin, end = f"\\begin{{table}}\n{caption}", "\\end{table}"
        return f"{begin}\\begin{{tabular}}{{{'l' * width}}}\n{lines} \\\\\n\\end{{tabular}}\n{end}"
    bars = [f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in rows]
    return "\n".join([*([f"{name}:"] if name else []), *bars])


def _pandas_rows(frame: Any) -> list[list[str]]:
    # An index that counts from 0 is pandas' default and not part of the table.
    numbered = type(frame.index).__name__ == "RangeIndex"
    filled = (frame if numbered else frame.reset_index()).astype(object)
    filled = filled.where(filled.notna(), None)
    return [list(map(_as_text, row)) for row in (filled.columns, *filled.itertuples(index=False, name=None))]


def _as_text(value: Any) -> str:
    if value is None or value != value:  # noqa: PLR0124 - NaN is the value that differs from itself
        return ""
    text = " ".join(map(str, value)) if isinstance(value, tuple) else str(value)
    return " ".join(text.split())


def _escape_latex(cell: str) -> str:
    plain = cell.replace("\\", "\\textbackslash ").replace("{", "\\{").replace("}", "\\}")
    return ESCAPED_IN_LATEX.sub(r"\\\1", plain)
