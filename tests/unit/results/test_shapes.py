"""A file of a run with one wrong value is one message that names the value."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from evalsuite.core.errors import RunError
from evalsuite.core.json_codec import encode_record
from evalsuite.core.settings import Settings
from evalsuite.core.types import Record, Transcript
from evalsuite.results import shapes
from evalsuite.results.run_folders import RunFolder

if TYPE_CHECKING:
    from pathlib import Path

RECORD = encode_record(
    Record("c", "b", "1", 1, "m", "passed", scores={"s": 1.0}, transcript=Transcript("answer"))
)


def test_a_record_as_it_is_written_is_right() -> None:
    assert not shapes.RECORD(RECORD)


@pytest.mark.parametrize(
    ("name", "wrong", "message"),
    [
        ("scores", {"s": None}, "scores.s: no finite number"),
        ("scores", {"s": True}, "scores.s: no finite number"),
        ("outcome", "perfect", "outcome: none of passed, failed, error, skipped"),
        ("usage", {"calls": -1}, "usage.calls: no whole number of at least 0"),
        ("tags", [], "tags: no object"),
        ("logs", {"judge": [1]}, "logs.judge.0: no object"),
        ("seconds", float("nan"), "seconds: no number of at least 0"),
    ],
)
def test_a_wrong_value_in_a_record_is_named(name: str, wrong: Any, message: str) -> None:
    assert shapes.RECORD({**RECORD, name: wrong}) == message


def test_what_a_run_knows_of_itself_is_right_as_it_is_written_and_named_where_it_is_wrong(
    tmp_path: Path,
) -> None:
    folder = RunFolder(tmp_path)
    folder.write_info({"settings": Settings().plain(), "seconds": 1.0})
    assert folder.info()["seconds"] == 1.0
    folder.write_info({"settings": Settings().plain() | {"min_paired": "most"}})
    with pytest.raises(RunError, match=r"run\.json is damaged: settings\.min_paired: no number"):
        folder.info()


@pytest.mark.parametrize(
    ("name", "wrong", "message"),
    [
        ("metrics", {"b": {"m": {}}}, "metrics.b.m: no range"),
        ("usage", {"calls": 1}, "usage: no prompt_tokens"),
        ("early", {"cases": 1, "planned": 2}, "early: no gates"),
    ],
)
def test_a_field_that_is_missing_in_run_json_is_named(name: str, wrong: Any, message: str) -> None:
    assert shapes.info({name: wrong}) == message
