"""Scores of an application's steps: how many, in which order, within what, and how long."""

from __future__ import annotations

from typing import Any

import pytest

from evalsuite.core.errors import ScoringError, SettingsError
from evalsuite.core.types import Sample, Score, Transcript
from evalsuite.scorers import span

SAMPLE = Sample("a", "?")


def event(name: str, begin: float, seconds: float = 1.0, **more: Any) -> dict[str, Any]:
    usual = {"kind": "span", "operation": "", "id": name, "parent": "", "failed": False}
    return {**usual, "name": name, "begin": begin, "seconds": seconds, **more}


SPANS = (
    event("guide", 0.0, 9.0, operation="invoke_agent"),
    event("retrieve docs", 0.1, 1.0, parent="guide", operation="retrieval"),
    event("critic", 2.0, 3.0, parent="guide", operation="invoke_agent"),
    event("retrieve more", 2.5, 0.5, parent="critic", operation="retrieval", failed=True),
    event("chat", 6.0, 2.0, parent="guide", operation="chat"),
)
TRANSCRIPT = Transcript("", events=({"kind": "turn"}, *SPANS))


@pytest.mark.parametrize(
    ("conditions", "note"),
    [
        ({"name": "retrieve*"}, ""),
        ({"name": "retrieve*", "count": 2, "seconds": 1.5}, ""),
        ({"name": "retrieve*", "count": 1}, "2 spans"),
        ({"name": "retrieve*", "count": (3, None)}, "2 spans"),
        ({"name": "retrieve*", "count": 1, "under": "critic"}, ""),
        ({"name": "retrieve*", "count": 2, "under": "guide"}, ""),
        ({"operation": "retrieval", "seconds": 1.0}, "1.5 s"),
        ({"operation": "chat", "after": "retrieve*"}, ""),
        ({"name": "retrieve*", "after": "chat"}, "not after chat"),
        ({"name": "chat", "after": "absent"}, "not after absent"),
        ({"name": "shell", "count": (0, 0)}, ""),
        ({"name": "shell", "under": "guide"}, "0 spans"),
    ],
)
def test_conditions_over_spans_hold_or_say_why_not(conditions: dict[str, Any], note: str) -> None:
    score = span(**conditions)(SAMPLE, TRANSCRIPT)["span"]
    assert score == Score(float(not note), note)


def test_counts_failures_and_durations_are_scores_of_their_own() -> None:
    scorer = span("retrieve*", metric="search")
    scores = scorer(SAMPLE, TRANSCRIPT)
    assert scores == {"search": Score(1.0), "search_count": 2.0, "search_failed": 1.0, "search_seconds": 1.5}
    assert scorer.metrics.keys() == scores.keys()


def test_spans_that_are_their_own_ancestors_are_read() -> None:
    ring = Transcript("", events=(event("a", 0, parent="b"), event("b", 0, parent="a")))
    assert span("a", under="c", count=0)(SAMPLE, ring)["span"] == Score(1.0)


def test_a_transcript_without_spans_is_an_error() -> None:
    with pytest.raises(ScoringError, match="the transcript has no spans"):
        span("x")(SAMPLE, Transcript("", events=({"kind": "turn"},)))


@pytest.mark.parametrize("wrong", [{"count": -1}, {"count": (2, 1)}, {"seconds": -1.0}, {"seconds": float("nan")}])
def test_conditions_that_nothing_can_meet_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(SettingsError, match="exclude all spans"):
        span("x", **wrong)
