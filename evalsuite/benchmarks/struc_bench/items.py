"""The items of Struc-Bench: published JSON, a list of `{instruction, input, output}`, one file a format."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from evalsuite.benchmarks.dataset_files import expect, read_json, take
from evalsuite.core.errors import DatasetError
from evalsuite.metrics.tables import FORMATS, Format

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

WORDS: Mapping[Format, frozenset[str]] = {
    "html": frozenset({"html"}),
    "latex": frozenset({"latex", "tex"}),
    "markdown": frozenset({"table", "tables", "text", "raw", "rawtext", "markdown", "rotowire"}),
}
"""Words in a file's name that stand for a format, tried in this order, so that `html_table.json` is HTML."""


@dataclass(frozen=True, slots=True)
class TableItem:
    """One item.

    Attributes:
        instruction: what to do.
        input: the text that the table is to be made from.
        output: the table.
        format_description: FormatCoT's words on the table's format; empty where there are none. The
            published files have no such field, `evalsuite build struc-bench format-cot` adds it.
    """

    instruction: str
    input: str
    output: str
    format_description: str = ""


def read_items(path: Path) -> list[TableItem]:
    """Reads one file.

    Raises:
        DatasetError: it is not as published, or holds no item.
    """
    records = read_json(path, list)
    if not records:
        raise DatasetError(path, "", "an empty list", "items {instruction, input, output}")
    return [_read_item(record, path, f"item {place}") for place, record in enumerate(records)]


def _read_item(record: object, path: Path, where: str) -> TableItem:
    fields = expect(record, dict, path, where)
    instruction, text, output = (
        take(fields, name, str, path, where) for name in ("instruction", "input", "output")
    )
    if not output.strip():
        raise DatasetError(path, f"{where}, field 'output'", "nothing", "a table")
    description = expect(
        fields.get("format_description", ""), str, path, f"{where}, field 'format_description'"
    )
    return TableItem(instruction, text, output, description)


def items_json(items: Iterable[TableItem]) -> str:
    """Items in the form in which they are read; a lone surrogate, which no file can hold, becomes a question mark."""
    records = [
        {name: value for name, value in asdict(item).items() if value} | _required(item) for item in items
    ]
    text = json.dumps(records, ensure_ascii=False, indent=1)
    return f"{text}\n".encode("utf-8", "replace").decode()


def write_items(path: Path, items: Iterable[TableItem]) -> None:
    """Writes items in the form in which they are read."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(items_json(items), encoding="utf-8")


def _required(item: TableItem) -> dict[str, str]:
    return {"instruction": item.instruction, "input": item.input, "output": item.output}


def find_files(folder: Path) -> dict[Format, Path]:
    """The file of each format in a folder, by the words in its name; of several the one with `test`.

    Raises:
        DatasetError: there is none, or it is unclear which of several is meant.
    """
    paths: dict[Format, list[Path]] = {}
    for path in sorted(folder.glob("*.json")):
        if written := format_of(path):
            paths.setdefault(written, []).append(path)
    if not paths:
        expected = "files of items named after their format: table_test.json, html_test.json, latex_test.json"
        raise DatasetError(folder, "", "no such file", expected)
    return {written: _the_one(folder, written, paths[written]) for written in FORMATS if written in paths}


def format_of(path: Path) -> Format | None:
    """The format that a file's name stands for, or None."""
    words = set(re.findall("[a-z]+", path.stem.lower()))
    return next((written for written, markers in WORDS.items() if words & markers), None)


def _the_one(folder: Path, written: Format, paths: list[Path]) -> Path:
    tests = [path for path in paths if "test" in path.stem.lower()]
    chosen = tests or paths
    if len(chosen) > 1:
        names = ", ".join(path.name for path in chosen)
        raise DatasetError(
            folder, "", f"several files of {written} items: {names}", "one, or one named ..._test.json"
        )
    return chosen[0]
