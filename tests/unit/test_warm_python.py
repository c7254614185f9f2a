"""A copy of the warm process does what an interpreter of its own does."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.warm_python import WarmPython

SURROUNDINGS = """
import os, sys
print(__name__, sys.argv, os.getcwd(), os.environ["NOTE"], sys.path[:2], sys.stdin.read(), "tests" in sys.modules)
print("to the other stream", file=sys.stderr)
sys.exit(3)
"""
LAST_WORDS = """
import atexit, threading, time
atexit.register(print, "at the end")
threading.Thread(target=lambda: (time.sleep(0.1), print("a thread"))).start()
print("first")
"""
WORDS = "import sys; sys.exit('why it ended')"
SIGNAL = "import os; os.kill(os.getpid(), 9)"


@pytest.mark.parametrize("program", [SURROUNDINGS, LAST_WORDS, WORDS, SIGNAL])
@pytest.mark.parametrize("how", ["-c", "-m", "-mprogram"])
def test_output_and_status_are_those_of_an_interpreter(
    warm_python: WarmPython, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str, how: str
) -> None:
    (tmp_path / "program.py").write_text(program)
    monkeypatch.chdir(tmp_path)
    args = {"-c": [how, program], "-m": [how, "program"]}.get(how, [how])
    env = {**os.environ, "PYTHONPATH": str(tmp_path / "more"), "NOTE": "noted"}
    out, err = tmp_path / "out", tmp_path / "err"
    with out.open("w") as stdout, err.open("w") as stderr:
        process = warm_python.start([*args, "one", "--two"], env=env, stdout=stdout, stderr=stderr)
    assert process.stdin is not None
    # Some of them have ended before they are told anything.
    with contextlib.suppress(BrokenPipeError):
        process.stdin.write(b"said")
        process.stdin.close()
    command = [sys.executable, *args, "one", "--two"]
    apart = subprocess.run(command, env=env, input="said", capture_output=True, text=True, check=False)
    assert process.wait(timeout=60) == apart.returncode
    assert (out.read_text(), err.read_text()) == (apart.stdout, apart.stderr)


def test_it_can_be_waited_for_in_vain_and_killed(warm_python: WarmPython) -> None:
    process = warm_python.start(["-c", "import time; time.sleep(600)"], env=os.environ)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(timeout=0.1)
    process.kill()
    assert process.wait(timeout=60) == -signal.SIGKILL
    for pipe in (process.stdin, process.stdout):
        assert pipe
        pipe.close()
