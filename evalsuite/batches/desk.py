"""All batches of a session: what is waited for and since when, and whether to go without waiting."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable


class Sender(Protocol):
    """A backend that sends batches."""

    @property
    def still(self) -> bool:
        """Whether all that was asked is in batches that are not finished."""
        ...

    def waits(self, now: float) -> list[str]:
        """A few words on each batch that is waited for."""
        ...

    def let_go(self, reason: str) -> None:
        """Ends all waiting; the batches go on."""
        ...


class BatchDesk:
    """Knows what is waited for, and ends the session where it is not to wait.

    Args:
        detach: whether the session ends once everything is sent.
        tell: shows a line to the user.
        on_detached: told once, with the reason, before those who wait are let go.
    """

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
        """Takes note of a backend."""
        self._senders.append(sender)

    def waits(self) -> list[str]:
        """A few words on each batch that is waited for."""
        now = time.time()
        return [words for sender in list(self._senders) for words in sender.waits(now)]

    def looked(self) -> None:
        """A backend has sent, or looked at, a batch: with `--detach`, the session may be over."""
        if self._detach and not self.left and all(sender.still for sender in self._senders):
            waits = self.waits()
            self.leave(f"not finished yet, {'; '.join(waits)}" if waits else "no batch is under way")

    def leave(self, reason: str) -> None:
        """Ends all waiting."""
        if not self.left:
            self.left = reason
            self._on_detached(reason)
            self.release()

    def release(self) -> None:
        """Lets those go who wait; what they wait for comes without them."""
        self.left = self.left or "the session has ended"
        for sender in self._senders:
            sender.let_go(self.left)
