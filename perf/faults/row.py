"""A row of the table of faults."""

from __future__ import annotations

from dataclasses import dataclass

HEAD = "| fault | attempts | lost | wrong | crashed |\n|---|--:|--:|--:|--:|"


@dataclass(frozen=True, slots=True)
class Row:
    """What one fault cost.

    Attributes:
        fault: what happened.
        attempts: how often it was tried.
        lost: answers or cases that somebody was told of and that are gone.
        wrong: results that differ from what they should be, and nobody says so. There must be none.
        crashed: ends other than a result or one message. There must be none.
        note: what else there is to know; shown behind the fault.
        may_lose: whether the fault itself takes answers away, as a file that was cut off does.
    """

    fault: str
    attempts: int
    lost: int = 0
    wrong: int = 0
    crashed: int = 0
    note: str = ""
    may_lose: bool = False

    @property
    def harmless(self) -> bool:
        """Whether the promises of docs/reliability.md hold."""
        return not (self.wrong or self.crashed or (self.lost and not self.may_lose))

    def __str__(self) -> str:
        note = f" ({self.note})" if self.note else ""
        return f"| {self.fault}{note} | {self.attempts} | {self.lost} | {self.wrong} | {self.crashed} |"
