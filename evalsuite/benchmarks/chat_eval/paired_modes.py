"""Does the panel beat the single judge? Paired tests between the modes of one run, on the same comparisons."""

from __future__ import annotations

import math
from itertools import combinations
from typing import TYPE_CHECKING

from evalsuite.benchmarks.chat_eval.human_scores import pairs
from evalsuite.reporting.section import Column, Table
from evalsuite.results.estimate import Estimate

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from evalsuite.reporting.section import Cell
    from evalsuite.results.tally import Row, RunView, Tally

_Answers = tuple[str, str, str]
"""Of one comparison what people say, what one mode says, and what the other says."""

COLUMNS = (
    Column("Mode"),
    Column("Other mode"),
    Column("Accuracy gained", "percent"),
    Column("p", "number", 3),
    Column("Kappa gained", "number", 2),
    Column("Pairs", "count"),
)
NOTE = (
    "Of the other mode over the first, on the comparisons that both judged. p is McNemar's exact test of accuracy; "
    "the interval of kappa's gain is the jackknife's, by question."
)


def paired_modes(views: Sequence[RunView]) -> Table | None:
    """One row for each two modes of a run; None where no run has two."""
    rows: list[tuple[Cell, ...]] = []
    for view in views:
        modes = {name: pairs(tally) for name, tally in view.tally.groups("mode").items()}
        judged = {name: tally for name, tally in modes.items() if len(tally)}
        rows += [_row(view.label, *two) for two in combinations(judged.items(), 2)]
    return Table("Modes compared, pair by pair", COLUMNS, rows, NOTE) if rows else None


def _row(label: str, one: tuple[str, Tally], other: tuple[str, Tally]) -> tuple[Cell, ...]:
    from evalsuite.stats import mcnemar

    answers = _answers(*one, *other)
    before = [float(people == first) for people, first, _ in answers]
    after = [float(people == second) for people, _, second in answers]
    names = f"{label}, {one[0]}", f"{label}, {other[0]}"
    if not answers:
        return (*names, None, None, None, 0)
    gained = (math.fsum(after) - math.fsum(before)) / len(answers)
    return (*names, gained, mcnemar(before, after), _kappa_gained(answers), len(answers))


def _answers(one: str, first: Tally, other: str, second: Tally) -> list[_Answers]:
    said, then = _by_question(one, first), _by_question(other, second)
    return [(said[at].facts["human"], _verdict(said[at]), _verdict(then[at])) for at in said if at in then]


def _by_question(mode: str, tally: Tally) -> Mapping[str, Row]:
    # Of several modes, each has its name at the end of its samples' ids.
    return {f"{row.sample.removesuffix(mode.replace(':', '-'))} {row.epoch}": row for row in tally}


def _verdict(row: Row) -> str:
    return row.facts["verdict"] or "none"


def _kappa_gained(answers: Sequence[_Answers]) -> Estimate | None:
    from evalsuite.stats.jackknife import jackknife_interval

    value = _gain(list(answers))
    if math.isnan(value):
        return None
    interval = jackknife_interval([[one] for one in answers], _gain, bounds=(-2.0, 2.0))
    if math.isnan(interval.low):
        return Estimate(value, n=len(answers))
    return Estimate(value, interval.low, interval.high, len(answers))


def _gain(answers: list[_Answers]) -> float:
    from evalsuite.stats import cohen_kappa

    people, first, second = zip(*answers, strict=True)
    return cohen_kappa(people, second) - cohen_kappa(people, first)
