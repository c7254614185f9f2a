"""Corrected estimates: part of people's labels are hidden, and recovered through the judge."""

from __future__ import annotations

import math
from hashlib import sha256
from typing import TYPE_CHECKING

from evalsuite.benchmarks.chat_eval.human_scores import dialogues, pairs
from evalsuite.benchmarks.chat_eval.ratings import HUMAN_ASPECTS
from evalsuite.output.reports.judges import corrected_mean
from evalsuite.results.judge_labels import FEWEST

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evalsuite.output.reports.judges import Corrected
    from evalsuite.results.tally import Row, Tally

WORTH = {"first": 1.0, "tie": 0.5, "second": 0.0}


def corrected(judges: Sequence[tuple[str, Tally]]) -> list[tuple[str, Corrected]]:
    """For each judge the share of comparisons that the first system wins, and each aspect's mean."""
    estimates = []
    for name, tally in judges:
        compared = pairs(tally).where(lambda row: row.facts["verdict"] is not None)
        wins = [(_item(row), WORTH[row.facts["human"]], WORTH[row.facts["verdict"]]) for row in compared]
        estimates.append((name, _hidden("wins of the first system", wins, (0.0, 1.0))))
        for aspect in HUMAN_ASPECTS:
            rated = [
                (_item(row), row.facts["human"][aspect.name], row.facts["judged"][aspect.name])
                for row in dialogues(tally)
            ]
            estimates.append((name, _hidden(aspect.name, rated, (aspect.low, aspect.high))))
    return [(name, one) for name, one in estimates if one is not None]


def _item(row: Row) -> str:
    """The sample, whatever the mode: the same labels are kept for all judges."""
    return row.sample.removesuffix(f"-{row.tags['mode'].replace(':', '-')}")


def _hidden(
    question: str, scores: Sequence[tuple[str, float, float]], bounds: tuple[float, float]
) -> Corrected | None:
    """Keeps a fifth of the labels, and no fewer than the method needs: the same ones in every run."""
    if not scores:
        return None
    kept = max(FEWEST, len(scores) // 5)
    order = sorted(scores, key=lambda one: sha256(one[0].encode()).digest())
    shown = [(people if at < kept else None, judge) for at, (_, people, judge) in enumerate(order)]
    truth = math.fsum(people for _, people, _ in scores) / len(scores)
    return corrected_mean(question, shown, truth, bounds)
