"""`evalsuite runs verify`: what a run's files say is what its journal says."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from evalsuite.cli import main
from evalsuite.journal.database import Database

if TYPE_CHECKING:
    from tests.plugin.conftest import Suite


def test_a_run_as_it_was_written_is_proved(suite: Suite, capsys: pytest.CaptureFixture[str]) -> None:
    suite.run("--run=r")
    assert main(["runs", "verify", "r"]) == 0
    assert "WRONG" not in capsys.readouterr().out


@pytest.mark.parametrize("file", ["records.jsonl", "summary.json", "report.md", "journal.sqlite"])
def test_a_file_that_was_changed_afterwards_is_told(
    suite: Suite, capsys: pytest.CaptureFixture[str], file: str
) -> None:
    suite.run("--run=r", "--gate=capitals.exact_match >= 0.9")
    path = suite.path / "reports" / "r" / file
    if file == "journal.sqlite":
        journal = Database(path)
        journal.write(("UPDATE answers SET completion = replace(completion, 'Osaka', 'Tokyo')", ()))
        journal.close()
    elif file == "summary.json":
        path.write_text(json.dumps({**json.loads(path.read_text("utf-8")), "status": 0}), "utf-8")
    else:
        path.write_text(path.read_text("utf-8").replace("Osaka", "Tokyo").replace("missed", "met"), "utf-8")
    assert main(["runs", "verify", "r"]) == 1
    assert "WRONG" in capsys.readouterr().out
