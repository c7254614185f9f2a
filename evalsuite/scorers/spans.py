"""Scores the steps of an application, which it reports as OpenTelemetry spans."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from evalsuite.core.errors import ScoringError, SettingsError
from evalsuite.core.types import SHARE, Metric, Sample, Score, Transcript

SpanEvent = Mapping[str, Any]

FEWER = Metric(range=None, better="lower")


@dataclass(frozen=True, slots=True)
class SpanScorer:
    """Scores all spans with one name; the function `span` makes it."""

    name: str
    metric: str
    operation: str
    least: int
    most: float
    after: str
    under: str
    seconds: float

    @property
    def metrics(self) -> Mapping[str, Metric]:
        """The declarations of the score and of the spans' number, failures and seconds."""
        return {self.metric: SHARE, **{f"{self.metric}_{part}": FEWER for part in ("count", "failed", "seconds")}}

    def __call__(self, _sample: Sample, transcript: Transcript) -> Mapping[str, float | Score]:
        spans = [event for event in transcript.events if event.get("kind") == "span"]
        if not spans:
            raise ScoringError(
                f"span({self.name!r}): the transcript has no spans; use application(..., spans=True), or score traces"
            )
        by_id = {event["id"]: event for event in spans if event["id"]}
        found = [
            event
            for event in spans
            if fnmatchcase(event["name"], self.name)
            and fnmatchcase(event["operation"], self.operation)
            and (not self.under or self._has_ancestor(event, by_id))
        ]
        seconds = math.fsum(event["seconds"] for event in found)
        faults = [
            *([f"{len(found)} spans"] if not self.least <= len(found) <= self.most else []),
            *([f"{seconds:.3g} s"] if seconds > self.seconds else []),
            *([f"not after {self.after}"] if self.after and not self._are_spans_later(found, spans) else []),
        ]
        return {
            self.metric: Score(float(not faults), ", ".join(faults)),
            f"{self.metric}_count": float(len(found)),
            f"{self.metric}_failed": float(sum(event["failed"] for event in found)),
            f"{self.metric}_seconds": seconds,
        }

    def _has_ancestor(self, event: SpanEvent, by_id: Mapping[str, SpanEvent]) -> bool:
        """Tell whether a span with the name `under` contains this span, directly or indirectly."""
        # Take at most `len(by_id)` steps, because an application may send spans that are their own ancestors.
        for _ in by_id:
            parent = by_id.get(event["parent"])
            if parent is None:
                return False
            if fnmatchcase(parent["name"], self.under):
                return True
            event = parent
        return False

    def _are_spans_later(self, found: Sequence[SpanEvent], spans: Sequence[SpanEvent]) -> bool:
        """Tell whether all found spans begin after the earliest end among the spans with the name `after`."""
        earlier = (event["begin"] + event["seconds"] for event in spans if fnmatchcase(event["name"], self.after))
        # Allow a small difference, because the end is a sum of rounded times.
        end = min(earlier, default=math.inf) - 1e-6
        return all(event["begin"] >= end for event in found)


def span(
    name: str = "*",
    *,
    metric: str = "span",
    operation: str = "*",
    count: int | tuple[int, int | None] = (1, None),
    after: str = "",
    under: str = "",
    seconds: float = math.inf,
) -> SpanScorer:
    """Score `span`: 1.0 if the transcript's spans meet all conditions, otherwise 0.0.

    Further scores describe the matching spans: their number (`span_count`), how many of them failed (`span_failed`) and
    their total duration (`span_seconds`).

    Args:
        name: the spans' name; in this and all other names, `*` and `?` are wildcards.
        metric: the name of the score instead of `span`; needed if a benchmark has several such scorers.
        operation: the kind of operation that the spans report: `chat`, `execute_tool`, `invoke_agent`, `retrieval` or
            another.
        count: how many spans must match: a number, or a minimum and a maximum, which may be None.
        after: each matching span must begin after a span of this name has ended.
        under: the name of a span that must contain the matching spans, directly or indirectly.
        seconds: the longest total duration of the matching spans.

    Raises:
        SettingsError: `count` is empty or negative, or `seconds` is negative.
    """
    least, most = (count, count) if isinstance(count, int) else count
    limit = math.inf if most is None else most
    if not 0 <= least <= limit or not seconds >= 0:
        raise SettingsError(f"span({name!r}): count={count} and seconds={seconds} exclude all spans; give 0 or more")
    return SpanScorer(name, metric, operation, least, limit, after, under, seconds)
