from __future__ import annotations

import json
import tracemalloc
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalsuite.benchmarks.treb import records
from evalsuite.benchmarks.treb.records import raw_records
from evalsuite.core.errors import DatasetError

if TYPE_CHECKING:
    from pathlib import Path

values = st.recursive(st.none() | st.integers() | st.text('a"\\]},铁 ', max_size=9), st.lists, max_leaves=4)
objects = st.dictionaries(st.text("ab{", max_size=3), values, max_size=3)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("records")


@pytest.fixture(autouse=True)
def in_small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "AT_ONCE", 0)
    monkeypatch.setattr(records, "PIECE", 3)


@given(st.lists(objects, max_size=5), st.sampled_from([None, 1]), st.sampled_from(["", "\ufeff"]))
def test_a_stream_holds_what_the_file_holds(
    folder: Path, records: list[dict[str, Any]], indent: int | None, mark: str
) -> None:
    file = folder / "list.json"
    text = json.dumps(records, ensure_ascii=False, indent=indent)
    file.write_bytes((mark + text).encode())
    assert [record for _, record in raw_records(file)] == records


def test_json_lines_are_streamed_by_line(tmp_path: Path) -> None:
    file = tmp_path / "lines.json"
    file.write_text('{"a": 1}\n\n{"a": "铁"}', encoding="utf-8")
    assert list(raw_records(file)) == [("line 1", {"a": 1}), ("line 3", {"a": "铁"})]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[{"a": 1}, {"b"', "record 2: found .* expected a whole JSON object"),
        ('[{"a": 1} {"b": 2}]', "after record 1: found .* expected ']'"),
        ('[{"a": 1}, ]', "record 2: found ']', expected an object"),
        ('[{"a": 1}] more', "after record 1: found 'm', expected the end"),
        ("[1]", "record 1: found '1.*expected an object"),
        ('[{"a": 1}', "after record 1: found the end of the file"),
        ('[{"a": "\\ud800"}]', "record 1: found half of a surrogate pair"),
    ],
)
def test_a_fault_is_told_with_its_record(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "broken.json"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(DatasetError, match=message):
        list(raw_records(file))


def test_a_byte_that_is_no_text_is_told(tmp_path: Path) -> None:
    file = tmp_path / "bytes.json"
    file.write_bytes(b'[{"a": "\xff"}]')
    with pytest.raises(DatasetError, match="0xff"):
        list(raw_records(file))


def test_a_large_file_is_never_in_memory_as_a_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "PIECE", 1 << 16)
    file = tmp_path / "large.json"
    file.write_text(json.dumps([{"text": "x" * 50_000}] * 200), encoding="utf-8")
    tracemalloc.start()
    try:
        count = sum(1 for _ in raw_records(file))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (count, peak < 2_000_000) == (200, True)
