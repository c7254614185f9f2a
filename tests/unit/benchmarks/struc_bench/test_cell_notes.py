"""The note of a case names the cells that differ."""

from __future__ import annotations

import asyncio
from typing import cast

import pytest

from evalsuite.benchmarks.struc_bench.scoring import LONGEST_CELL, TableScorer, score_table
from evalsuite.core.types import Sample, Score, Transcript
from evalsuite.metrics.tables import table_score


def scored(answer: str, wanted: str) -> dict[str, Score]:
    sample = Sample(id="1", input="", target=wanted, metadata={"text": ""}, tags={"format": "markdown"})
    scores = score_table(sample, answer, table_score(answer, wanted, format="markdown"))
    return cast("dict[str, Score]", scores)


def note(answer: str, wanted: str) -> str:
    return scored(answer, wanted)["table_content"].note


def table(*wins: str) -> str:
    return "\n".join(["| Team | Wins |", "|---|---|", *(f"| Gulls {at} | {win} |" for at, win in enumerate(wins))])


@pytest.mark.parametrize(
    ("answer", "wanted", "expected"),
    [
        (table("8"), table("8"), ""),
        (table("7"), table("8"), "Gulls 0 / Wins: 7, not 8"),
        (
            table(*"11111"),
            table(*"23456"),
            "Gulls 0 / Wins: 1, not 2; Gulls 1 / Wins: 1, not 3; Gulls 2 / Wins: 1, not 4; and 2 more",
        ),
    ],
)
def test_a_note_names_up_to_three_differing_cells(answer: str, wanted: str, expected: str) -> None:
    assert note(answer, wanted) == expected


def test_blank_cells_of_missing_rows_are_not_named() -> None:
    assert note("| Team | Wins |\n|---|---|\n| Gulls 0 | 8 |", f"{table('8')}\n| | 5 |") == "Wins: missing 5"


def test_a_note_shows_both_ends_of_a_long_cell_without_control_characters() -> None:
    written = note(table("7 \x1b[31m" + "x " * 500), table("8"))
    assert len(written) <= LONGEST_CELL
    assert written.isprintable()
    assert written.endswith(", not 8")


def test_wrong_cells_are_counted_by_kind_of_row_and_name_of_column() -> None:
    facts = scored(f"{table('1', '2', '3', '9')}\n| Extra | 1 |", table("1", "2", "2", "4"))["table_content"].facts
    assert [count for count in facts["cells"] if count[1] == "Wins"] == [
        ["head", "Wins", 1, 0], ["first row", "Wins", 1, 0], ["middle rows", "Wins", 2, 1], ["last row", "Wins", 1, 1],
    ]  # fmt: skip


@pytest.mark.parametrize("row_order", [True, False])
def test_the_order_of_rows_counts_unless_the_benchmark_leaves_it_out(*, row_order: bool) -> None:
    wanted = table(*"12345")
    first, second, *rows = wanted.splitlines()
    sample = Sample(id="1", input="", target=wanted, metadata={"text": ""}, tags={"format": "markdown"})
    scorer = TableScorer(row_order=row_order)
    scores = asyncio.run(scorer(sample, Transcript("\n".join([first, second, *reversed(rows)]))))
    assert (cast("Score", scores["table_score"]).value == 1.0) is not row_order
