"""The clients of the openai package, in the process in which applications run."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

SLOW = """
import sys, time
while not hasattr(sys.modules.get("openai"), "OpenAI"):
    time.sleep(0.01)
time.sleep(1)
class Timeout: ...
"""
PROGRAM = """
import sys, threading, time
sys.path.insert(0, sys.argv[1])
threading.Thread(target=__import__, args=("httpx",)).start()
while "httpx" not in sys.modules:
    time.sleep(0.01)
import evalsuite.applications.clients
print(hasattr(sys.modules["httpx"], "Timeout"))
"""


def test_a_client_is_made_when_an_import_of_httpx_in_another_thread_has_ended(tmp_path: Path) -> None:
    (tmp_path / "httpx.py").write_text(SLOW, encoding="utf-8")
    command = [sys.executable, "-c", PROGRAM, str(tmp_path)]
    assert subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout == "True\n"
