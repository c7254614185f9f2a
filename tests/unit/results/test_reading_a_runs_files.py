"""A file of a run with one wrong value is one message that names the value."""

from __future__ import annotations

import gc
import json
import re
import tracemalloc
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import evalsuite
from evalsuite.core.errors import RunError
from evalsuite.core.json_codec import decode_record, dumps, encode_record, make_record_schema
from evalsuite.core.settings import Settings
from evalsuite.core.types import Record, Transcript
from evalsuite.results.run_folders import RunFolder
from evalsuite.results.runs import load_run
from evalsuite.results.tally import Row

if TYPE_CHECKING:
    from tests.unit.conftest import Desk

RECORD = encode_record(Record("c", "b", "1", 1, "m", "passed", scores={"s": 1.0}, transcript=Transcript("answer")))


def test_a_record_as_it_is_written_is_right() -> None:
    assert encode_record(decode_record(dumps(RECORD))) == RECORD


@pytest.mark.parametrize(
    ("name", "wrong", "message"),
    [
        ("scores", {"s": None}, "scores.s: Input should be a valid number, not None"),
        ("scores", {"s": True}, "scores.s: Input should be a valid number, not True"),
        ("outcome", "perfect", "outcome: Input should be 'passed', 'failed', 'error' or 'skipped', not 'perfect'"),
        ("usage", {"calls": -1}, "usage.calls: Input should be greater than or equal to 0, not -1"),
        ("tags", [], "tags: Input should be an object, not []"),
        ("logs", {"judge": [1]}, "logs.judge.0: Input should be an object, not 1"),
        ("seconds", float("nan"), "seconds: Input should be a finite number, not nan"),
    ],
)
def test_a_wrong_value_in_a_record_is_named(name: str, wrong: Any, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        decode_record(dumps({**RECORD, name: wrong}))


def test_what_a_run_knows_of_itself_is_right_as_it_is_written_and_named_where_it_is_wrong(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    folder.write_info({"settings": Settings().plain(), "seconds": 1.0})
    assert folder.info()["seconds"] == 1.0
    folder.write_info({"settings": Settings().plain() | {"min_paired": "most"}})
    with pytest.raises(RunError, match=r"run\.json is damaged: settings\.min_paired: Input should be a valid number"):
        folder.info()


def test_a_setting_that_an_older_run_left_as_null_has_its_default(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    folder.write_info({"settings": {"baseline": None, "limit": None, "seed": 3}})
    assert folder.info()["settings"] == {"limit": None, "seed": 3}


def test_what_this_version_writes_is_read_as_it_is(tmp_path: Path) -> None:
    """Shards are compared by their settings, and a baseline's hash is that of its `run.json`."""
    folder = RunFolder(tmp_path)
    folder.write_info({"settings": Settings().plain()})
    assert folder.info()["settings"] == json.loads(json.dumps(Settings().plain()))


@pytest.mark.parametrize(
    ("name", "wrong", "message"),
    [
        ("metrics", {"b": {"m": {"better": "more"}}}, "metrics.b.m.better: Input should be 'higher' or 'lower'"),
        ("metrics", {"b": {"m": {"range": [1, 0]}}}, "metrics.b.m: Value error, a metric's range needs two numbers"),
        ("early", {"cases": 1, "planned": 2}, "early.gates: Field required"),
    ],
)
def test_a_field_that_is_missing_or_wrong_in_run_json_is_named(
    tmp_path: Path, name: str, wrong: Any, message: str
) -> None:
    folder = RunFolder(tmp_path)
    folder.write_info({name: wrong})
    with pytest.raises(RunError, match=re.escape(message)):
        folder.info()


def test_the_published_schema_is_the_one_that_records_are_read_by() -> None:
    published = json.loads((Path(evalsuite.__file__).parent / "schemas" / "record.json").read_text("utf-8"))
    assert published == make_record_schema()


def test_a_run_that_is_read_takes_less_than_five_eighths_of_a_kibibyte_a_case(desk: Desk) -> None:
    names = ("input", "model", "params", "prompt", "requests", "scorers", "target")

    def make_record(number: int) -> Record:
        hashes = {name: f"{number * 16 + place:016x}" for place, name in enumerate(names)}
        hashes |= {} if number % 50 else {"old": "not a hash"}
        return replace(desk.record(str(number), {"right": number % 2}), fingerprints=hashes)

    records = [make_record(number) for number in range(2000)]
    folder = desk.folder(records)
    load_run(folder)  # The first reading also imports modules.
    tracemalloc.start()
    run = load_run(folder)
    gc.collect()
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held < 640 * len(records)
    rows = {row.case: row for row in run.all_rows()}
    assert [rows[record.case].fingerprints for record in records] == [record.fingerprints for record in records]
    assert [rows[record.case] for record in records] == [Row.of(record) for record in records]


def test_equal_facts_of_different_types_keep_their_types(desk: Desk) -> None:
    facts: list[Any] = [1, 1.0, True, 1]
    run = load_run(desk.folder([replace(desk.record(f"{place}"), facts={"x": x}) for place, x in enumerate(facts)]))
    read = {row.case: row.facts["x"] for row in run.all_rows()}
    assert [(type(x), x) for x in read.values()] == [(type(x), x) for x in facts]
