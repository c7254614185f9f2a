"""A session refuses to be replaced by another program while it has no verdict, and allows it otherwise."""

from __future__ import annotations

import os

import pytest

from evalsuite.engine.signals import intercept_exit

MISSING = "/no/such/program"


@pytest.mark.parametrize("named", [False, True])
def test_exec_takes_the_same_arguments_while_it_is_allowed(*, named: bool) -> None:
    restore = intercept_exit(lambda: 0)
    try:
        with pytest.raises(FileNotFoundError):
            os.execve(path=MISSING, argv=["program"], env={}) if named else os.execve(MISSING, ["program"], {})
    finally:
        restore()


def test_exec_is_refused_while_the_session_has_no_verdict() -> None:
    earlier = os.execv
    restore = intercept_exit(lambda: 12)
    try:
        with pytest.raises(RuntimeError, match="without a verdict"):
            os.execv(MISSING, ["program"])
    finally:
        restore()
    assert os.execv is earlier
