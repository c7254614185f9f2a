"""What holds a program in: one implementation a kind of machine, `namespaces` and `landlock`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable
    from contextlib import AbstractContextManager

    from .limits import Limits


class Walls(Protocol):
    """How programs are forked, shut in, counted and ended."""

    def room_to_load(self) -> AbstractContextManager[str]:
        """A folder that can be written while packages are imported, and that no program sees."""
        ...

    def fork(self) -> int:
        """Forks; returns 0 in the child, which is to be shut in."""
        ...

    def shut_in(self, key: int) -> None:
        """Takes everything from the child but its own room.

        Raises:
            OSError: the kernel refused a step; the process is then not fit for a program.
        """
        ...

    def families(self, pids: Iterable[int]) -> dict[int, set[int]]:
        """All processes of each program, by the pid of its first."""
        ...

    def excess(self, key: int, family: set[int]) -> str:
        """Which limit a program has passed that the kernel does not hold by itself; empty if none."""
        ...

    def kill(self, pid: int) -> None:
        """Kills all processes of a program, given its first."""
        ...

    def reap(self, pid: int, key: int) -> int:
        """Clears away a program whose first process is dead; returns that one's wait status."""
        ...

    def prove(self) -> None:
        """Tries the walls; ends this process, with the reason on its standard error, if they do not hold."""
        ...


def walls(setup: dict[str, Any], limits: Limits) -> Walls:
    """The walls that the host asks for.

    Raises:
        OSError: this kernel does not have them.
    """
    if setup["walls"] == "landlock":
        from .landlock import Landlocked

        return Landlocked(limits, setup["shown"], setup["scratch"])
    from .namespaces import Namespaces

    return Namespaces(limits, setup["kept"])
