"""Whether a run is still being written to is known from the lock of its writer, not guessed from the time."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from evalsuite.core.errors import RunError
from evalsuite.journal.lease import LOCK, LockedError, RunLock, is_run_locked

if TYPE_CHECKING:
    from pathlib import Path

HOLDER = """
import sys
from pathlib import Path
from evalsuite.journal.lease import RunLock
lease = RunLock(Path(sys.argv[1]))
lease.write_holder("here", "2026-01-01T00:00:00")
print("held", flush=True)
sys.stdin.read()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such locks")
def test_a_run_is_held_as_long_as_its_session_lives(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as session:
        assert session.stdout is not None
        assert session.stdout.readline() == b"held\n"
        assert is_run_locked(tmp_path, "here") is True
        session.kill()
    assert is_run_locked(tmp_path, "here") is False


@pytest.mark.parametrize("text", ["", "12\nelsewhere\n2026-01-01", "\xff\n"])
def test_a_lock_of_another_host_says_nothing(tmp_path: Path, text: str) -> None:
    assert is_run_locked(tmp_path, "here") is None
    (tmp_path / LOCK).write_text(text, encoding="latin-1")
    assert is_run_locked(tmp_path, "here") is None


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such locks")
def test_a_file_system_without_locks_is_named_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import fcntl

    def no_locks(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "lockf", no_locks)
    with pytest.raises(RunError, match=r"without locks .*name a folder on another one with --reports"):
        RunLock(tmp_path)


def test_a_folder_that_cannot_be_written_is_named_and_is_not_called_locked(tmp_path: Path) -> None:
    (tmp_path / LOCK).mkdir()
    with pytest.raises(RunError, match=r"journal.lock cannot be written \(Is a directory\)") as raised:
        RunLock(tmp_path)
    assert not isinstance(raised.value, LockedError)
