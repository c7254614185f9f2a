"""All code that depends on pytest-xdist and execnet: workers, their queues, and the channel to them.

If xdist changes an internal that this module uses, tests/unit/plugin/test_internals_of_others.py fails. `__init__` and
`listener` implement public hooks of xdist.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from evalsuite.plugin.items import get_solvable_case

if TYPE_CHECKING:
    from evalsuite.engine.cases import Case

DATA, CHANNEL = "evalsuite", "evalsuite_channel"
"""Keys of `workerinput`, the data that xdist sends to a worker."""


def is_worker(config: pytest.Config) -> bool:
    """Tell whether this process is a worker."""
    return hasattr(config, "workerinput")


def has_workers(config: pytest.Config) -> bool:
    """Tell whether this process starts workers."""
    return bool(getattr(config.option, "tx", None))


def set_default_distribution(config: pytest.Config) -> None:
    """Set `--dist` to worksteal if only `-n` is given, so that each worker gets its share of the cases at the start."""
    option = config.option
    if getattr(option, "numprocesses", None) and getattr(option, "dist", None) == "no":
        option.dist = "worksteal"


def refuse_plain_workers(config: pytest.Config, specs: Iterable[Any]) -> None:
    """Refuse workers on other hosts that are connected over plain TCP."""
    import execnet

    from evalsuite.service.clients import is_loopback

    for spec in (*specs, *map(execnet.XSpec, config.getoption("px"))):
        host, _, port = str(spec.socket or "").rpartition(":")
        if spec.socket and not is_loopback(host):
            raise pytest.UsageError(
                f"worker socket={spec.socket}: prompts, answers and scores would cross the network in plain text, "
                f"and execnet's socket server runs what anybody sends it. Use --tx ssh={host}, or a tunnel "
                f"(ssh -L {port}:127.0.0.1:{port} {host}, then --tx socket=127.0.0.1:{port}); in a network that "
                "is yours alone, allow it with evalsuite_allow_plain_workers"
            )


def connect_worker(node: Any, data: dict[str, Any], receive: Callable[[Any, str | None], None]) -> Any:
    """Before a worker starts, give it data and its own channel on xdist's connection.

    Args:
        receive: function that gets the channel and each of the worker's texts (None at the end), in a thread of
            execnet.
    """
    channel = node.gateway.newchannel()
    node.workerinput[DATA], node.workerinput[CHANNEL] = data, channel
    channel.setcallback(lambda text: receive(channel, text), endmarker=None)
    node.sendcommand = partial(_send_command_if_alive, node.sendcommand)
    return channel


def _send_command_if_alive(send_command: Callable[..., None], name: str, **arguments: Any) -> None:
    """Send xdist's command to a worker; drop the command if the worker is dead.

    xdist may send a command after a worker has died and before it notices the death. Without this function, the failed
    command ends the session, although xdist would give the dead worker's tests to others.
    """
    with contextlib.suppress(OSError):
        send_command(name, **arguments)


def get_worker_data(config: pytest.Config) -> tuple[dict[str, Any], Any, int]:
    """Return the data and the channel that this worker received, and the number of workers."""
    given: dict[str, Any] = config.workerinput  # type: ignore[attr-defined] # xdist's
    return given[DATA], given[CHANNEL], given["workercount"]


def stop_distributing(config: pytest.Config, reason: str) -> None:
    """Stop xdist from giving its workers further tests."""
    distribution = config.pluginmanager.get_plugin("dsession")
    if distribution is not None:
        distribution.shouldstop = reason


def stop_replacing_workers(config: pytest.Config) -> None:
    """Keep xdist from replacing workers that die."""
    vars(config.pluginmanager.get_plugin("dsession"))["_max_worker_restart"] = 0


class WorkerQueue:
    """A worker's assigned items that have not begun.

    Args:
        torun: xdist's queue of indexes of items; None if it cannot be read, so that only the next item is known.
        give_back: function that returns the items at `indices` to the controlling process, which asked for them.
    """

    def __init__(self, items: list[pytest.Item], torun: Any, give_back: Callable[..., None] | None = None) -> None:
        self._items, self._torun, self._give_back = items, torun, give_back
        self._next: pytest.Item | None = None
        self._begun: set[int] = set()
        self._wanted: Sequence[int] | None = None  # The indexes in a request that was not answered yet.
        self._last, self._place = -1, -1  # The last yielded index, and its position in the queue at that time.

    def move_to(self, item: pytest.Item, nextitem: pytest.Item | None) -> None:  # noqa: ARG002 - as `UpcomingCases` has it
        """Store which item comes next, and answer a postponed request of xdist."""
        self._next = nextitem
        if (wanted := self._wanted) is not None:
            self.steal(wanted)

    def steal(self, indices: Sequence[int]) -> None:
        """Give back those items whose cases have not begun, because a case must not run in two workers at once.

        If all cases have begun, do not answer xdist before the next item begins, because xdist repeats a refused
        request at once.
        """
        with self._torun.lock() as queue:
            waiting = {index for index in queue if isinstance(index, int)}
            given = (waiting - self._begun).intersection(indices)
            is_answered = bool(given or not waiting)
            self._wanted = None if is_answered else indices
            if given:
                self._torun.replace([index for index in queue if index not in given])
        if is_answered and self._give_back is not None:
            self._give_back(indices=sorted(given))

    def __call__(self, limit: int) -> Iterator[Case]:
        """Yield the next case, then each case among the queue's first `limit` items; called in another thread."""
        coming, self._next = self._next, None
        if coming is not None and (case := get_solvable_case(coming)) is not None:
            yield case
        while self._torun is not None and (index := self._find_next_index(limit)) is not None:
            if (case := get_solvable_case(self._items[index])) is not None:
                yield case

    def _find_next_index(self, limit: int) -> int | None:
        """Return the first index in the queue that was not yielded yet; None if none of the first `limit` is left."""
        with self._torun.lock() as queue:
            # Items are removed only at the front, so the last yielded item is not behind its old position. If this item
            # was removed, continue at the front.
            places = range(min(self._place, len(queue) - 1), -1, -1)
            place = next((place for place in places if queue[place] == self._last), -1) + 1
            # Stop at an entry that is not an index, because the queue may end in xdist's shutdown marker.
            if place >= min(limit, len(queue)) or not isinstance(queue[place], int):
                return None
            self._last, self._place = queue[place], place
            self._begun.add(self._last)
            return self._last


def find_worker_queue(session: pytest.Session) -> WorkerQueue:
    """Find xdist's queue of this worker; if it cannot be found, warn and return a queue of only the next item."""
    for plugin in session.config.pluginmanager.get_plugins():
        torun = getattr(plugin, "torun", None)
        if hasattr(torun, "lock"):
            queue = WorkerQueue(session.items, torun, partial(plugin.sendevent, "unscheduled"))
            vars(plugin)["steal"] = queue.steal
            return queue
    warnings.warn(
        "evalsuite cannot see this version of pytest-xdist's queue of tests and looks ahead by one: "
        "raise -n to have more calls in flight, and tell evalsuite's maintainers",
        stacklevel=1,
    )
    return WorkerQueue(session.items, None)
