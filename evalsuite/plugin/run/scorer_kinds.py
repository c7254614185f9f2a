"""How each scorer of a benchmark is run, worked out once per benchmark: to ask a protocol takes as long as a scorer."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from evalsuite.protocols import JudgedScorer, ModelScorer
from evalsuite.threads import is_async

if TYPE_CHECKING:
    from evalsuite.plugin.collection.bound import Bound


class ScorerKinds(NamedTuple):
    """The scorers of a benchmark by how they are run; one object may be of several kinds.

    Attributes:
        rules: plain functions, run in the test's own thread.
        asynchronous: async functions.
        judged: ask the judge.
        asking: ask a model of their own choice.
    """

    rules: tuple[Any, ...]
    asynchronous: tuple[Any, ...]
    judged: tuple[JudgedScorer, ...]
    asking: tuple[ModelScorer, ...]


@lru_cache(maxsize=64)
def kinds_of(bound: Bound) -> ScorerKinds:
    """The scorers of a benchmark by how they are run."""
    scorers: Any = bound.scorers
    return ScorerKinds(
        tuple(scorer for scorer in scorers if callable(scorer) and not is_async(scorer)),
        tuple(scorer for scorer in scorers if is_async(scorer)),
        tuple(scorer for scorer in scorers if isinstance(scorer, JudgedScorer)),
        tuple(scorer for scorer in scorers if isinstance(scorer, ModelScorer)),
    )
