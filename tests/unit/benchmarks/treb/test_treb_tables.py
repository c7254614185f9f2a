"""Tables read from CSV and Markdown, and written in three formats."""

from __future__ import annotations

import io
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest
from bs4 import BeautifulSoup
from hypothesis import given
from hypothesis import strategies as st

from evalsuite.benchmarks.treb.solving import format_table, make_sandbox_tables
from evalsuite.benchmarks.treb.tables import SourceTable, parse_markdown, read_csv, read_table
from evalsuite.core.errors import DatasetError
from evalsuite.core.types import Sample
from evalsuite.sandbox import TableFile

if TYPE_CHECKING:
    from pathlib import Path


CELL = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Z"]), min_size=1, max_size=5).filter(
    lambda cell: not cell.endswith("\\") and "\\|" not in cell
)


def parse_csv(text: str, header_rows: int) -> SourceTable:
    return read_csv(io.StringIO(text, newline=""), header_rows)


@st.composite
def tables(draw: st.DrawFn) -> SourceTable:
    width, header, rows = draw(st.integers(1, 4)), draw(st.integers(0, 2)), draw(st.integers(1, 4))
    line = st.tuples(*[CELL] * width)
    return SourceTable(
        tuple(draw(line) for _ in range(header)),
        tuple(draw(line.filter(lambda cells: set("".join(cells)) - set("-:|"))) for _ in range(rows)),
    )


@given(tables())
def test_a_table_written_as_csv_reads_back_as_itself(table: SourceTable) -> None:
    assert parse_csv(table.format_csv(), len(table.header)) == table


@given(tables())
def test_a_table_written_as_markdown_reads_back_as_itself(table: SourceTable) -> None:
    assert parse_markdown(table.format_markdown(), len(table.header)) == table


@given(tables())
def test_a_table_written_as_html_holds_the_same_cells(table: SourceTable) -> None:
    rows = BeautifulSoup(table.format_html(), "lxml").find_all("tr")
    read = [tuple(cell.get_text() for cell in row.find_all(["th", "td"])) for row in rows]
    assert read == [*table.header, *table.rows]


def test_short_rows_are_filled_up_and_blank_lines_passed_over() -> None:
    assert parse_csv("a,b,c\n1,2\n\n3,4,5\n", 1) == SourceTable((("a", "b", "c"),), (("1", "2", ""), ("3", "4", "5")))


def test_a_cell_of_several_lines_is_one_line_in_markdown_and_html() -> None:
    table = parse_csv('a\n"one\ntwo"\n', 1)
    assert "| one two |" in table.format_markdown()
    assert "<td>one two</td>" in table.format_html()


def test_only_the_first_rule_of_a_markdown_table_is_the_rule() -> None:
    table = parse_markdown("| a | b |\n|---|---|\n| - | -- |\n| 1 | 2 |", 1)
    assert table.rows == (("-", "--"), ("1", "2"))


def test_a_bar_inside_a_cell_survives_markdown() -> None:
    table = SourceTable((("a",),), (("x|y",),))
    assert table.format_markdown().splitlines()[-1] == r"| x\|y |"
    assert parse_markdown(table.format_markdown(), 1) == table


def test_a_table_without_header_gets_an_empty_one_in_markdown() -> None:
    assert parse_csv("1,2\n3,4\n", 0).format_markdown() == "|  |  |\n|---|---|\n| 1 | 2 |\n| 3 | 4 |"


def test_a_second_header_row_stands_below_the_rule_in_markdown() -> None:
    table = parse_csv("a,a\nx,y\n1,2\n", 2)
    assert table.format_markdown() == "| a | a |\n|---|---|\n| x | y |\n| 1 | 2 |"
    assert table.format_html().startswith("<table><thead><tr><th>a</th><th>a</th></tr><tr><th>x</th>")


@pytest.mark.parametrize(("text", "rows", "message"), [("", 1, "0 rows"), ("a,b\n", 2, "1 row, fewer than its 2")])
def test_fewer_rows_than_headers_are_refused(text: str, rows: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_csv(text, rows)


def test_a_cell_too_long_for_csv_is_refused_with_its_line() -> None:
    with pytest.raises(ValueError, match="line 2"):
        parse_csv(f"a\n{'x' * 200_000}\n", 1)


def test_an_empty_table_has_no_columns() -> None:
    assert parse_csv("", 0).width == 0


@pytest.mark.parametrize("line", ["|" + "-" * 100_000 + "x", "|-" * 1_000 + "x", "|-" + " " * 100_000 + "x"])
def test_a_line_that_is_nearly_a_rule_is_a_row(line: str) -> None:
    assert len(parse_markdown(f"| a |\n{line}\n", 1).rows) == 1


def source(path: Path | str, header_rows: int = 1, markdown: str = "") -> dict[str, Any]:
    return {"csv": str(path), "header_rows": header_rows, "markdown": markdown}


def test_another_number_of_header_rows_is_another_table(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("city\nOslo\n")
    assert read_table(source(path)).header != read_table(source(path, 0)).header


def test_what_is_no_table_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("city\n")
    with pytest.raises(DatasetError, match=r"a\.csv: found 1 row, fewer than its 3 header rows"):
        read_table(source(path, 3))
    with pytest.raises(DatasetError, match="a table in Markdown"):
        read_table(source("", 3, "| a |"))


def test_of_a_large_file_only_the_beginning_is_parsed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "large.csv"
    path.write_text("a,b\n" + "1, x\n\n" * 70, encoding="utf-8")
    whole = read_table(source(path))
    monkeypatch.setattr("evalsuite.benchmarks.treb.tables.LARGEST", 100)
    table = read_table(source(path))
    assert (table.header, table.rows, table.left_out) == (whole.header, whole.rows[:50], 20)
    assert format_table(table, "", "tcot_markdown", 10_000) == format_table(whole, "", "tcot_markdown", 10_000)
    given = Sample("s", "?", metadata={"tables": [source(path)]})
    assert make_sandbox_tables(given) == {"df": TableFile(path, 1)}


def test_the_rows_of_a_large_file_are_counted_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "large.csv"
    path.write_text("a,b\n" + "1, x\n" * 70, encoding="utf-8")
    monkeypatch.setattr("evalsuite.benchmarks.treb.tables.LARGEST", 100)
    with ThreadPoolExecutor(4) as threads:
        first, *others = threads.map(read_table, [source(path)] * 8)
    assert all(table is first for table in others)


@pytest.mark.parametrize("content", [b"a,b\n\xff,1\n" * 60, b'a,"b\n' + b"x" * 200_000])
def test_a_large_file_that_is_not_a_table_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes
) -> None:
    monkeypatch.setattr("evalsuite.benchmarks.treb.tables.LARGEST", 100)
    (tmp_path / "bad.csv").write_bytes(content)
    with pytest.raises(DatasetError, match=r"bad\.csv"):
        read_table(source(tmp_path / "bad.csv"))
