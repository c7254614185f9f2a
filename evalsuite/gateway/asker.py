"""What answers requests, seen from whoever asks: the gateway itself, or the wire to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from evalsuite.gateway.effects import Keeper

if TYPE_CHECKING:
    from evalsuite.core.types import Completion, Request


class Asker(Protocol):
    """Answers requests."""

    async def ask(self, request: Request) -> Completion:
        """Answers a request.

        Raises:
            ModelError: it failed for good.
        """
        ...


class CaseAsker(Asker, Keeper, Protocol):
    """What serves a case: its model calls and its tool calls."""
