"""Rows: what tallies keep of records."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from evalsuite.core.types import Outcome, Record, Usage

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

Question = tuple[str, str]
"""A sample's id without its mode, and the mode."""


def whatever_the_mode(sample: str, mode: str) -> str:
    """A sample's id without the mode, which stands at its end where a benchmark runs in several."""
    written = mode.replace(":", "-")
    return sample.removesuffix(written).rstrip("-|") if mode and sample != written else sample


@dataclass(frozen=True, slots=True)
class Row:
    """What a tally keeps of a record: everything but the long texts."""

    case: str
    sample: str
    epoch: int
    outcome: Outcome
    tags: Mapping[str, str]
    scores: Mapping[str, float]
    facts: Mapping[str, Any] = field(default_factory=dict)
    usage: Usage = field(default_factory=Usage)
    judge_usage: Usage = field(default_factory=Usage)
    simulator_usage: Usage = field(default_factory=Usage)
    seconds: float = 0.0
    solving_seconds: float = 0.0
    excused: str | None = None
    fingerprints: Mapping[str, str] = field(default_factory=dict)

    @property
    def question(self) -> Question:
        """What was asked, and in which mode; the same in every run and epoch."""
        mode = self.tags.get("mode", "")
        return whatever_the_mode(self.sample, mode), mode

    @property
    def cluster(self) -> str:
        """What this case shares with others: the value of its tag `cluster`, or its sample."""
        return self.tags.get("cluster", self.sample)

    @property
    def model_usage(self) -> Usage:
        """What the model under test took by itself."""
        return self.usage - self.judge_usage - self.simulator_usage

    @classmethod
    def of(cls, record: Record) -> Row:
        """A record's row."""
        return cls(
            record.case,
            record.sample,
            record.epoch,
            record.outcome,
            record.tags,
            record.scores,
            record.facts,
            record.usage,
            record.judge_usage,
            record.simulator_usage,
            record.seconds,
            record.solving_seconds,
            record.excused,
            record.fingerprints,
        )

    def with_scores(self, scores: Mapping[str, float]) -> Row:
        """The same case with other scores."""
        return replace(self, scores=scores)


class PackedRows(Sequence[Row]):
    """Rows that are made when they are looked at; what a tally needs of all of them is had without making any."""

    @abstractmethod
    def each(self, attribute: str) -> Iterator[Any]:
        """One attribute of each row."""

    @abstractmethod
    def score_names(self) -> Iterator[tuple[str, ...]]:
        """The names of each row's scores."""

    @abstractmethod
    def scores_of(self, metric: str) -> Iterator[float | None]:
        """One score of each row; None where a row has none."""

    @abstractmethod
    def pick(self, places: Sequence[int]) -> PackedRows:
        """Those at these places."""

    @abstractmethod
    def samples_are_apart(self) -> bool:
        """Whether each row surely has a sample of its own."""
