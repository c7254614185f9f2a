"""A run as one file."""

from __future__ import annotations

import zipfile
from typing import TYPE_CHECKING

import pytest

from evalsuite.cli import main

if TYPE_CHECKING:
    from tests.plugin.conftest import Suite


@pytest.fixture
def bundled(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> Suite:
    monkeypatch.chdir(suite.path)
    suite.run("--run", "one")
    assert main(["export", "bundle", "one"]) == 0
    return suite


def test_a_bundle_is_verified(bundled: Suite, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert main(["runs", "verify", "one.zip"]) == 0
    assert "WRONG" not in capsys.readouterr().out


def test_a_bundle_may_be_renamed(bundled: Suite) -> None:
    (bundled.path / "one.zip").rename("two.zip")
    assert main(["runs", "verify", "two.zip"]) == 0


def test_a_changed_number_is_found(bundled: Suite) -> None:
    with zipfile.ZipFile(bundled.path / "one.zip") as old, zipfile.ZipFile(bundled.path / "two.zip", "w") as new:
        for name in old.namelist():
            data = old.read(name)
            new.writestr(name, data.replace(b"Osaka", b"Tokyo") if name == "records.jsonl" else data)
    assert main(["runs", "verify", "two.zip"]) == 1


def test_a_bundle_replays_without_the_run(bundled: Suite) -> None:
    with zipfile.ZipFile(bundled.path / "one.zip") as bundle:
        bundle.extractall(bundled.path / "reports" / "copy")
    bundled.run("--replay", "copy", "--run", "again").assert_outcomes(passed=2, failed=1)


def test_a_replay_is_refused_and_names_the_run_that_asked(bundled: Suite, capsys: pytest.CaptureFixture[str]) -> None:
    for _ in range(2):
        bundled.run("--replay=last")
    capsys.readouterr()
    assert main(["export", "bundle", "last", "-o", "replay.zip"]) == 2
    assert f"export the run that asked, {bundled.path / 'reports' / 'one'}" in capsys.readouterr().err
    assert not (bundled.path / "replay.zip").exists()


def test_a_damaged_journal_is_one_message_and_leaves_no_bundle(
    bundled: Suite, capsys: pytest.CaptureFixture[str]
) -> None:
    (bundled.path / "reports" / "one" / "journal.sqlite").write_bytes(b"no database" * 100)
    assert main(["export", "bundle", "one", "-o", "damaged.zip"]) == 2
    assert "journal.sqlite cannot be read" in capsys.readouterr().err
    assert not (bundled.path / "damaged.zip").exists()


def test_what_is_no_bundle_is_one_message(bundled: Suite, capsys: pytest.CaptureFixture[str]) -> None:
    (bundled.path / "x.zip").write_bytes(b"PK nothing")
    assert main(["runs", "verify", "x.zip"]) == 2
    assert "x.zip is not a bundle" in capsys.readouterr().err
