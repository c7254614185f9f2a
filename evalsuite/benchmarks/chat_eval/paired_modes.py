"""Does the panel beat the single judge? Paired tests between the modes of one run, on the same comparisons."""

from __future__ import annotations

import math
from itertools import combinations
from typing import TYPE_CHECKING

from evalsuite.benchmarks.chat_eval.human_scores import RatedResponses, dialogues, pairs
from evalsuite.benchmarks.chat_eval.ratings import ASPECT_NAMES
from evalsuite.output.reports.judges.gains import gain, kappa_gain
from evalsuite.output.reports.section import Column, Table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from evalsuite.output.reports.judges.gains import Gain
    from evalsuite.output.reports.section import Cell
    from evalsuite.results.tally import Row, RunView, Tally

_Answers = tuple[str, str, str]
"""Of one comparison what people say, what one mode says, and what the other says."""

COLUMNS = (
    Column("Mode"),
    Column("Other mode"),
    Column("Accuracy gained", "percent"),
    Column("p", "pvalue"),
    Column("Kappa gained", "number", 2),
    Column("p", "pvalue"),
    Column("Pairs", "count"),
)
NOTE = (
    "Of the other mode over the first, on the comparisons that both judged. Accuracy's p is McNemar's exact test; "
    "kappa's interval and p are the jackknife's, by question."
)
RHO_COLUMNS = (
    Column("Mode"),
    Column("Other mode"),
    Column("Spearman's rho gained", "number", 2),
    Column("p", "pvalue"),
    Column("Responses", "count"),
)
RHO_NOTE = (
    "Of the other mode over the first, on the responses that both scored: the mean correlation over the four aspects. "
    "Interval and p are the jackknife's, by conversation."
)


def paired_modes(views: Sequence[RunView]) -> list[Table]:
    """A table for comparisons and one for dialogue responses, with one row for each two modes of a run."""
    on_pairs: list[tuple[Cell, ...]] = []
    on_dialogues: list[tuple[Cell, ...]] = []
    for view in views:
        for two in combinations(view.tally.groups("mode").items(), 2):
            on_pairs += _row(view.label, *two)
            on_dialogues += _rho_row(view.label, *two)
    tables = [
        Table("Modes compared, pair by pair", COLUMNS, on_pairs, NOTE),
        Table("Modes compared, response by response", RHO_COLUMNS, on_dialogues, RHO_NOTE),
    ]
    return [table for table in tables if table.rows]


def _row(label: str, one: tuple[str, Tally], other: tuple[str, Tally]) -> list[tuple[Cell, ...]]:
    from evalsuite.stats import mcnemar

    answers = _answers(one[0], pairs(one[1]), other[0], pairs(other[1]))
    if not answers:
        return []
    before = [float(people == first) for people, first, _ in answers]
    after = [float(people == second) for people, _, second in answers]
    gained = (math.fsum(after) - math.fsum(before)) / len(answers)
    names = f"{label}, {one[0]}", f"{label}, {other[0]}"
    return [(*names, gained, mcnemar(before, after), *kappa_gain(*zip(*answers, strict=True)), len(answers))]


def _rho_row(label: str, one: tuple[str, Tally], other: tuple[str, Tally]) -> list[tuple[Cell, ...]]:
    first, second = _by_question(one[0], dialogues(one[1])), _by_question(other[0], dialogues(other[1]))
    both = [at for at in first if at in second]
    if not both:
        return []
    names = f"{label}, {one[0]}", f"{label}, {other[0]}"
    gained = _rho_gained([first[at] for at in both], [second[at] for at in both])
    return [(*names, *gained, len(both))]


def _rho_gained(first: Sequence[Row], second: Sequence[Row]) -> Gain:
    (before, least), (after, most) = (
        RatedResponses(rows, [row.facts["judged"] for row in rows]).replicates("spearman", ASPECT_NAMES)
        for rows in (first, second)
    )
    return gain(after - before, [two - one for one, two in zip(least, most, strict=True)], len(first))


def _answers(one: str, first: Tally, other: str, second: Tally) -> list[_Answers]:
    rows, others = _by_question(one, first), _by_question(other, second)
    return [
        (row.facts["human"], _verdict(row), _verdict(others[at])) for at, row in rows.items() if at in others
    ]


def _by_question(mode: str, tally: Tally) -> Mapping[str, Row]:
    # Of several modes, each has its name at the end of its samples' ids.
    return {f"{row.sample.removesuffix(mode.replace(':', '-'))} {row.epoch}": row for row in tally}


def _verdict(row: Row) -> str:
    return row.facts["verdict"] or "none"
