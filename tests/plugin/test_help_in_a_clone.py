"""What a clone offers before its development dependencies are installed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
WITHOUT_HYPOTHESIS = """
import sys, pytest
class Missing:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name.partition(".")[0] == "hypothesis":
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Missing)
sys.exit(pytest.main(["--help", "-p", "no:hypothesispytest"]))
"""


def test_pytests_help_lists_our_options_without_the_packages_of_the_tests() -> None:
    command = [sys.executable, "-c", WITHOUT_HYPOTHESIS]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert "--max-connections=N" in done.stdout
