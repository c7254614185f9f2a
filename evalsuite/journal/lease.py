"""A lock that lets one session at a time write to a run; the operating system releases it when the process ends."""

import os
from contextlib import suppress
from pathlib import Path

from evalsuite.core.errors import RunError

LOCK = ".journal.lock"


def is_run_locked(folder: Path, host: str) -> bool | None:
    """Tell whether a session of another process is writing to a run; None if this host cannot tell.

    Never call this function in the process that writes to the run: closing any descriptor of its lock file loses the
    lock.
    """
    try:
        import fcntl

        file = (folder / LOCK).open("rb")
    except (ImportError, OSError):
        return None
    with file:
        _, signed, *_ = (file.read(500).decode("utf-8", "replace") + "\n\n").split("\n")
        if signed != host:
            return None
        try:
            fcntl.lockf(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):
            return True
        except OSError:
            return None
    return False


class LockedError(RunError):
    """Another process writes to the run."""


class RunLock:
    """The right to write to a run; it ends with `release` or with the process."""

    def __init__(self, folder: Path, name: str = LOCK) -> None:
        try:
            self._file = os.open(folder / name, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise RunError(
                f"{folder / name} cannot be written ({error.strerror}), and whoever writes to {folder} locks this "
                "file: make the folder writable, or use a copy of it"
            ) from error
        try:
            import fcntl

            # Use `lockf`, because forked children do not inherit its lock, which therefore ends with the session's
            # process.
            fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except ImportError:
            pass  # Windows has no such lock, so nothing keeps two sessions from writing to the same run.
        except (BlockingIOError, PermissionError) as error:
            holder = self._read_holder()
            self.release()
            raise LockedError(
                f"run {folder.name} is being written to by another session{holder}: wait for it, or stop it; each "
                "request would be paid for twice"
            ) from error
        except OSError as error:
            self.release()
            # Refuse a file system without locks, because SQLite would wait for the unsupported lock as if another
            # process held it.
            raise RunError(
                f"{folder} is on a file system without locks ({error.strerror}), and a journal needs them: "
                "name a folder on another one with --reports"
            ) from error

    def _read_holder(self) -> str:
        """Read the name of the session that holds the lock; empty if the name cannot be read."""
        with suppress(OSError, ValueError):
            pid, host, since = os.pread(self._file, 500, 0).decode("utf-8").split("\n")[:3]
            return f" (process {pid} on {host}, since {since})"
        return ""

    def write_holder(self, host: str, since: str) -> None:
        """Write this session's host and start into the lock file, for messages of other sessions."""
        os.ftruncate(self._file, 0)
        os.pwrite(self._file, f"{os.getpid()}\n{host}\n{since}\n".encode(), 0)

    def release(self) -> None:
        os.close(self._file)
