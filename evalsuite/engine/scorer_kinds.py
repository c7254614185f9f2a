"""How each scorer of a benchmark is run, worked out once per benchmark: to ask a protocol takes as long as a scorer."""

from __future__ import annotations

import inspect
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from evalsuite.core.errors import ScoringError
from evalsuite.core.protocols import JudgedScorer, ModelScorer
from evalsuite.core.threads import is_async

if TYPE_CHECKING:
    from collections.abc import Callable

    from evalsuite.engine.bound import Bound


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


def name_of(scorer: object) -> str:
    """A scorer's name for a message: the function's, or the class's."""
    inner = getattr(scorer, "func", scorer)
    return str(getattr(inner, "__name__", type(inner).__name__))


def own_judge(scorer: object) -> str:
    """The model that a scorer names as its judge; empty where it asks the run's."""
    named = getattr(scorer, "models", None) or getattr(scorer, "model", None)
    first = named[0] if isinstance(named, tuple) else named
    return first if isinstance(first, str) else ""


def asks_the_judge(scorer: object) -> bool:
    """Whether a scorer asks the run's judge."""
    return isinstance(scorer, JudgedScorer) and not own_judge(scorer)


def check_signature(scorer: Callable[..., object]) -> None:
    """Sees that a scorer can be called with a sample and a transcript, as far as Python can tell.

    Raises:
        ScoringError: it takes something else.
    """
    try:
        signature = inspect.signature(scorer)
    except (TypeError, ValueError):
        return
    try:
        signature.bind(None, None)
    except TypeError as error:
        raise ScoringError(
            f"a scorer takes (sample, transcript); {name_of(scorer)} takes {signature}"
        ) from error
