"""All batches of a session that are not finished, and whether to end the session without waiting for them."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable


class Sender(Protocol):
    """A backend that sends batches."""

    @property
    def still(self) -> bool:
        """Whether all requests are in batches that are not finished."""

    def waits(self, now: float) -> list[str]:
        """Describe each unfinished batch in a few words."""

    def let_go(self, reason: str) -> None:
        """End all waiting; the batches go on."""


class PendingBatches:
    """The unfinished batches of all backends; if detached, ends the session instead of waiting for them."""

    def __init__(
        self,
        *,
        detach: bool = False,
        tell: Callable[[str], None] = lambda _: None,
        on_detached: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.tell, self._detach, self._on_detached = tell, detach, on_detached
        self._senders: list[Sender] = []
        self.left = ""

    def add(self, sender: Sender) -> None:
        """Add a backend."""
        self._senders.append(sender)

    def waits(self) -> list[str]:
        """Describe each unfinished batch in a few words."""
        now = time.time()
        return [words for sender in list(self._senders) for words in sender.waits(now)]

    def detach_if_idle(self) -> None:
        """End the session with `--detach` once everything is sent; called after each look at a batch."""
        if self._detach and not self.left and all(sender.still for sender in self._senders):
            waits = self.waits()
            self.leave(f"not finished yet, {'; '.join(waits)}" if waits else "no batch is under way")

    def leave(self, reason: str) -> None:
        """End all waiting, and reports why."""
        if not self.left:
            self.left = reason
            self._on_detached(reason)
            self.release()

    def release(self) -> None:
        """Release all waiting callers without an answer."""
        self.left = self.left or "the session has ended"
        for sender in self._senders:
            sender.let_go(self.left)
