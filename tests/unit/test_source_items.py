"""Published files that are JSON in form, but hold what nothing can be made of."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from evalsuite.core.errors import DatasetError
from evalsuite.samples.items import read_json, read_json_lines, read_text


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (r'["before \ud83d"]', "half of a surrogate pair after '[\"before '"),
        (r'["\uDC00"]', "half of a surrogate pair"),
        ("[" * 100_000, "nested too deep"),
        (f"[{'9' * 5000}]", "a number of thousands of digits"),
    ],
)
def test_what_nothing_can_be_made_of_is_an_error_of_the_file(tmp_path: Path, text: str, found: str) -> None:
    file = tmp_path / "broken.json"
    file.write_text(text)
    with pytest.raises(DatasetError) as raised:
        read_json(file, list)
    assert str(file) in str(raised.value)
    assert found in str(raised.value)


def test_a_character_written_as_two_escapes_is_read(tmp_path: Path) -> None:
    file = tmp_path / "fine.json"
    file.write_text(r'["\ud83d\ude00", "\\ud800 in words"]')
    assert read_json(file, list) == ["\N{GRINNING FACE}", r"\ud800 in words"]


def test_the_line_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    file = tmp_path / "broken.jsonl"
    file.write_text('{"a": 1}\n{"a": "\\ud800"}\n')
    with pytest.raises(DatasetError, match="line 2: found half of a surrogate pair"):
        list(read_json_lines(file))


def test_a_pipe_of_other_bytes_is_refused_although_it_can_be_read_only_once() -> None:
    reading, writing = os.pipe()
    os.write(writing, b"\xef\xbb\xbfa\n\xff")
    os.close(writing)
    with pytest.raises(DatasetError, match="byte 5: found the byte 0xff"):
        read_text(Path(f"/dev/fd/{reading}"))
    os.close(reading)
