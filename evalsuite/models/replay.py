"""A model that only an earlier run's store can answer for: it keeps the identity and refuses every call."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalsuite.errors import ReplayMiss

if TYPE_CHECKING:
    from evalsuite.models.protocol import Backend
    from evalsuite.types import Completion, Request


class ReplayBackend:
    """Stands where another backend stood when the run was made.

    Args:
        original: asked for nothing but its identity.
        run: the name of the run that is replayed.
    """

    metered = False
    connections: int | None = None

    def __init__(self, original: Backend, run: str) -> None:
        self.identity = original.identity
        self._run = run

    def check(self) -> None:
        """Always well."""

    async def complete(self, request: Request) -> Completion:
        """Refuses: what the store holds never comes here."""
        asked = request.messages[-1].content if request.messages else ""
        raise ReplayMiss(
            f"run {self._run} holds no answer of {request.model} to this request (epoch {request.epoch}, "
            f"it ends in {asked[-80:]!r}); a replay "
            f"never asks a model: use --resume {self._run} to ask for what is missing"
        )

    async def aclose(self) -> None:
        """Nothing was opened."""
