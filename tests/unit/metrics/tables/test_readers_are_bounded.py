"""Readers of tables do work in proportion to the length of a text, whatever stands in it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalsuite.core.errors import ScoringError
from evalsuite.metrics.tables import FORMATS, Format, read_tables, table_score

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

STEPS_A_CHARACTER = 120
"""Twice the most that was seen in 20,000 texts of this kind, 57; lines of Python count, not time."""
STEPS_AT_LEAST = 2_000
LENGTH = 1_500
OPENINGS = st.sampled_from(["", "<table><tr>", r"\begin{tabular}{ll}", r"\begin{tblr}{", "| a | b |\n", "a,b\n1,2\n"])
SCRAPS = st.sampled_from(
    [
        *("{", "}", "[", "]", "&", "\\", "\\\\", r"\\[", "$", "%", "\n", "~", "\x00", "\ud800", "é", "x"),
        *(r"\begin{tabular}{l}", r"\end{tabular}", r"\begin{a}", r"\end{a}", r"\begin{table}", r"\end{table}"),
        *(r"\multicolumn{999}{c}{x}&", r"\multirow{99}{*}{x}\\", r"\multirow{-99}{*}{x}\\", r"\caption{", r"\caption["),
        *(r"\textbf[", r"\hline[(", r"\frac{", r"\'", r"\endhead", r"\SetCell[r=99,c=99]{}x&", r"\Block{99-99}{x}"),
        *(r"\begin{tabular}{*{99}{c}}x", r"\begin{longtblr}[caption={", r"\CodeBefore", r"\verb|", r"\kill", r"\="),
        *("<td>", "<table>", "</table>", "<tr>", "<th>", "<div>", "<li>", "</td>", "<b>", "&amp", "<!--", "<script>"),
        *("<td rowspan=0>", "<td colspan=999>", "<td rowspan=99 colspan=99>", "<caption>", "<thead>", "</thead>"),
        *("|", "| |\n", "\\|", "|-|\n", "```\n", "a\n", "a|\n", "+-+\n", "<NEWLINE>|", "> ", "a: |", "**"),
        *("a,b\n", '"', "a\tb\n", ";", "\r", "\u2028", "colspec={", "*{99}{"),
    ]
)


def steps(function: Callable[[], Any]) -> int:
    """How many lines of Python a call executes."""
    count = 0

    def trace(_frame: FrameType, _event: str, _arg: Any) -> Any:
        nonlocal count
        count += 1
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        function()
    finally:
        sys.settrace(before)
    return count


@pytest.mark.parametrize("written", FORMATS)
@given(OPENINGS, st.lists(SCRAPS, min_size=1, max_size=4), st.data())
@settings(max_examples=40, deadline=None)
def test_the_work_of_reading_grows_with_the_length_alone(
    written: Format, opening: str, scraps: list[str], data: st.DataObject
) -> None:
    unit = "".join(scraps)
    text = opening + unit * (LENGTH // len(unit)) + data.draw(SCRAPS)
    assert steps(lambda: read_tables(text, written)) <= STEPS_AT_LEAST + STEPS_A_CHARACTER * len(text)


@pytest.mark.parametrize("written", FORMATS)
@given(OPENINGS, st.lists(SCRAPS | st.text(max_size=3), max_size=60))
@settings(max_examples=40, deadline=None)
def test_any_mixture_of_scraps_is_read(written: Format, opening: str, scraps: list[str]) -> None:
    text = opening + "".join(scraps)
    for table in read_tables(text, written):
        assert all(isinstance(cell, str) for cell in table.cells)
        assert len(table.cells) <= 200 + 30 * len(text)


SMALL = "| a | b |\n|---|---|\n| 1 | 2 |\n"
ENORMOUS = {
    "54 megabytes": SMALL + "| x | y |\n" * 6_000_000,
    "one enormous cell": SMALL.replace("2", "2" * 50_000_000),
    "a million columns": "|" * 999_990,
    "more cells than are compared": "<table>" + "<tr><td>1<td>2" * 60_000,
    "five million cells by spans": "<table>" + "<tr><td colspan=1000 rowspan=65534>x" * 300,
    "a long row above many short ones": "|" * 400_000 + "x|\n" + "|x|\n" * 10_000,
}


@pytest.mark.parametrize("kind", ENORMOUS)
def test_an_enormous_answer_scores_zero_and_an_enormous_reference_is_an_error_that_names_the_limit(kind: str) -> None:
    assert table_score(ENORMOUS[kind], SMALL).value == 0.0
    if kind != "a million columns":  # This table is blank.
        with pytest.raises(ScoringError, match="at most 1,000,000 characters and 100,000 cells"):
            table_score(SMALL, ENORMOUS[kind])


HOSTILE = {
    "runs of backticks of all lengths": SMALL + "| " + " | ".join("`" * length for length in range(1, 600)) + " |\n",
    "attributes of AsciiDoc": "|===\n[" + 'cols="a"' * 30_000 + "\n",
    "tildes before a backtick": SMALL + "~" * 400_000 + "`| x |\n",
    "rules of a grid": "+--+--+\n| a|b |\n" * 12_000,
    "spaces before a row": SMALL + " " * 200_000 + "| x |\n",
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_text_that_is_searched_to_its_end_from_each_place_is_scored(kind: str) -> None:
    """A search that grows with the square of the length would take minutes here, or hours."""
    assert table_score(HOSTILE[kind], SMALL).value < 1.0
