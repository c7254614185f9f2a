"""A table is read once for all modes of its question, and the tables that are kept are bounded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from evalsuite.benchmarks.treb import tables
from evalsuite.benchmarks.treb.tables import TableCache
from evalsuite.core.errors import DatasetError

if TYPE_CHECKING:
    from pathlib import Path


def source(path: Path | str, header_rows: int = 1, markdown: str = "") -> dict[str, Any]:
    return {"csv": str(path), "header_rows": header_rows, "markdown": markdown}


def test_a_file_is_read_once(tmp_path: Path) -> None:
    path, cache = tmp_path / "a.csv", TableCache()
    path.write_text("city\nOslo\n")
    first = cache.read(source(path))
    path.unlink()
    assert cache.read(source(path)) is first
    assert first.rows == (("Oslo",),)


def test_another_number_of_header_rows_is_another_table(tmp_path: Path) -> None:
    path, cache = tmp_path / "a.csv", TableCache()
    path.write_text("city\nOslo\n")
    assert cache.read(source(path)).header != cache.read(source(path, 0)).header


def test_the_tables_read_longest_ago_are_let_go_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "MOST_CHARACTERS", 25)
    cache = TableCache()
    paths = [tmp_path / f"{name}.csv" for name in "abc"]
    for path in paths:
        path.write_text("city\nOslo\n")
    first, second, _ = (cache.read(source(path)) for path in paths)
    assert cache.read(source(paths[1])) is second
    assert cache.read(source(paths[0])) is not first


def test_what_is_no_table_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("city\n")
    with pytest.raises(DatasetError, match=r"a\.csv: found 1 row, fewer than its 3 header rows"):
        TableCache().read(source(path, 3))
    with pytest.raises(DatasetError, match="a table in Markdown"):
        TableCache().read(source("", 3, "| a |"))
