"""Rows in columns: they are the rows that they were, and take little room."""

from __future__ import annotations

import dataclasses
import json
import tracemalloc
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalsuite.core.types import Record, Usage
from evalsuite.results.row_columns import Offsets, RowColumns, StoredRows
from evalsuite.results.rows import Row
from evalsuite.results.tally import Tally
from evalsuite.results.value_columns import MOST

if TYPE_CHECKING:
    from collections.abc import Sequence

TEXTS = st.text(max_size=4)
VALUES = st.none() | st.booleans() | st.integers(-2, 2) | st.floats(allow_nan=False) | TEXTS
AMOUNTS = st.builds(Usage, st.integers(0, 3), st.integers(0, 9), st.integers(0, 9), st.floats(0, 1))
DIGESTS = st.text("0123456789abcdef", min_size=16, max_size=16)
RECORDS = st.builds(
    Record,
    case=TEXTS | st.sampled_from(["t.py::f[a]", "t.py::f[b]", "t.py::g[a]", "t.py::f"]),
    benchmark=st.just("b"),
    sample=st.sampled_from(["a", "b"]) | TEXTS,
    epoch=st.integers(1, 3),
    model=st.just("m"),
    outcome=st.sampled_from(["passed", "failed", "error", "skipped"]),
    tags=st.dictionaries(st.sampled_from(["t", "cluster"]), TEXTS, max_size=2),
    scores=st.dictionaries(st.sampled_from("mn"), st.sampled_from([0.0, 1.0, 0.1, 1 / 3, 1e9]), max_size=2),
    facts=st.dictionaries(TEXTS, VALUES | st.lists(VALUES, max_size=2) | st.just("x" * 500), max_size=3),
    usage=AMOUNTS,
    judge_usage=AMOUNTS,
    simulator_usage=AMOUNTS,
    seconds=st.floats(0, 9),
    solving_seconds=st.floats(0, 9),
    excused=st.sampled_from([None, "gate", "epochs"]),
    fingerprints=st.dictionaries(st.sampled_from("ip"), DIGESTS | TEXTS, max_size=2),
)  # fmt: skip
several = given(st.lists(RECORDS, max_size=8))
modest = settings(max_examples=60, deadline=None)


def stored(records: Sequence[Record]) -> tuple[RowColumns, Tally]:
    columns = RowColumns()
    for number, record in enumerate(records):
        columns.append(record, 100 * number)
    return columns, Tally(StoredRows(columns, columns.counted()))


def listed(records: Sequence[Record]) -> Tally:
    return Tally.of({record.case: Row.of(record) for record in records}.values())


def plain(row: Row) -> dict[str, Any]:
    values = {field.name: getattr(row, field.name) for field in dataclasses.fields(row)}
    return values | {"fingerprints": dict(row.fingerprints)}


@several
@modest
def test_rows_come_back_as_they_were_and_of_a_case_that_ran_twice_the_later_one(
    records: list[Record],
) -> None:
    _, tally = stored(records)
    # As JSON, which tells 1 from 1.0 and true, and both zeros apart.
    usual = [json.dumps(plain(row), default=dataclasses.asdict) for row in listed(records)]
    assert [json.dumps(plain(row), default=dataclasses.asdict) for row in tally] == usual
    assert [plain(tally.rows[at]) for at in range(len(tally))] == list(map(plain, listed(records)))


@several
@modest
def test_what_is_read_off_columns_is_what_is_read_off_rows(records: list[Record]) -> None:
    _, tally = stored(records)
    usual = listed(records)
    assert tally.metrics() == usual.metrics()
    for metric in usual.metrics():
        assert tally.values(metric) == usual.values(metric)
        assert tally.clusters(metric) == usual.clusters(metric)
        assert repr(tally.estimate(metric)) == repr(usual.estimate(metric))
    groups, usual_groups = tally.groups("t"), usual.groups("t")
    assert {name: list(map(plain, group)) for name, group in groups.items()} == {
        name: list(map(plain, group)) for name, group in usual_groups.items()
    }
    assert list(map(plain, tally.where(lambda row: row.epoch > 1, t="x"))) == list(
        map(plain, usual.where(lambda row: row.epoch > 1, t="x"))
    )


@several
@modest
def test_each_case_is_found_where_its_later_record_begins(records: list[Record]) -> None:
    columns, _ = stored(records)
    offsets = Offsets(columns, columns.counted())
    assert dict(offsets) == {record.case: 100 * number for number, record in enumerate(records)}
    with pytest.raises(KeyError):
        offsets["no such case"]


def test_a_case_takes_a_quarter_of_a_kilobyte() -> None:
    cases = 2 * MOST

    def record(number: int) -> Record:
        sample, digests = f"sample-{number:06}", [f"{number + part:016x}" for part in range(7)]
        return Record(
            f"cases/test_alpha.py::test_alpha[{sample}]", "alpha", sample, 1, "made up", "passed",
            {"region": ("eu", "asia")[number % 2]}, scores={"right": 1.0, "token_f1": number / 7},
            facts={"words": number}, usage=Usage(1, number, 2, number / 3), seconds=number / 3,
            solving_seconds=number / 7,
            fingerprints=dict(zip(("input", "target", "model", "scorers", "prompt", "params", "requests"), digests,
                strict=True)),
        )  # fmt: skip

    columns = RowColumns()
    for number in range(MOST):
        columns.append(record(number), number)
    tracemalloc.start()
    for number in range(MOST, cases):
        columns.append(record(number), number)
    # Whatever has grown since is a new block, and counted whole.
    whole = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert whole / cases < 256
    assert columns.row(cases - 1) == Row.of(record(cases - 1))
