"""The command `evalsuite` writes to whatever its output can take."""

from __future__ import annotations

import io
import sys
from typing import TYPE_CHECKING

import evalsuite.commands.report as command
from evalsuite.cli import main

if TYPE_CHECKING:
    import argparse

    import pytest


def test_what_the_terminal_s_encoding_lacks_is_written_as_an_escape(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(_: argparse.Namespace) -> int:
        sys.stdout.write("# ❌ missed, café\n")
        return 0

    monkeypatch.setattr(command, "run", run)
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding="cp1252"))
    assert main(["report", "last"]) == 0
    sys.stdout.flush()
    assert written.getvalue().decode("cp1252") == "# \\u274c missed, café\n"
