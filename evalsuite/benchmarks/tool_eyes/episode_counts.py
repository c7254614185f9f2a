"""How many turns episodes took, and what went wrong in them."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from evalsuite.benchmarks.tool_eyes.episode_rows import episodes
from evalsuite.output.reports.section import Chart, Column, Series, Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evalsuite.output.reports.section import Cell
    from evalsuite.output.reports.table_rows import LabelledCases

# What can go wrong in a turn, in the order in which it is checked.
FAULTS = {
    "keywords": "a keyword is missing or out of order",
    "no_call": "no call where one was expected",
    "empty_action": "no tool named",
    "unparseable": "input that cannot be parsed",
    "redundant": "redundant text after the input",
    "unknown_tool": "a tool that does not exist",
    "unknown_parameter": "a parameter that does not exist",
    "missing_parameter": "a required parameter missing",
    "wrong_type": "a value of the wrong type",
    "escaped_name": "escaped characters in a name",
    "after_finish": "a call after finish in one message",
    "tool_failed": "a right call that failed",
}


def turns(lines: Sequence[LabelledCases]) -> Table:
    """Figure 4 of the paper as numbers: how many episodes took so many turns."""
    longest = _longest(lines)
    columns = [Column("Run"), *(Column(str(turns), "count") for turns in range(1, longest + 1))]
    columns += [Column("Unfinished", "count")]
    rows: list[list[Cell]] = []
    for line in lines:
        taken = Counter(row.facts["turns"] for row in episodes(line.tally))
        unfinished = sum(row.facts["ended"] != "finish" for row in episodes(line.tally))
        rows.append([line.label, *(taken[turns] for turns in range(1, longest + 1)), unfinished])
    return Table("Episodes by their number of turns", columns, rows)


def turns_chart(lines: Sequence[LabelledCases]) -> Chart:
    """Figure 4 of the paper."""
    labels = [str(turns) for turns in range(1, _longest(lines) + 1)]
    series = []
    for line in lines:
        taken = Counter(str(row.facts["turns"]) for row in episodes(line.tally))
        series.append(
            Series(line.label, [taken[label] / taken.total() if taken else None for label in labels])
        )
    return Chart(
        kind="bars",
        name="tool_eyes_turns",
        title="Turns an episode",
        labels=labels,
        series=series,
        unit="percent",
        limits=(0.0, 1.0),
        x_title="turns",
        y_title="episodes",
    )


def _longest(lines: Sequence[LabelledCases]) -> int:
    return max((row.facts["turns"] for line in lines for row in episodes(line.tally)), default=0)


def failures(lines: Sequence[LabelledCases]) -> Table:
    """Figure 7 of the paper: what went wrong, and how often."""
    columns = [Column("What went wrong")]
    for line in lines:
        columns += [Column(line.label, "count"), Column("% of turns", "percent")]
    rows: list[list[Cell]] = []
    for fault, words in FAULTS.items():
        counts = [_count(line, fault) for line in lines]
        shares = [_share(line, fault) for line in lines]
        if any(counts):
            rows.append([words, *(cell for pair in zip(counts, shares, strict=True) for cell in pair)])
    return Table(
        "What went wrong", columns, rows, "Counts of turns or calls; a call may be counted more than once."
    )


def _count(line: LabelledCases, fault: str) -> int:
    return sum(row.facts["faults"].get(fault, 0) for row in episodes(line.tally))


def _share(line: LabelledCases, fault: str) -> float | None:
    turns = sum(row.facts["turns"] for row in episodes(line.tally))
    return _count(line, fault) / turns if turns else None


def failures_chart(lines: Sequence[LabelledCases]) -> Chart:
    """Figure 7 of the paper."""
    present = [fault for fault in FAULTS if any(_count(line, fault) for line in lines)]
    return Chart(
        kind="bars",
        name="tool_eyes_failures",
        title="What went wrong",
        labels=[fault.replace("_", " ") for fault in present],
        series=[Series(line.label, [_share(line, fault) for fault in present]) for line in lines],
        unit="percent",
        y_title="of turns",
    )
