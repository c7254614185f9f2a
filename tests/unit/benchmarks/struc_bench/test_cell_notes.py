"""The note of a case names the cells that differ."""

from __future__ import annotations

from typing import cast

import pytest

from evalsuite.benchmarks.struc_bench.scoring import LONGEST_CELL, score_table
from evalsuite.core.types import Sample, Score, Transcript


def note(answer: str, wanted: str) -> str:
    sample = Sample(id="1", input="", target=wanted, metadata={"text": ""}, tags={"format": "markdown"})
    scores = score_table(sample, Transcript(answer))
    return cast("Score", scores["table_content"]).note


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


def test_a_note_shows_both_ends_of_a_long_cell_without_control_characters() -> None:
    written = note(table("7 \x1b[31m" + "x " * 500), table("8"))
    assert len(written) <= LONGEST_CELL
    assert written.isprintable()
    assert written.endswith(", not 8")
