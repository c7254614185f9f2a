"""Scores from what an agent left behind: the state of its world at the end of an episode."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from evalsuite.core.errors import ScoringError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from evalsuite.core.types import Sample, Transcript


@dataclass(frozen=True, slots=True)
class ExpectState:
    """Scores the state in which an episode left its world; made by `expect_state`."""

    expected: Mapping[str, Any] | Callable[..., bool] | None = None

    def __call__(self, sample: Sample, transcript: Transcript) -> Mapping[str, float]:
        """Whether the world is as it should be.

        Raises:
            ScoringError: the transcript holds no state, or the sample expects none.
        """
        if "state" not in transcript.facts:
            raise ScoringError(
                "the world has no method `state()`, so nothing is known of it after the episode"
            )
        state = transcript.facts["state"]
        if callable(self.expected):
            arguments = (state, sample) if len(inspect.signature(self.expected).parameters) > 1 else (state,)
            return {"state": float(bool(self.expected(*arguments)))}
        expected = sample.metadata.get("state") if self.expected is None else self.expected
        if expected is None:
            raise ScoringError(f"sample {sample.id} has no metadata `state` that says what is expected")
        return {"state": float(_holds(expected, state))}


def _holds(expected: Any, state: Any) -> bool:
    if isinstance(expected, dict) and isinstance(state, dict):
        return all(name in state and _holds(value, state[name]) for name, value in expected.items())
    return bool(expected == state)


def expect_state(expected: Mapping[str, Any] | Callable[..., bool] | None = None) -> ExpectState:
    """A scorer that gives `state`: 1.0 where the world is as expected at the end of the episode, else 0.0.

    Args:
        expected: what must hold. Of a mapping, the keys that it names are compared, at every depth; a function is
            called with the state, and with the sample if it takes two arguments; None takes `state` of the sample's
            metadata.
    """
    return ExpectState(expected)
