"""Sheets that people fill in, as their spreadsheets save them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from evalsuite.builders.building import format_csv_sheet, parse_csv_sheet
from evalsuite.core.errors import DatasetError

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "latin-1"])
@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_a_sheet_is_read_in_every_encoding_and_with_every_delimiter(
    tmp_path: Path, encoding: str, delimiter: str
) -> None:
    path = tmp_path / "sheet.csv"
    path.write_text(f"id{delimiter}mark{delimiter}comment\n1{delimiter}très bon\n", encoding)
    assert list(parse_csv_sheet(path, ("id", "mark", "comment"))) == [
        ("line 2", {"id": "1", "mark": "très bon", "comment": ""})
    ]


def test_what_is_written_is_read_and_formulas_are_text(tmp_path: Path) -> None:
    (tmp_path / "sheet.csv").write_text(format_csv_sheet(("id", "text"), [("1", "=1+1"), ("2", 'a,"b"\nc')]), "utf-8")
    texts = [row["text"] for _, row in parse_csv_sheet(tmp_path / "sheet.csv", ("text",))]
    assert texts == ["'=1+1", 'a,"b"\nc']


@pytest.mark.parametrize(
    ("content", "problem"),
    [(b"id\n1\n", "no column mark"), (b"", "no column id"), (b"id,mark\n\0,1\n", "NUL bytes"), (None, "No such file")],
)
def test_a_sheet_that_cannot_be_read_is_one_message(tmp_path: Path, content: bytes | None, problem: str) -> None:
    path = tmp_path / "sheet.csv"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(DatasetError, match=problem):
        list(parse_csv_sheet(path, ("id", "mark")))
