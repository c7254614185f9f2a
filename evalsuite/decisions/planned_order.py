"""Restores the planned order of results, whatever order they arrive in, so that fast answers are not heard first."""

from __future__ import annotations

from itertools import chain, zip_longest
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

T = TypeVar("T")
NOTHING: Any = object()
"""In place of the items of a part that is shorter than others."""


class PlannedOrder(Generic[T]):
    """Holds back each result until all that were planned before it have arrived.

    Workers finish cases as these are answered, and right answers may be faster than wrong ones: the results that
    are there first are then no random part of all, and no sequence that supposes so may hear them as they come.

    Args:
        ids: of all items, in an order that was fixed before anything was asked.
    """

    def __init__(self, ids: Sequence[str]) -> None:
        self._ids = list(dict.fromkeys(ids))
        self._waiting: dict[str, T | None] = {}
        self._next = 0

    @property
    def arrived(self) -> int:
        """How many results have arrived, whether heard or held back."""
        return sum(result is not None for result in self._waiting.values())

    @property
    def awaited(self) -> str | None:
        """The item whose result is heard next; None where all have been."""
        return self._ids[self._next] if self._next < len(self._ids) else None

    def arrive(self, item: str, result: T | None) -> Iterator[T]:
        """Yields the results that may be heard now that an item has ended; its result is None if it has none."""
        if item not in self._waiting:
            self._waiting[item] = result
        while self._next < len(self._ids) and self._ids[self._next] in self._waiting:
            ready = self._waiting[self._ids[self._next]]
            self._next += 1
            if ready is not None:
                yield ready


def spread(wanted: Sequence[T], hands: int) -> list[T]:
    """The inverse of `dealt`: orders items so that workers, each with a part, run them roughly as wanted."""
    places = dealt(range(len(wanted)), hands)
    return [item for _, item in sorted(zip(places, wanted, strict=True), key=lambda pair: pair[0])]


def dealt(ids: Sequence[T], hands: int) -> list[T]:
    """The first item of each worker's part, then the second of each, and so on: roughly as xdist returns them."""
    parts, start = [], 0
    for left in range(max(1, hands), 0, -1):
        size = (len(ids) - start) // left
        parts.append(ids[start : start + size])
        start += size
    return [
        item for item in chain.from_iterable(zip_longest(*parts, fillvalue=NOTHING)) if item is not NOTHING
    ]
