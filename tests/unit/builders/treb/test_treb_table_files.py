"""Tables as people have them: usual encodings and delimiters, workbooks, databases; bad files are told and left."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import sys
import zipfile
from datetime import date, datetime
from pathlib import Path
from typing import Any

import openpyxl  # type: ignore[import-untyped]  # it ships no types
import pytest

from evalsuite.builders.treb import build_pairs, write_pairs
from evalsuite.builders.treb.sheet import MOST_UNPACKED, Sheet, list_table_files, read_sheets
from evalsuite.core.errors import DatasetError

ROWS = [("name", "votes"), ("Ålesund", "11"), ("Besançon", "22"), ("Córdoba", "47")]


def told(path: Path) -> str:
    ((name, reason),) = read_sheets(path)
    assert isinstance(reason, str), reason
    return f"{name}: {reason}"


def cells(path: Path) -> list[tuple[str, ...]]:
    ((_, sheet),) = read_sheets(path)
    assert isinstance(sheet, Sheet), sheet
    return [*sheet.table.header, *sheet.table.rows]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "latin-1", "cp1252"])
@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_a_table_reads_alike_in_every_encoding_and_with_every_delimiter(
    tmp_path: Path, encoding: str, delimiter: str
) -> None:
    path = tmp_path / "cities.csv"
    path.write_text("\r\n".join(map(delimiter.join, ROWS)), encoding=encoding, newline="")
    assert cells(path) == ROWS


@pytest.mark.parametrize("encoding", ["gbk", "gb18030", "utf-16"])
def test_a_chinese_table_reads_in_chinese_encodings(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "tea.tsv"
    path.write_text("名称\t销量\n龙井\t12\n普洱\t19\n", encoding=encoding)
    assert cells(path) == [("名称", "销量"), ("龙井", "12"), ("普洱", "19")]


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ('name,votes\na,"1,200"\nb,"-12,345.5"\nc,7\nd,NA\n', ["1200", "-12345.5", "7", "NA"]),
        ("name;votes\na;1,200\nb;2,500\n", ["1200", "2500"]),
        ("name;votes\na;1.200,5\nb;3,25\n", ["1200.5", "3.25"]),
        ("name;votes;rate\na;1.200;0,5\nb;2\u00a0500;1,5\n", ["1200", "2500"]),
        ('name,votes\na,"1,20"\nb,"3,4"\n', None),
        ('name,votes\na,"1,200"\nb,12 men\n', None),
        ("sep=;\nname;votes\na, b;4\nc, d;9\n", ["4", "9"]),
        ("name;votes;\na, b;4;\nc, d;9;\n;;\n", ["4", "9"]),
    ],
)
def test_numbers_are_written_plainly_where_a_column_holds_nothing_else(
    tmp_path: Path, text: str, column: list[str] | None
) -> None:
    (tmp_path / "t.csv").write_text(text, "utf-8")
    if column is None:
        assert "no column of numbers" in told(tmp_path / "t.csv")
    else:
        assert [row[1] for row in cells(tmp_path / "t.csv")[1:]] == column


def write_workbook(path: Path, sheets: dict[str, list[Any]]) -> Path:
    book = openpyxl.Workbook()
    book.remove(book.active)
    for name, rows in sheets.items():
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(row)
    book.save(path)
    return path


def test_the_sheets_of_a_workbook_are_tables(tmp_path: Path) -> None:
    at = datetime(2020, 1, 2, 3, 4)  # noqa: DTZ001 - workbooks know no zones
    first = [("city", "votes", "on", "at"), ("Oslo", 11.0, date(2020, 1, 2), at), (None,) * 4]
    path = write_workbook(
        tmp_path / "book.xlsx", {"One": [*first, ("Rome", 2.5, None, None)], "Two": [("a", "b"), ("x", "y")]}
    )
    (one, sheet), (two, reason) = read_sheets(path)
    assert (one, two) == ("book_One", "book.xlsx, Two")
    assert isinstance(sheet, Sheet)
    assert sheet.table.rows == (("Oslo", "11", "2020-01-02", "2020-01-02 03:04:00"), ("Rome", "2.5", "", ""))
    assert reason == "it has no column of numbers"
    path = write_workbook(tmp_path / "single.xlsx", {"Sheet": [("city", "votes"), ("Oslo", 11), ("Rome", 25)]})
    assert cells(path) == [("city", "votes"), ("Oslo", "11"), ("Rome", "25")]


def test_the_tables_of_a_database_are_tables(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "shop.db") as database:
        database.execute('CREATE TABLE "odd | ""name""/x" (item TEXT, "units sold")')
        database.executemany('INSERT INTO "odd | ""name""/x" VALUES (?, ?)', [("tea", 4), ("milk", 9.0), (None, 11)])
        database.execute("CREATE TABLE pictures (name TEXT, votes INTEGER)")
        database.execute("INSERT INTO pictures VALUES (?, ?)", (b"\xff\xd8", 1))
        database.execute("CREATE TABLE vast (name TEXT, votes INTEGER)")
        database.execute("INSERT INTO vast VALUES (?, ?)", ("a" * (2 << 20), 1))
    database.close()
    found = dict(read_sheets(tmp_path / "shop.db"))
    sheet = found.pop("shop_odd _ _name_x")
    assert isinstance(sheet, Sheet)
    assert sheet.table.rows == (("tea", "4"), ("milk", "9"), ("", "11"))
    assert found == {"shop.db, pictures": "it has binary cells", "shop.db, vast": "string or blob too big"}


def test_each_bad_file_has_one_message_and_the_others_go_on(tmp_path: Path) -> None:
    def of(name: str, content: bytes) -> str:
        (tmp_path / name).write_bytes(content)
        return told(tmp_path / name)

    assert "it has no rows" in of("empty.csv", b"")
    assert "truncated data" in of("cut.csv", "name,votes\nä,1\n".encode("utf-16")[:-1])
    assert "not UTF-8 (byte 12, 0xff)" in of("broken.csv", "né,Ålesund".encode() + b"\xff\xff\n")
    assert "save it as UTF-8" in of("russian.csv", "город,число\nМосква,1\n".encode("cp1251"))
    assert "NUL bytes" in of("binary.csv", b"a,b\n\x00\x01,2\n")
    assert "line 3: unexpected end" in of("quote.csv", b'name,votes\n"a,1\nb,2\n')
    assert "more than 30000 characters" in of("enormous.tsv", b"name\tn\n" + b"a\t1\n" * 50_000)
    assert "not a zip file" in of("text.xlsx", b"name,n\n")
    assert "not a database" in of("text.sqlite", b"name,n\n" * 100)
    with zipfile.ZipFile(tmp_path / "parts.xlsx", "w") as parts:
        parts.writestr("xl/other.xml", "<a/>")
    assert "not a readable workbook" in told(tmp_path / "parts.xlsx")
    with zipfile.ZipFile(tmp_path / "bomb.xlsx", "w", zipfile.ZIP_DEFLATED) as parts:
        parts.writestr("xl/sharedStrings.xml", b" " * (MOST_UNPACKED + 1))
    assert "its parts have more than 32 MiB" in told(tmp_path / "bomb.xlsx")
    long = write_workbook(tmp_path / "long.xlsx", {"Sheet": [("name", "n"), *[("abcdefg", 1)] * 5_000]})
    assert "more than 30000 characters" in told(long)
    (tmp_path / "folder.csv").mkdir()
    os.mkfifo(tmp_path / "pipe.csv")
    assert "not a regular file" in told(tmp_path / "folder.csv")
    assert "not a regular file" in told(tmp_path / "pipe.csv")
    (tmp_path / "Good.CSV").write_bytes("city;votes\nBesançon;4\nOslo;9\nRome;12\n".encode("latin-1"))
    built = asyncio.run(build_pairs(list_table_files(tmp_path)))
    assert len(built.skipped) == 14
    assert list(built.sheets) == ["Good"]
    assert built.records
    write_pairs(built, tmp_path / "out")
    assert (tmp_path / "out" / "csv" / "Good.csv").read_text("utf-8") == "city,votes\nBesançon,4\nOslo,9\nRome,12\n"


def test_a_file_without_permission_and_a_lack_of_openpyxl_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_workbook(tmp_path / "b.xlsx", {"Sheet": [("city", "votes"), ("Oslo", 11)]})
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    assert "pip install 'evalsuite[sandbox]'" in told(path)
    (tmp_path / "loop.csv").symlink_to(tmp_path / "loop.csv")
    assert "loop.csv: " in told(tmp_path / "loop.csv")


def test_tables_of_one_name_keep_apart(tmp_path: Path) -> None:
    for name in ("t.csv", "t.tsv"):
        (tmp_path / name).write_text("city,votes\nOslo,4\nRome,9\nBern,15\n", "utf-8")
    built = asyncio.run(build_pairs(list_table_files(tmp_path)))
    assert list(built.sheets) == ["t", "t_2"]
    assert {record["file_path"][0] for record in built.records} == {"csv/t.csv", "csv/t_2.csv"}


def test_a_folder_without_tables_is_an_error(tmp_path: Path) -> None:
    for folder, problem in ((tmp_path, "no table"), (tmp_path / "x", "no such folder"), (Path(__file__), "a file")):
        with pytest.raises(DatasetError, match=problem):
            list_table_files(folder)
