"""The command `evalsuite`, whatever its output can take and whatever it is given."""

from __future__ import annotations

import io
import sys
from typing import TYPE_CHECKING

import pytest

import evalsuite.commands.report as command
from evalsuite.cli import main

if TYPE_CHECKING:
    import argparse


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


@pytest.mark.parametrize("command", [["plan"], ["doctor"], ["ray", "--shards", "2"]])
def test_a_suite_that_is_not_there_is_one_message(
    command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*command, "nowhere/test_it.py::test_it[fr]"]) == 2
    assert capsys.readouterr().err == "evalsuite: nowhere/test_it.py::test_it[fr]: no such file or folder\n"
