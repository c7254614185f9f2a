"""Pairs the questions that two runs have in common by benchmark, sample and mode; epochs are averaged.

Only what was asked matters, not file names, folders, test functions or the number of epochs.
"""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from evalsuite.decisions.measured import PASS_RATE, PASSED
from evalsuite.results.rows import Question, Row, whatever_the_mode
from evalsuite.results.tally import Tally

SAME_QUESTION = ("input", "target")
"""Fingerprints that must be equal for two cases to be the same question."""

TOLD_APART = ("prompt", "params", "scorers", "judge", "user", "programs")
"""Fingerprints whose change is told: what differs besides the model."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A question that was scored in both runs.

    Attributes:
        case: id of its first epoch in this run.
        cluster: what it shares with other questions.
        before: the baseline's score, the mean over its epochs.
        after: this run's, likewise.
    """

    case: str
    cluster: str
    before: float
    after: float


class ScoredPairs(Sequence[Pair]):
    """The pairs of one metric, as numbers; a `Pair` is made when it is looked at.

    Attributes:
        before: the baseline's scores.
        after: this run's.
    """

    def __init__(self, cases: Tally, places: array[int], before: array[float], after: array[float]) -> None:
        self._cases, self._places = cases, places
        self.before, self.after = before, after

    def __len__(self) -> int:
        """How many there are."""
        return len(self._places)

    def __getitem__(self, at: Any) -> Any:
        """One pair, or those of a slice."""
        if isinstance(at, slice):
            return self.pick(range(len(self))[at])
        row = self.row(at)
        return Pair(row.case, row.cluster, self.before[at], self.after[at])

    def row(self, at: int) -> Row:
        """The question's first case in this run."""
        return self._cases.rows[self._places[at]]

    def clusters(self) -> list[str]:
        """The cluster of each."""
        return [self.row(at).cluster for at in range(len(self))]

    def pick(self, places: Sequence[int]) -> ScoredPairs:
        """Those at these places."""
        return ScoredPairs(
            self._cases,
            array("I", (self._places[at] for at in places)),
            array("d", (self.before[at] for at in places)),
            array("d", (self.after[at] for at in places)),
        )


Value = TypeVar("Value")


class ByQuestion(Mapping[Question, list[Row]]):
    """A benchmark's cases by what was asked; rows are made when they are looked at."""

    def __init__(self, cases: Tally) -> None:
        self.cases = cases
        self._first = dict[Question, int]()
        self._repeated = dict[Question, list[int]]()
        both = zip(cases.each("sample"), cases.each("tags"), strict=True)
        for place, (sample, tags) in enumerate(both):
            mode = tags.get("mode", "")
            question = whatever_the_mode(sample, mode), mode
            if self._first.setdefault(question, place) != place:
                self._repeated.setdefault(question, []).append(place)

    def __getitem__(self, question: Question) -> list[Row]:
        """A question's cases."""
        places = (self._first[question], *self._repeated.get(question, ()))
        return [self.cases.rows[place] for place in places]

    def __iter__(self) -> Iterator[Question]:
        """The questions, in the order of their first cases."""
        return iter(self._first)

    def __len__(self) -> int:
        """How many there are."""
        return len(self._first)

    def __contains__(self, question: object) -> bool:
        """Whether it was asked."""
        return question in self._first

    def first_place(self, question: Question) -> int:
        """Where its first case stands."""
        return self._first[question]

    def of_each(self, question: Question, values: Sequence[Value]) -> list[Value]:
        """A question's part of values that were read off all cases."""
        first, more = self._first[question], self._repeated.get(question, ())
        return [values[first], *(values[place] for place in more)]

    def scores(self, metric: str) -> list[float | None]:
        """Each case's score, as `measured.score_of` has it."""
        outcomes = self.cases.each("outcome")
        if metric == PASS_RATE:
            return [PASSED.get(outcome) for outcome in outcomes]
        both = zip(outcomes, self.cases.scores_of(metric), strict=True)
        return [None if outcome == "error" else score for outcome, score in both]


