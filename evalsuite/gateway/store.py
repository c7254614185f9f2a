"""What a gateway needs of whatever keeps its answers: a run's journal, or the store of a service."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from evalsuite.core.types import Completion, Request, Usage
    from evalsuite.journal.tool_calls import ToolCalls


class Store(Protocol):
    """See the module. `put` and `sent` return when what they keep outlives this process."""

    @property
    def read_only(self) -> bool:
        """Whether nothing can be kept, as in a replay."""
        ...

    @property
    def tool_calls(self) -> ToolCalls:
        """What cases called besides models.

        Raises:
            RunError: no case runs here.
        """
        ...

    def get(self, key: str) -> Completion | None:
        """The completion kept under a key, if there is one."""
        ...

    async def put(self, key: str, request: Request, completion: Completion) -> Completion:
        """Keeps a completion, and gives the one that is kept under this key now, as it will be read.

        Raises:
            RunError: it cannot be written.
        """
        ...

    def sent(self, key: str, reserved: float = 0.0) -> int:
        """Notes that a call is made; returns the attempt's number."""
        ...

    def ended(
        self,
        attempt: int,
        state: Literal["answered", "failed", "refused"],
        usage: Usage | None = None,
        words: str = "",
    ) -> None:
        """Notes how a call ended."""
        ...

    def close(self) -> None:
        """Closes it; what was put is in it."""
        ...
