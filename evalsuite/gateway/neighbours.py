"""Where runs of a user on this machine find what they know in common about a server: one small file for each."""

from __future__ import annotations

import hashlib
import os
import stat
import time
from contextlib import suppress
from pathlib import Path

from evalsuite.gateway.rate_finder import NUMBERS

KEPT = 7200.0
"""Seconds after which a file that nobody has written to is removed."""


class Neighbours:
    """The folder in which this user's runs on this machine find each other's paces.

    Args:
        folder: is created when it is needed, for the user alone; None is one below the user's cache directory.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder

    def file(self, *words: str) -> Path:
        """The file for calls that a server counts together.

        Args:
            words: address, model and account; the file's name is a keyed hash of them.

        Raises:
            OSError: there can be no such folder, or others could write to it.
        """
        digest = hashlib.blake2b(key=_boot(), digest_size=16)
        # Versions that know other things do not meet.
        for word in (*NUMBERS, *words):
            digest.update(f"{len(word)} {word}".encode("utf-8", "surrogatepass"))
        return self._prepared() / digest.hexdigest()

    def _prepared(self) -> Path:
        folder = self._folder or _cache() / "evalsuite" / "paces"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        entry = folder.lstat()
        if not stat.S_ISDIR(entry.st_mode) or entry.st_uid != os.geteuid() or entry.st_mode & 0o077:
            raise PermissionError(f"{folder} is not this user's alone")
        for file in folder.iterdir():
            with suppress(OSError):
                if time.time() - file.stat().st_mtime > KEPT:
                    file.unlink()
        return folder


def _cache() -> Path:
    try:
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    except RuntimeError as error:
        raise FileNotFoundError(str(error)) from error


def _boot() -> bytes:
    """Differs between machines that share a home directory, and after a restart, as clocks do."""
    with suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_bytes().strip()[:64]
    return os.uname().nodename.encode()[:64]
