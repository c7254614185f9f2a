"""Tables as plain data: write data frames, lists and records as markup, and find tables in JSON."""

import html
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any

from evalsuite.metrics.tables.grid import CellGrid, Format, normalise_text

ESCAPED_IN_LATEX = re.compile(r"(?<!\\)([&%#_$])")
JSON_VALUE = re.compile(r"[\[{](?=\s*[\[{\"])")
OTHER_LINE_END = re.compile("\r+\n|[\r\u2028\u2029]")
DEEPEST_JSON = 8
MOST_ATTEMPTS = 100  # Maximum number of failed attempts to parse a JSON value in a text.


def find_json_tables(text: str) -> list[CellGrid]:
    """Find the tables of all JSON values in a text; adjacent objects, as in JSON Lines, form one table."""
    values, place, attempts = list[Any](), 0, 0
    decoder = json.JSONDecoder(parse_float=str, parse_int=str, object_pairs_hook=_read_json_object)
    while attempts < MOST_ATTEMPTS and (start := JSON_VALUE.search(text, place)):
        try:
            value, place = decoder.raw_decode(text, start.start())
            values.append(value)
        except (ValueError, RecursionError):
            attempts, place = attempts + 1, start.end()
    if len(values) > 1 and all(isinstance(value, Mapping) for value in values):
        values = [values]
    return [table for value in values for table in _list_json_tables(value, "", DEEPEST_JSON)]


def _read_json_object(pairs: list[tuple[str, Any]]) -> dict[str, Any] | list[Any]:
    """Read an object as a list if its keys count from 0, as pandas' default index does."""
    is_list = pairs and all(key == str(place) for place, (key, _) in enumerate(pairs))
    return [value for _, value in pairs] if is_list else dict(pairs)


def _list_json_tables(value: Any, name: str, depth: int) -> Iterator[CellGrid]:
    """Yield a JSON value if it is a table; otherwise, yield the tables among its entries, named by their keys."""
    rows: list[list[Any]] = []
    if isinstance(value, list) and value and len({type(item) for item in value}) == 1:
        rows = _list_rows(value) if isinstance(value[0], dict | list) else []
    elif isinstance(value, dict):
        lists = [item for item in value.values() if isinstance(item, list) and item]
        bodies = [item for item in lists if all(isinstance(row, list) for row in item)]
        heads = [item for item in lists if not any(isinstance(cell, dict | list) for cell in item)]
        if len(bodies) == 1 and (head := next((item for item in heads if len(item) == len(bodies[0][0])), None)):
            rows = [head, *bodies[0]]
        elif value and len(heads) == len(value):
            rows = [list(value), *map(list, zip_longest(*heads, fillvalue=""))]
        elif value and all(isinstance(item, dict) and _is_flat_record(item) for item in value.values()):
            rows = _list_rows([{"": key, **item} for key, item in value.items()])
        elif value and _is_flat_record(value):
            rows = [list(pair) for pair in value.items()]
        elif depth:
            for key, item in value.items():
                yield from _list_json_tables(item, key, depth - 1)
    if rows:
        texts = tuple(tuple(normalise_text(_convert_cell_to_text(cell)) for cell in row) for row in rows)
        yield CellGrid(texts, name=normalise_text(name))


def _is_flat_record(record: Mapping[str, Any]) -> bool:
    return not any(isinstance(value, dict | list) for value in record.values())


def convert_to_markup(table: Any, markup: Format) -> str:
    """Write a data frame or a list of rows or records as markup.

    In a text, only remove a byte order mark, and replace every other line end by a line feed.
    """
    if isinstance(table, str):
        return OTHER_LINE_END.sub("\n", table.removeprefix("\ufeff"))
    return format_rows_as_markup(_list_rows(table), markup)


def _list_rows(table: Any) -> list[list[str]]:
    """Return the rows of a frame or list as texts, the names of columns first."""
    rows: Iterable[Sequence[Any]]
    if hasattr(table, "columns") and hasattr(table, "itertuples"):
        # An index that counts from 0 is pandas' default and not part of the table.
        numbered = type(table.index).__name__ == "RangeIndex"
        filled = (table if numbered else table.reset_index()).astype(object)
        filled = filled.where(filled.notna(), None)
        rows = (filled.columns, *filled.itertuples(index=False, name=None))
    elif hasattr(table, "columns") and hasattr(table, "rows"):
        rows = (table.columns, *table.rows())
    elif isinstance(table, Sequence) and table and all(isinstance(row, Mapping) for row in table):
        names = list(dict.fromkeys(name for record in table for name in record))
        rows = (names, *([record.get(name) for name in names] for record in table))
    elif isinstance(table, Sequence) and all(isinstance(row, Sequence) and not isinstance(row, str) for row in table):
        rows = table
    else:
        raise TypeError(
            "a table is a text, a pandas or polars frame, a list of rows or a list of records, "
            f"not {type(table).__name__}"
        )
    return [list(map(_convert_cell_to_text, row)) for row in rows]


def _convert_cell_to_text(value: Any) -> str:
    if value is None or value != value:  # noqa: PLR0124 - NaN is the value that differs from itself
        return ""
    text = " ".join(map(str, value)) if isinstance(value, tuple) else str(value)
    return " ".join(text.split())


def format_rows_as_markup(rows: Sequence[Sequence[str]], markup: Format, name: str = "") -> str:
    """Write rows of cell texts as markup, with a caption if a name is given."""
    if markup == "html":
        body = "".join("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
        return f"<table>{f'<caption>{html.escape(name)}</caption>' if name else ''}{body}</table>"
    if markup == "latex":
        lines = " \\\\\n".join(" & ".join(map(_escape_latex, row)) for row in rows)
        width = max(map(len, rows), default=1)
        caption = f"\\caption{{{_escape_latex(name)}}}\n" if name else ""
        begin, end = f"\\begin{{table}}\n{caption}", "\\end{table}"
        return f"{begin}\\begin{{tabular}}{{{'l' * width}}}\n{lines} \\\\\n\\end{{tabular}}\n{end}"
    bars = [f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in rows]
    return "\n".join([*([f"{name}:"] if name else []), *bars])


def _escape_latex(cell: str) -> str:
    plain = cell.replace("\\", "\\textbackslash ").replace("{", "\\{").replace("}", "\\}")
    # Protect a bracket at the start of a row, because LaTeX would read it as an argument of the line break above.
    return ESCAPED_IN_LATEX.sub(r"\\\1", re.sub(r"^\[", "{[}", plain))
