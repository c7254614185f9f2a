"""Which cases this process will run next: read off pytest's own queue, or off xdist's."""

from __future__ import annotations

import warnings
from itertools import islice
from typing import TYPE_CHECKING, Any, Protocol

from evalsuite.plugin.marks import case_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pytest

    from evalsuite.plugin.collection.cases import Case


class Upcoming(Protocol):
    """One way of knowing what comes."""

    def at(self, item: pytest.Item, nextitem: pytest.Item | None) -> None:
        """Hears, in the main thread, that an item begins."""
        ...

    def __call__(self, most: int) -> Iterator[Case]:
        """Cases after the present item, looking at `most` items; called in any thread."""
        ...


class SessionQueue:
    """Without xdist: the session's items, in order.

    Args:
        items: all of them.
    """

    def __init__(self, items: list[pytest.Item]) -> None:
        self._items, self._position = items, 0
        self._positions = {item: position for position, item in enumerate(items)}

    def at(self, item: pytest.Item, nextitem: pytest.Item | None) -> None:  # noqa: ARG002 - part of the protocol
        """The position moves."""
        self._position = self._positions.get(item, self._position)

    def __call__(self, most: int) -> Iterator[Case]:
        """The next items of the session."""
        yield from _cases(islice(self._items, self._position + 1, self._position + 1 + most))


class WorkerQueue:
    """On an xdist worker: the items assigned to it that it has not begun.

    Args:
        items: all items of the session, to which the queue holds indexes.
        torun: xdist's own queue.
    """

    def __init__(self, items: list[pytest.Item], torun: Any) -> None:
        self._items, self._torun = items, torun
        self._next: tuple[pytest.Item, ...] = ()

    def at(self, item: pytest.Item, nextitem: pytest.Item | None) -> None:  # noqa: ARG002 - part of the protocol
        """The next item has left the queue already."""
        self._next = () if nextitem is None else (nextitem,)

    def __call__(self, most: int) -> Iterator[Case]:
        """The next item, then those in the queue."""
        with self._torun.lock() as queue:
            # Besides indexes it may hold the mark of its end.
            indexes = [index for index in islice(queue, most) if isinstance(index, int)]
        yield from _cases((*self._next, *(self._items[index] for index in indexes)))


class NextItem:
    """Where the queue cannot be seen: the one item after the present one."""

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
