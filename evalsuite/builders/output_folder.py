"""What every builder needs: a private folder beside its output, whole files or none, a clean end when killed."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

from evalsuite.core.errors import SettingsError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from types import FrameType


@contextmanager
def building(target: Path) -> Iterator[Path]:
    """A private folder beside a file that is going to be written, for as long as it takes.

    Its name follows from the file's: what a killed build left behind goes when the next one begins.

    Raises:
        SettingsError: it cannot be made, the file is a folder, or another build of it is under way.
    """
    if target.is_dir():
        raise SettingsError(f"cannot write {target}: it is a folder; name a file")
    folder = target.parent / f".{target.name}.building"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise SettingsError(f"cannot write {target}: {error.strerror or error}") from error
    with os.fdopen(lock):
        _take(lock, target)
        _clear(folder, but="lock")
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def write(text: str, target: Path, folder: Path) -> None:
    """Writes a file in a private folder, and puts it where it belongs only when it is on the disk.

    Args:
        text: what to write.
        target: where it belongs.
        folder: on the same disk.

    Raises:
        SettingsError: it cannot be written.
    """
    draft = folder / target.name
    try:
        with draft.open("w", encoding="utf-8", newline="\n") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(target)
        parent = os.open(target.parent, os.O_RDONLY)
        os.fsync(parent)
        os.close(parent)
    except OSError as error:
        raise SettingsError(f"cannot write {target}: {error.strerror or error}") from error


@contextmanager
def ending_cleanly() -> Iterator[None]:
    """Turns a polite kill into an exception, so that what lies on the disk is cleared away."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(number: int, _: FrameType | None) -> None:
        raise SystemExit(128 + number)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _take(lock: int, target: Path) -> None:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise SettingsError(
            f"another build of {target} is under way; wait for it, or write another file"
        ) from None


def _clear(folder: Path, *, but: str) -> None:
    for left in folder.iterdir():
        if left.is_dir():
            shutil.rmtree(left)
        elif left.name != but:
            left.unlink()
