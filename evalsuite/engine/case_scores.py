"""Scores as scorers give them, checked, and as a test sees them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Self

from evalsuite.core.errors import ScoringError
from evalsuite.core.types import Score

LONGEST_NOTE = 200


class NotedScore(float):
    """A score that is shown together with its scorer's note, for example in pytest's failure line."""

    note: str

    def __new__(cls, value: float, note: str) -> Self:
        """A score with one line of words, cut at 200 characters and without control characters."""
        score = super().__new__(cls, value)
        line = " ".join(note.split())
        score.note = "".join(sign for sign in line[:LONGEST_NOTE] if sign.isprintable())
        return score

    def __repr__(self) -> str:
        """As in `assert 0.0 (the answer names no source) == 1.0`."""
        return f"{float.__repr__(self)} ({self.note})"

    def __str__(self) -> str:
        """The number alone."""
        return float.__repr__(self)

    def __reduce__(self) -> tuple[type[NotedScore], tuple[float, str]]:
        """Copies keep the words."""
        return (NotedScore, (float(self), self.note))


class CaseScores(dict[str, float]):
    """The fixture `scores`; asking for a score that no scorer gives raises an error that lists those there are."""

    def __missing__(self, name: str) -> float:
        """Says what there is."""
        raise ScoringError(
            f"no scorer gives the score {name!r}; there are {', '.join(map(repr, self)) or 'none'}"
        )


def checked_scores(scores: object, scorer: str) -> Mapping[str, float | Score]:
    """Name what a scorer returned: a single number, bool or `Score` has the scorer's own name.

    Args:
        scores: what the scorer returned.
        scorer: the name of its function or class.

    Raises:
        ScoringError: it returned something else, or has no name that a score could have.
    """
    if isinstance(scores, Mapping):
        return scores
    # Numbers of numpy and the like are numbers; arrays and texts are not.
    if isinstance(scores, Score) or (hasattr(scores, "__float__") and not hasattr(scores, "__len__")):
        if not scorer.isidentifier():
            raise ScoringError(
                f"the scorer {scorer} gave {scores!r:.80}, but has no name for this score: write it with def, or "
                "return {'quality': ...}"
            )
        return {scorer: scores}  # type: ignore[dict-item] # `finite_score` reads it
    raise ScoringError(
        f"the scorer {scorer} gave {scores!r:.80}; it must give a number, a bool or named scores, for example "
        "{'quality': 0.5}"
    )


def finite_score(name: str, value: Any, scorer_name: str) -> float:
    """A score as a float; numbers of numpy and the like are accepted."""
    try:
        number = math.nan if isinstance(value, str | bytes) else float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        raise ScoringError(
            f"the score {name} is {value!r}; a score must be a finite number, and {scorer_name} gave this one"
        )
    return number
