"""Walls made of namespaces, within bubblewrap: each program has its own pids, mounts and user."""

from __future__ import annotations

import dataclasses
import os
import platform
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from . import census, kernel
from .calls import call_filter
from .isolation import STDERR, isolate
from .limits import LOADING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from .limits import Limits


class Namespaces:
    """The stronger walls; see `isolation`.

    Args:
        limits: what one program may use.
        kept: folders and files of the sandbox's view that lie where a program's own files come to lie.
    """

    def __init__(self, limits: Limits, kept: Sequence[str]) -> None:
        self._limits, self._kept = limits, kept
        self._user = _powerless_user()
        self._filter = call_filter(platform.machine())
        self._own_pids = os.open("/proc/self/ns/pid", os.O_RDONLY)

    @contextmanager
    def room_to_load(self) -> Iterator[str]:
        """A tmpfs for as long as packages are imported."""
        kernel.mount_tmpfs(LOADING, "size=16m,nr_inodes=256,mode=0700")
        try:
            yield LOADING
        finally:
            kernel.unmount(LOADING)

    def fork(self) -> int:
        """Forks; the child, to which 0 is returned, is the first process of a new pid namespace."""
        kernel.unshare(kernel.NEW_PIDS)
        try:
            pid = os.fork()
        except OSError:
            kernel.children_born_in(self._own_pids)
            raise
        if pid:
            kernel.children_born_in(self._own_pids)
        return pid

    def shut_in(self, key: int) -> None:  # noqa: ARG002 - the other walls need it
        """Isolates the child.

        Raises:
            OSError: the kernel refused a step.
        """
        isolate(self._limits, self._user, self._filter, self._kept)

    def families(self, pids: Iterable[int]) -> dict[int, set[int]]:
        """All processes of each program, by the pid of its first."""
        parents = census.parents()
        return {pid: census.family(pid, parents) for pid in pids}

    def excess(self, key: int, family: set[int]) -> str:  # noqa: ARG002 - the kernel itself holds these limits
        """Which limit a program has passed that the kernel does not hold; empty if none."""
        return ""

    def kill(self, pid: int) -> None:
        """Kills a program; the kernel ends all others of its pid namespace with its first process."""
        os.kill(pid, 9)

    def reap(self, pid: int, key: int) -> int:  # noqa: ARG002 - as above
        """Waits for a program that is dead; returns its wait status."""
        return os.waitpid(pid, 0)[1]

    def prove(self) -> None:
        """Forks a trial program that must not be able to fork itself, or ends with the reason."""
        kernel.unshare(kernel.NEW_PIDS)
        pid = os.fork()
        if pid == 0:
            self._try()
        kernel.children_born_in(self._own_pids)
        _, status = os.waitpid(pid, 0)
        if status:
            os._exit(1)

    def _try(self) -> NoReturn:
        try:
            isolate(dataclasses.replace(self._limits, processes=1), self._user, self._filter, self._kept)
        except OSError as error:
            os.write(STDERR, f"a program could not be isolated: {error}\n".encode())
            os._exit(1)
        try:
            os.fork()
        except OSError:
            os._exit(0)
        os.write(STDERR, b"the kernel does not limit the number of this user's processes\n")
        os._exit(1)


def _powerless_user() -> int:
    """User 1 where the sandbox has one beside its own (see `launch.py`), else its own."""
    users = Path("/proc/self/uid_map").read_text("ascii").splitlines()
    return 1 if any(line.split()[0] == "1" for line in users) else 0
