"""Struc-Bench's published JSON, read and written."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalsuite.benchmarks.struc_bench.items import (
    TableItem,
    encode_items,
    find_files,
    find_format,
    load_dataset,
    read_items,
)
from evalsuite.core.errors import DatasetError
from evalsuite.core.protocols import Setup

if TYPE_CHECKING:
    from pathlib import Path

GOOD = {"instruction": "Make a table.", "input": "Gulls 7", "output": "| Gulls | 7 |"}
ITEMS = st.builds(
    TableItem,
    instruction=st.text(st.characters(codec="utf-8"), max_size=20),
    input=st.text(st.characters(codec="utf-8"), max_size=20),
    output=st.text(st.characters(codec="utf-8"), max_size=20).filter(str.strip),
    format_description=st.text(st.characters(codec="utf-8"), max_size=20),
)


def written(folder: Path, content: Any, name: str = "table_test.json") -> Path:
    path = folder / name
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path


def test_items_are_read_in_their_order_with_or_without_a_description(tmp_path: Path) -> None:
    described = {**GOOD, "format_description": "One table.", "source": "a field of somebody else's"}
    assert read_items(written(tmp_path, [GOOD, described])) == [
        TableItem("Make a table.", "Gulls 7", "| Gulls | 7 |"),
        TableItem("Make a table.", "Gulls 7", "| Gulls | 7 |", "One table."),
    ]


def test_a_written_file_has_the_published_fields_and_no_empty_description(tmp_path: Path) -> None:
    path = tmp_path / "html_test.json"
    path.write_text(encode_items([TableItem("Make a page.", "", "<p>Zo\u00eb</p>")]), "utf-8")
    text = path.read_text(encoding="utf-8")
    assert json.loads(text) == [{"instruction": "Make a page.", "input": "", "output": "<p>Zo\u00eb</p>"}]
    assert "Zo\u00eb" in text, "readable as it is"


@given(st.lists(ITEMS, min_size=1, max_size=4))
def test_what_is_written_is_read(tmp_path_factory: pytest.TempPathFactory, items: list[TableItem]) -> None:
    path = tmp_path_factory.mktemp("items") / "latex.json"
    path.write_text(encode_items(items), "utf-8")
    assert read_items(path) == items


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("{", "line 1, column 2"),
        ({"data": [GOOD]}, "a list"),
        ([], "an empty list"),
        ([GOOD, 7], "item 1"),
        ([{"instruction": "", "output": "x"}], "the field 'input'"),
        ([{**GOOD, "input": None}], "item 0, field 'input'"),
        ([{**GOOD, "output": " \n"}], "item 0, field 'output'"),
        ([{**GOOD, "format_description": ["One table."]}], "item 0, field 'format_description'"),
    ],
)
def test_a_fault_is_told_with_its_file_and_place(tmp_path: Path, content: Any, told: str) -> None:
    with pytest.raises(DatasetError) as error:
        read_items(written(tmp_path, content))
    assert "table_test.json" in str(error.value)
    assert told in str(error.value)


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("table_test.json", "markdown"),
        ("rotowire-train.json", "markdown"),
        ("raw_text.json", "markdown"),
        ("html_test.json", "html"),
        ("html_table.json", "html"),
        ("LaTeX_Table_Test.json", "latex"),
        ("tex2.json", "latex"),
        ("human_scores.json", None),
        ("context.json", None),
        ("tables2023.json", "markdown"),
    ],
)
def test_a_files_name_tells_its_format(tmp_path: Path, name: str, known: str | None) -> None:
    assert find_format(tmp_path / name) == known


def test_of_several_files_of_a_format_the_test_file_is_taken(tmp_path: Path) -> None:
    for name in ("latex_train.json", "latex_test.json", "html.json", "human_scores.json", "table_test.txt"):
        written(tmp_path, [GOOD], name)
    found = find_files(tmp_path)
    assert {known: path.name for known, path in found.items()} == {"html": "html.json", "latex": "latex_test.json"}


@pytest.mark.parametrize(
    ("names", "told"),
    [
        ([], "html_test.json"),
        (["other.json"], "no such file"),
        (["html_a.json", "html_b.json"], "html_a.json, html_b.json"),
        (["html_test.json", "test_html.json"], "one named ..._test.json"),
    ],
)
def test_a_folder_in_which_no_file_can_be_told_is_an_error(tmp_path: Path, names: list[str], told: str) -> None:
    for name in names:
        written(tmp_path, [GOOD], name)
    with pytest.raises(DatasetError) as error:
        find_files(tmp_path)
    assert told in str(error.value)


def test_a_missing_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="no such file"):
        find_files(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("name", "output"),
    [
        ("latex_test.json", r"\begin{unknowntable}A & B\end{unknowntable}"),
        ("table_test.json", "There is no table in this sentence."),
        ("html_test.json", "<dl><dt>Otters</dt><dd>12</dd></dl>"),
    ],
)
def test_an_item_whose_table_cannot_be_read_is_refused_on_loading(tmp_path: Path, name: str, output: str) -> None:
    readable = {"latex": r"\begin{tabular}{l}A\end{tabular}", "table": "| A |\n| 1 |", "html": "<td>A</td>"}
    kind = name.partition("_")[0]
    path = written(tmp_path, [{**GOOD, "output": readable[kind]}, {**GOOD, "output": output}], name)
    with pytest.raises(DatasetError) as error:
        load_dataset(Setup("gpt-4", modes=("direct",), data=tmp_path))
    form = {"latex": "latex", "table": "markdown", "html": "html"}[kind]
    assert f"{path}, item 1, field 'output': found {output!r}" in str(error.value)
    assert f"expected a table that can be read as {form} (docs/table_metrics.md lists the markup)" in str(error.value)
