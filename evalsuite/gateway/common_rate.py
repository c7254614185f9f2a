"""One pace for all runs of a user on this machine that ask the same model with the same key.

A server counts their requests together, so they have to find its rate together: what is known (`RateFinder`) lies in
a file of a few hundred bytes, and whoever books an instant, or hears an answer or a refusal, does so there. Several
runs then ask as one would, and take turns. No process has to stay for that: a run that dies leaves numbers that others
go on with, and that nobody believes any more when they are old.

Nothing is written before a server refuses. Where the folder cannot be used, or somebody holds on to the file, each run
finds the rate by itself.
"""

from __future__ import annotations

import array
import os
import struct
import time
import zlib
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

from evalsuite.gateway.rate_finder import RateFinder

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

T = TypeVar("T")

FRAME = struct.Struct("<II")
"""The length and the checksum of all that follows: a head, and a finder's numbers."""

HEAD = struct.Struct("<Qd")
"""How often the file was written, and when the last time."""

LARGEST = 4096
"""Bytes of such a file at most."""

BELIEVED = 15.0
"""Seconds after the last event, or the end of a pause, for which a new run believes the numbers."""

LOCK_TRIES, LOCK_WAIT = 20, 0.001
"""How often, and with how many seconds between, the file's lock is tried."""

ALONE = 1.0
"""Seconds for which a run goes on by itself when somebody, stopped perhaps, does not release the lock."""


def encode(count: int, now: float, finder: RateFinder) -> bytes:
    """What a finder knows, as the file holds it."""
    content = HEAD.pack(count, now) + array.array("d", finder.numbers()).tobytes()
    return FRAME.pack(len(content), zlib.crc32(content)) + content


def decode(data: bytes) -> tuple[int, float, array.array[float]]:
    """How often it was written, when the last time, and a finder's numbers.

    Raises:
        ValueError: this is no such file, or a damaged one.
    """
    if len(data) < FRAME.size + HEAD.size:
        raise ValueError("too short")
    length, checksum = FRAME.unpack_from(data)
    content = data[FRAME.size : FRAME.size + length]
    if len(content) != length or zlib.crc32(content) != checksum:
        raise ValueError("damaged")
    return *HEAD.unpack_from(content), array.array("d", content[HEAD.size :])


class CommonRate:
    """A rate finder, whose knowledge is common to all who open the same file. Its methods are `RateFinder`'s.

    Args:
        finder: knows what this run has found out so far.
        file: what all of them know.
        clock: seconds that only go forward, the same for all processes.
    """

    def __init__(self, finder: RateFinder, file: Path, clock: Callable[[], float] = time.monotonic) -> None:
        try:
            import fcntl
        except ImportError as error:
            raise OSError("files cannot be locked here") from error
        self._fcntl: Any = fcntl
        self._finder, self._clock = finder, clock
        self._alone_until = 0.0
        self._count = 0
        self._path: Path | None = file
        self._file: int | None = None
        self._skip_old()

    def _skip_old(self) -> None:
        """What is old is not taken over."""
        with suppress(OSError, ValueError, OverflowError):
            count, written, numbers = decode(self._read(LARGEST))
            before = RateFinder(1)
            before.adopt(numbers)
            if self._clock() - max(written, before.resume_at) > BELIEVED:
                self._count = count

    def _open(self, *flags: int) -> int | None:
        """The file, once it is there."""
        if self._file is None and self._path is not None:
            # Closed when a program is started; never a link that somebody else put there.
            always = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW
            self._file = os.open(self._path, sum(flags, always), 0o600)
        return self._file

    @property
    def rate(self) -> float | None:
        """Requests per second, all runs together."""
        return self._finder.rate

    @property
    def resume_at(self) -> float:
        """When the pause ends that this run was told of last."""
        return self._finder.resume_at

    def book(self, now: float) -> float:
        """See `RateFinder`."""
        return self._together(lambda: self._finder.book(now))

    def send(self, now: float) -> bool:
        """See `RateFinder`."""
        return self._together(lambda: self._finder.send(now))

    def accepted(self, now: float) -> None:
        """See `RateFinder`."""
        if self._worth_knowing():
            self._together(lambda: self._finder.accepted(now))
        else:
            # What others know, the next request asks; to ask the file takes longer than to count.
            self._finder.accepted(now)

    def refused(self, sent: float, retry_after: float | None, now: float) -> None:
        """See `RateFinder`."""
        self._together(lambda: self._finder.refused(sent, retry_after, now))

    def wait_for(self, seconds: float, now: float) -> None:
        """See `RateFinder`."""
        self._together(lambda: self._finder.wait_for(seconds, now))

    def close(self) -> None:
        """Lets go of the file; what follows is this run's alone."""
        self._path = None
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _together(self, event: Callable[[], T]) -> T:
        """Has something happen in what all runs know."""
        locked = self._in_common() and self._taken_over()
        try:
            result = event()
            # The first thing that is worth knowing: somebody else may have found it at the same time.
            locked = locked or (self._worth_knowing() and self._taken_over())
            if locked:
                self._save()
        finally:
            if locked:
                self._unlock()
        return result

    def _taken_over(self) -> bool:
        """Whether the file is locked, and what it says adopted."""
        try:
            if self._lock():
                self._load()
                return True
        except OSError:
            # A file system without locks, or one that is gone.
            self.close()
        return False

    def _in_common(self) -> bool:
        """Whether anything is known, here or elsewhere."""
        return self._worth_knowing() or self._written() != self._count

    def _worth_knowing(self) -> bool:
        return self._finder.rate is not None or self._finder.resume_at > 0.0

    def _written(self) -> int:
        """How often the file was written, by anybody."""
        with suppress(OSError, struct.error):
            return int(HEAD.unpack_from(self._read(FRAME.size + HEAD.size), FRAME.size)[0])
        return self._count

    def _read(self, size: int) -> bytes:
        file = self._open()
        return b"" if file is None else os.pread(file, size, 0)

    def _lock(self) -> bool:
        file = self._open(os.O_CREAT) if self._clock() >= self._alone_until else None
        if file is None:
            return False
        for _ in range(LOCK_TRIES):
            try:
                self._fcntl.flock(file, self._fcntl.LOCK_EX | self._fcntl.LOCK_NB)
            except BlockingIOError:
                time.sleep(LOCK_WAIT)
            else:
                return True
        self._alone_until = self._clock() + ALONE
        return False

    def _load(self) -> None:
        with suppress(ValueError, OverflowError):
            count, _, numbers = decode(self._read(LARGEST))
            if count != self._count:
                self._finder.adopt(numbers)
                self._count = count

    def _save(self) -> None:
        self._count += 1
        try:
            if self._file is not None:
                os.pwrite(self._file, encode(self._count, self._clock(), self._finder), 0)
        except OSError:
            # A full disk.
            self.close()

    def _unlock(self) -> None:
        if self._file is not None:
            self._fcntl.flock(self._file, self._fcntl.LOCK_UN)
