from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from evalsuite.benchmarks.struc_bench.items import TableItem
from evalsuite.builders.struc_bench.files import make_statistics_row

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Call = Callable[..., Any]
    Write = Callable[[str, Any], Path]

# Two rows of two columns and four of three; then one of one, which spans two rows and three columns.
RAW = ["Team:\n| | Wins |\n| Otters | 12 |\n\nPlayer:\n| | A | B |\n| x | 1 | 2 |\n| y | 3 | |\n| z | | 4 |"]
HTML = ["<table><tr><td rowspan=2 colspan=3>all</td></tr><tr></tr></table>", "<ul><li>no table</li></ul>"]


def plain(tables: list[str]) -> list[dict[str, str]]:
    return [{"instruction": "i", "input": "t", "output": table} for table in tables]


def test_rows_and_columns_are_means_over_tables() -> None:
    items = [TableItem("i", "t", table) for table in RAW]
    assert make_statistics_row("markdown", items) == ["Raw text", 0, 1, 2, 3.0, 2.5]


def test_items_without_a_table_have_no_rows() -> None:
    assert make_statistics_row("html", [TableItem("i", "t", HTML[1])]) == ["HTML", 0, 1, 0, None, None]


def test_the_command_prints_a_row_a_file(call: Call, write: Write) -> None:
    files = write("table_test.json", plain(RAW * 2)), write("html_test.json", plain(HTML))
    outcome = call("statistics", *files)
    assert outcome.status == 0
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in outcome.out.splitlines()[:4]]
    assert rows[0] == ["Files", "Format", "Train", "Test", "Tables", "Rows", "Columns"]
    assert rows[2:] == [
        ["table\\_test.json", "Raw text", "0", "2", "4", "3.00", "2.50"],
        ["html\\_test.json", "HTML", "0", "2", "1", "2.00", "3.00"],
    ]


def test_train_and_test_files_of_one_set_share_a_row(call: Call, write: Write) -> None:
    files = write("table_train.json", plain(RAW * 3)), write("table_test.json", plain(RAW))
    row = call("statistics", *files).out.splitlines()[2]
    assert [cell.strip() for cell in row.strip("|").split("|")][1:] == [
        "Raw text", "3", "1", "8", "3.00", "2.50",
    ]  # fmt: skip


def test_files_of_one_name_are_told_apart_by_their_folders(call: Call, write: Write) -> None:
    outcome = call("statistics", write("a/html.json", plain(HTML)), write("b/html.json", plain(HTML)))
    assert "a/html.json" in outcome.out
    assert "b/html.json" in outcome.out


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("items.json", plain(RAW), "a name that shows no format"),
        ("html.json", [], "found an empty list"),
        ("html.json", [{"input": "t"}], "item 0"),
        ("html.json", b"[", "found the end of the text"),
    ],
)
def test_a_file_that_is_none_of_items_is_one_message(
    name: str, content: Any, expected: str, call: Call, write: Write
) -> None:
    outcome = call("statistics", write(name, content))
    assert outcome.status == 2
    assert expected in outcome.err
    assert not outcome.out


@pytest.mark.parametrize("step", ["rotowire", "files", "format-cot", "statistics"])
def test_help_says_what_a_step_reads_and_writes(step: str, call: Call, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        call(step, "--help")
    assert ended.value.code == 0
    shown = capsys.readouterr().out
    assert ".json" in shown or ".html" in shown
    assert len(shown.splitlines()) > 8
