"""Pair the questions that two runs share, by benchmark, sample and mode; epochs are averaged.

Only the question matters; file names, folders, test functions and the number of epochs do not.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from evalsuite.decisions.measured import score_of
from evalsuite.results.tally import Question, Row, Tally

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

SAME_QUESTION = ("input", "target")  # fingerprints that must be equal for two cases to be the same question

TOLD_APART = ("prompt", "params", "scorers", "judge", "user", "programs")
"""Fingerprints whose changes are reported as differences besides the model."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A question that was scored in both runs."""

    row: Row  # The question's first case in this run.
    before: float  # The baseline's score, as a mean over its epochs.
    after: float  # This run's score, the mean over its epochs.


def by_question(cases: Tally) -> dict[Question, list[Row]]:
    """Group a benchmark's cases by question, in order of each question's first case."""
    questions: dict[Question, list[Row]] = {}
    for row in cases:
        questions.setdefault(row.question, []).append(row)
    return questions


@dataclass(frozen=True, slots=True)
class Common:
    """The questions of one benchmark in two runs."""

    before: Mapping[Question, list[Row]]  # The baseline's cases by question.
    after: Mapping[Question, list[Row]]  # This run's cases by question.
    shared: tuple[Question, ...] = ()  # Questions that are the same in both runs, in this run's order.
    replaced: tuple[Question, ...] = ()  # Questions with the same name in both runs but different content.
    # Names of the other fingerprints that differ, with the number of questions in which they do.
    changed: Mapping[str, int] = field(default_factory=dict)

    def pairs(self, metric: str) -> list[Pair]:
        """List the shared questions that have the metric in both runs."""
        found = []
        for question in self.shared:
            before, after = _mean(self.before[question], metric), _mean(self.after[question], metric)
            if before is not None and after is not None:
                found.append(Pair(self.after[question][0], before, after))
        return found

    def count_unscored(self, metric: str) -> tuple[int, int]:
        """Count the shared questions that lack a score because of errors, in the baseline and in this run."""
        before, after = (
            sum(
                _mean(run[question], metric) is None and any(row.outcome == "error" for row in run[question])
                for question in self.shared
            )
            for run in (self.before, self.after)
        )
        return before, after

    def count_lost(self, metric: str) -> tuple[int, int]:
        """Count the shared questions that only the baseline scored, and all those that the baseline scored."""
        scored = [question for question in self.shared if _mean(self.before[question], metric) is not None]
        return sum(_mean(self.after[question], metric) is None for question in scored), len(scored)

    def every_score(self, metric: str) -> list[float]:
        """List all scores of the shared questions in both runs."""
        return [
            score
            for question in self.shared
            for row in (*self.before[question], *self.after[question])
            if (score := score_of(row, metric)) is not None
        ]

    def tallies(self, without: frozenset[str] = frozenset()) -> tuple[Tally, Tally]:
        """Select both runs' cases of the shared questions, except those in the given clusters."""
        kept = [question for question in self.shared if self.after[question][0].cluster not in without]
        return (
            Tally.of(row for question in kept for row in self.before[question]),
            Tally.of(row for question in kept for row in self.after[question]),
        )

    def clusters(self) -> list[str]:
        """List the clusters of the shared questions, in order."""
        return list(dict.fromkeys(self.after[question][0].cluster for question in self.shared))

    def one_sided(self) -> tuple[list[str], list[str]]:
        """List the cases of questions that only the baseline has, then of those that only this run has."""
        return (
            sorted(rows[0].case for question, rows in self.before.items() if question not in self.after),
            sorted(rows[0].case for question, rows in self.after.items() if question not in self.before),
        )


def common_questions(before: Tally, after: Tally) -> Common:
    """Pair the cases of one benchmark in two runs."""
    old, new = by_question(before), by_question(after)
    shared, replaced = [], []
    changed = Counter[str]()
    for question, rows in new.items():
        if question not in old:
            continue
        first, other = rows[0].fingerprints, old[question][0].fingerprints
        if not same_question(first, other):
            replaced.append(question)
            continue
        shared.append(question)
        changed.update(_differ(first, other, TOLD_APART))
    return Common(old, new, tuple(shared), tuple(replaced), changed)


def same_question(first: Mapping[str, str], other: Mapping[str, str]) -> bool:
    """Tell from their fingerprints whether two cases of the same name are the same question."""
    return not _differ(first, other, SAME_QUESTION)


def _differ(first: Mapping[str, str], other: Mapping[str, str], names: tuple[str, ...]) -> list[str]:
    """List the fingerprints that differ. One that only one side has does not count, because older runs lack some.

    The judge is an exception: a run without the judge's fingerprint had no judge.
    """
    both = bool(first) and bool(other)
    return [
        name
        for name in names
        if first.get(name) != other.get(name) and ((name in first and name in other) or (name == "judge" and both))
    ]


def _mean(rows: Sequence[Row], metric: str) -> float | None:
    scores = [score for row in rows if (score := score_of(row, metric)) is not None]
    return math.fsum(scores) / len(scores) if scores else None
