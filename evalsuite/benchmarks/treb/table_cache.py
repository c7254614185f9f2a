"""Tables read once for all modes and prompts of a question, within a bound on memory."""

from __future__ import annotations

import threading
from collections import OrderedDict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evalsuite.benchmarks.dataset_files import read_text
from evalsuite.benchmarks.treb.tables import SourceTable, from_csv, from_markdown
from evalsuite.core.errors import DatasetError

if TYPE_CHECKING:
    from collections.abc import Mapping

MOST_CHARACTERS = 16 << 20
"""Characters of CSV of the tables that are kept; as cells they take about ten times as many bytes."""


class TableCache:
    """The tables that were read last; safe to be used by several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tables: OrderedDict[tuple[str, int], tuple[SourceTable, int]] = OrderedDict()

    def read(self, source: Mapping[str, Any]) -> SourceTable:
        """A table of a record: from its CSV file, else from its Markdown.

        Raises:
            DatasetError: it is no table, or its file cannot be read.
        """
        path, header_rows = source["csv"], source["header_rows"]
        if not path:
            return _parsed(source["markdown"], header_rows, "")
        key = (path, header_rows)
        with self._lock:
            if key in self._tables:
                self._tables.move_to_end(key)
                return self._tables[key][0]
            text = read_text(Path(path))
            table = _parsed(text, header_rows, path)
            self._tables[key] = table, len(text)
            while len(self._tables) > 1 and sum(size for _, size in self._tables.values()) > MOST_CHARACTERS:
                self._tables.popitem(last=False)
            return table


def _parsed(text: str, header_rows: int, path: str) -> SourceTable:
    read = from_csv if path else from_markdown
    try:
        return read(text, header_rows)
    except ValueError as error:
        raise DatasetError(path or "a table in Markdown", "", str(error), "a table") from error