@dataclass(frozen=True, slots=True)
class Common:
    """The questions of a benchmark in two runs.

    Attributes:
        before: the baseline's cases by question.
        after: this run's.
        shared: questions of both that are the same, in this run's order.
        replaced: questions of both under one name that are not the same.
        changed: what else differs, with the number of questions in which it does.
    """

    before: ByQuestion
    after: ByQuestion
    shared: tuple[Question, ...] = ()
    replaced: tuple[Question, ...] = ()
    changed: Mapping[str, int] = field(default_factory=dict)
    _pairs: dict[str, ScoredPairs] = field(default_factory=dict, compare=False)

    def pairs(self, metric: str) -> ScoredPairs:
        """The shared questions for which both runs have the metric."""
        if metric not in self._pairs:
            self._pairs[metric] = self._paired(metric)
        return self._pairs[metric]

    def _paired(self, metric: str) -> ScoredPairs:
        places, old, new = array("I"), array("d"), array("d")
        earlier, later = self.before.scores(metric), self.after.scores(metric)
        for question in self.shared:
            before = _mean(self.before.of_each(question, earlier))
            after = _mean(self.after.of_each(question, later))
            if before is not None and after is not None:
                places.append(self.after.first_place(question))
                old.append(before)
                new.append(after)
        return ScoredPairs(self.after.cases, places, old, new)

    def unscored(self, metric: str) -> tuple[int, int]:
        """How many shared questions lack a score because of errors, in the baseline and in this run."""
        return self._lost(self.before, metric), self._lost(self.after, metric)

    def _lost(self, run: ByQuestion, metric: str) -> int:
        scores, outcomes = run.scores(metric), list(run.cases.each("outcome"))
        if "error" not in outcomes:
            return 0
        return sum(
            _mean(run.of_each(question, scores)) is None and "error" in run.of_each(question, outcomes)
            for question in self.shared
        )

    def every_score(self, metric: str) -> array[float]:
        """All scores of the shared questions, of both runs."""
        sides = [(run, run.scores(metric)) for run in (self.before, self.after)]
        return array(
            "d",
            (
                score
                for question in self.shared
                for run, scores in sides
                for score in run.of_each(question, scores)
                if score is not None
            ),
        )

    def tallies(self, without: frozenset[str] = frozenset()) -> tuple[Tally, Tally]:
        """Both runs' cases of the shared questions, except those of some clusters."""
        kept = [question for question in self.shared if self.after[question][0].cluster not in without]
        return (
            Tally.of(row for question in kept for row in self.before[question]),
            Tally.of(row for question in kept for row in self.after[question]),
        )

    def clusters(self) -> list[str]:
        """The clusters of the shared questions, in order."""
        return list(dict.fromkeys(self.after[question][0].cluster for question in self.shared))

    def one_sided(self) -> tuple[list[str], list[str]]:
        """Cases of questions that only the baseline has, and of those that only this run has."""
        return (
            sorted(rows[0].case for question, rows in self.before.items() if question not in self.after),
            sorted(rows[0].case for question, rows in self.after.items() if question not in self.before),
        )


def common_questions(before: Tally, after: Tally) -> Common:
    """Pairs the cases of one benchmark in two runs."""
    old, new = ByQuestion(before), ByQuestion(after)
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
    """Whether two cases with the same name are the same question, by their fingerprints."""
    return not _differ(first, other, SAME_QUESTION)


def _differ(first: Mapping[str, str], other: Mapping[str, str], names: tuple[str, ...]) -> list[str]:
    """The names of fingerprints that differ; one that only one side has does not count, since older runs lack some.

    The exception is the judge: a run without that fingerprint had no judge.
    """
    both = bool(first) and bool(other)
    return [
        name
        for name in names
        if first.get(name) != other.get(name)
        and ((name in first and name in other) or (name == "judge" and both))
    ]


def _mean(scores: list[float | None]) -> float | None:
    present = [score for score in scores if score is not None]
    return math.fsum(present) / len(present) if present else None
