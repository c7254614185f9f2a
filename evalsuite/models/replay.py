"""A model in a replay: it keeps its identity, so that stored answers are found, and refuses every call."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalsuite.core.errors import ReplayMiss

if TYPE_CHECKING:
    from evalsuite.core.types import Completion, Request
    from evalsuite.models.protocol import Backend


class ReplayBackend:
    """Takes the place of the backend that the run asked.

    Args:
        original: only its identity is used.
        run: the name of the run that is replayed.
    """

    metered = False
    connections: int | None = None

    def __init__(self, original: Backend, run: str) -> None:
        self.identity = original.identity
        self._run = run

    def check(self) -> None:
        """Nothing can be missing."""

    async def complete(self, request: Request) -> Completion:
        """Refuses; a request gets here only if the store has no answer."""
        last_message = request.messages[-1].content if request.messages else ""
        raise ReplayMiss(
            f"run {self._run} holds no answer of {request.model} to this request (epoch {request.epoch}, "
            f"it ends in {last_message[-80:]!r}); a replay "
            f"never asks a model: use --resume {self._run} to ask for what is missing"
        )

    async def aclose(self) -> None:
        """Does nothing; nothing was opened."""
