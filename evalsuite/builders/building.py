"""Progress bar, private folder and output files of a build."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Self

from evalsuite.core.errors import SettingsError


def sum_file_sizes(files: Iterable[Path]) -> int:
    """Sum the sizes of files in bytes; a missing file has size 0, and a file that is listed twice counts twice."""
    return sum(path.stat().st_size for path in files if path.is_file())


class BuildProgress:
    """A progress bar with rate and remaining time, shown if tqdm is installed; the unit `B` is scaled to kB or MB."""

    def __init__(self, total: int, unit: str) -> None:
        try:
            from tqdm import tqdm  # type: ignore[import-untyped]  # it ships no types
        except ImportError:
            self._bar = None
        else:
            # `disable=None` shows the bar on a terminal only, not in a CI log.
            self._bar = tqdm(total=total, unit=unit, unit_scale=unit == "B", disable=None, leave=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        # Draw the bar once more, because a short build may end before tqdm draws the bar for the first time.
        if self._bar is not None:
            self._bar.refresh()
            self._bar.close()

    def begin_stage(self, stage: str) -> None:
        if self._bar is not None:
            self._bar.set_description(stage)

    def advance(self, count: int) -> None:
        if self._bar is not None:
            self._bar.update(count)


@contextmanager
def open_build_folder(target: Path) -> Iterator[Path]:
    """Open a private folder beside the target for the body of the `with`, and remove it afterwards, even on SIGTERM.

    The folder's name is fixed, so the next build clears the files of a build that was killed.
    """
    if target.is_dir():
        raise SettingsError(f"cannot write {target}: it is a folder; name a file")
    folder = target.parent / f".{target.name}.building"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise SettingsError(f"cannot write {target}: {error.strerror or error}") from error
    with os.fdopen(lock), _raise_on_sigterm():
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise SettingsError(f"another build is writing {target}; wait for its end, or write another file") from None
        for left in folder.iterdir():
            if left.is_dir():
                shutil.rmtree(left)
            elif left.name != "lock":
                left.unlink()
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def write_atomically(text: str, target: Path, folder: Path) -> None:
    """Write a draft in the folder, then rename it to the target, so that the target is never incomplete."""
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
def _raise_on_sigterm() -> Iterator[None]:
    """Raise an exception on SIGTERM, so that the cleanup of temporary files runs."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def raise_system_exit(signal_number: int, _: FrameType | None) -> None:
        raise SystemExit(128 + signal_number)

    before = signal.signal(signal.SIGTERM, raise_system_exit)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
