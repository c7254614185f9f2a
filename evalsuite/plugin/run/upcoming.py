"""Which cases this process will run next: read off pytest's own queue, or off xdist's."""

from __future__ import annotations

import warnings
from itertools import islice
from typing import TYPE_CHECKING, Any, Protocol

from evalsuite.plugin.marks import case_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pytest

    from evalsuite.plugin.collection.cases import Case


class Upcoming(Protocol):
    """One way to know which cases come next."""

    def at(self, item: pytest.Item, nextitem: pytest.Item | None) -> None:
        """Hears, in the main thread, that an item begins."""
        ...

    def __call__(self, most: int) -> Iterator[Case]:
        """Cases among the `most` items after the current one, each given once; called from one other thread.

        What the caller does not take is given by the next call, so that a call costs no more than it gives.
        """
        ...


class SessionQueue:
    """The session's items in order, for sessions without xdist.

    Args:
        items: all of them.
    """

    def __init__(self, items: list[pytest.Item]) -> None:
        self._items, self._position, self._given = items, 0, 0
        self._positions = {item: position for position, item in enumerate(items)}

    def at(self, item: pytest.Item, nextitem: pytest.Item | None) -> None:  # noqa: ARG002 - part of the protocol
        """The position moves."""
        self._position = self._positions.get(item, self._position)

    def __call__(self, most: int) -> Iterator[Case]:
        """The next items of the session."""
        self._given = max(self._given, self._position + 1)
        while self._given < min(self._position + 1 + most, len(self._items)):
            item = self._items[self._given]
            self._given += 1
            yield from _cases((item,))


class WorkerQueue:
    """The items assigned to an xdist worker that it has not begun.

    Args:
        items: all items of the session, to which the queue holds indexes.
        torun: xdist's own queue.
    """

    def __init__(self, items: list[pytest.Item], torun: Any) -> None:
        self._items, self._torun = items, torun
        self._next: tuple[pytest.Item, ...] = ()
        # The index given last, and where it stood in the queue at the time.
        self._last, self._place = -1, -1

    def at(self, item: pytest.Item, nextitem: pytest.Item | None) -> None:  # noqa: ARG002 - part of the protocol
        """The next item has left the queue already."""
        self._next = () if nextitem is None else (nextitem,)

    def __call__(self, most: int) -> Iterator[Case]:
        """The next item, then those in the queue."""
        coming, self._next = self._next, ()
        yield from _cases(coming)
        while (index := self._take(most)) is not None:
            yield from _cases((self._items[index],))

    def _take(self, most: int) -> int | None:
        """The index after the one given last, if it is among the first `most` of the queue."""
        with self._torun.lock() as queue:
            place = self._place_of_last(queue) + 1
            # Besides indexes, the queue may hold a marker of its end.
            if place >= min(most, len(queue)) or not isinstance(queue[place], int):
                return None
            self._last, self._place = queue[place], place
            return self._last

    def _place_of_last(self, queue: Sequence[Any]) -> int:
        """Where the index given last stands now; -1 when it has left the queue.

        Items leave at the front, one for each that begins, so it stands where it stood or a little before.
        """
        for place in range(min(self._place, len(queue) - 1), -1, -1):
            if queue[place] == self._last:
                return place
        return -1


class NextItem:
    """The one item after the current one, where the queue cannot be seen."""

    def __init__(self) -> None:
        self._next: tuple[pytest.Item, ...] = ()

    def at(self, item: pytest.Item, nextitem: pytest.Item | None) -> None:  # noqa: ARG002 - part of the protocol
        """Looks ahead by one."""
        self._next = () if nextitem is None else (nextitem,)

    def __call__(self, most: int) -> Iterator[Case]:
        """One item at most."""
        yield from _cases(islice(self._next, most))


def _cases(items: Any) -> Iterator[Case]:
    for item in items:
        case = case_of(item)
        if case is not None and case.bound.solver is not None:
            yield case


def find_queue(session: pytest.Session) -> Upcoming:
    """The queue of this process."""
    if not hasattr(session.config, "workerinput"):
        return SessionQueue(session.items)
    for plugin in session.config.pluginmanager.get_plugins():
        torun = getattr(plugin, "torun", None)
        if hasattr(torun, "lock"):
            return WorkerQueue(session.items, torun)
    warnings.warn(
        "evalsuite cannot see this version of pytest-xdist's queue of tests and looks ahead by one: "
        "raise -n to have more calls in flight, and tell evalsuite's maintainers",
        stacklevel=1,
    )
    return NextItem()
