"""A run becomes a baseline: only a green one, with who, when and why, and for as long as it holds."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from evalsuite.cli import main
from tests.plugin.forty_numbers import GATE, model

if TYPE_CHECKING:
    from pathlib import Path

    from tests.plugin.conftest import Suite


@pytest.fixture(autouse=True)
def someone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_ACTOR", "ada")


def promote(run: str, *more: str) -> int:
    return main(["baseline", "promote", run, "--why", "release 7", *more])


def test_a_green_run_is_copied_with_its_provenance_and_compared_with(
    baseline: Suite, capsys: pytest.CaptureFixture[str]
) -> None:
    assert promote("base") == 0
    kept = baseline.path / "reports" / "baseline"
    assert sorted(file.name for file in kept.iterdir()) == ["records.jsonl", "run.json", "summary.json"]
    assert main(["baseline"]) == 0
    shown = capsys.readouterr().out
    assert all(words in shown for words in ("by        ada", "why       release 7", "run       base"))
    result = baseline.run(model("ten_wrong"), GATE, "--baseline=baseline")
    assert result.ret == 11
    assert "baseline was promoted by ada on" in baseline.rendered()
    (kept / "records.jsonl").write_bytes((kept / "records.jsonl").read_bytes().replace(b"\n", b"\r\n"))
    assert main(["gate", "last", "--baseline=baseline"]) == 11
    # A newer run takes its place.
    assert baseline.run(model("good"), GATE, "--run=newer").ret == 0
    assert promote("newer") == 0
    assert json.loads((kept / "run.json").read_text("utf-8"))["promoted"]["run"] == "newer"


@pytest.mark.parametrize("file", ["records.jsonl", "run.json", "summary.json"])
def test_a_baseline_whose_files_were_changed_is_told_and_decides_nothing(
    baseline: Suite, file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert promote("base") == 0
    changed = baseline.path / "reports" / "baseline" / file
    text = changed.read_text("utf-8").replace('"other_failures": 0', '"other_failures": 3')
    lines = text.splitlines(keepends=True)
    changed.write_text("".join(reversed(lines)) if file == "records.jsonl" else f"{text}\n", "utf-8")
    capsys.readouterr()
    assert main(["baseline"]) == 0
    assert f"files     changed since: {file}" in capsys.readouterr().out
    assert main(["gate", "base", "--baseline=baseline"]) == 12
    assert f"the baseline baseline differs from what was promoted, in {file}: restore it" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--gate=numbers.exact_match >= 0.99",), "ended with status 10, a gate is missed"),
        (("--partial", "-k", "001"), "holds chosen cases only"),
        (("-k", "001", GATE), "holds chosen cases only"),
        (("--shard=1/2", GATE), "is a shard"),
    ],
)
def test_a_run_that_is_red_or_not_whole_is_refused(
    baseline: Suite, options: tuple[str, ...], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    baseline.run(model("two_wrong"), "--run=unfit", *options)
    capsys.readouterr()
    assert promote("unfit") == 2
    assert words in capsys.readouterr().err
    assert not (baseline.path / "reports" / "baseline").exists()


def test_a_run_whose_records_miss_a_gate_is_refused_though_its_summary_says_passed(
    baseline: Suite, capsys: pytest.CaptureFixture[str]
) -> None:
    file: Path = baseline.path / "reports" / "base" / "records.jsonl"
    file.write_text(file.read_text("utf-8").replace('"exact_match":1.0', '"exact_match":0.0'), "utf-8")
    (file.parent / "journal.sqlite").unlink()
    capsys.readouterr()
    assert promote("base") == 2
    assert "base passed by its summary.json, but not by its records: a gate is missed" in capsys.readouterr().err
    assert not (baseline.path / "reports" / "baseline").exists()


def test_a_run_that_was_killed_is_refused(baseline: Suite, capsys: pytest.CaptureFixture[str]) -> None:
    file: Path = baseline.path / "reports" / "base" / "run.json"
    info = json.loads(file.read_text("utf-8"))
    del info["seconds"]
    file.write_text(json.dumps(info))
    assert promote("base") == 2
    assert "is not finished" in capsys.readouterr().err


def test_no_run_is_overwritten_by_a_baseline(baseline: Suite, capsys: pytest.CaptureFixture[str]) -> None:
    assert baseline.run(model("ten_wrong"), "--run=other").ret == 1
    before = (baseline.path / "reports" / "other" / "records.jsonl").read_bytes()
    for run in ("base", "other"):
        assert promote("base", "--to", f"reports/{run}") == 2
        assert f"{run} holds a run, which the baseline would overwrite: name another folder" in capsys.readouterr().err
    assert (baseline.path / "reports" / "other" / "records.jsonl").read_bytes() == before


def test_an_end_beyond_the_calendar_is_one_message(baseline: Suite, capsys: pytest.CaptureFixture[str]) -> None:
    assert promote("base", "--days", "9" * 11) == 2
    assert "ends after the year 9999" in capsys.readouterr().err


def test_a_baseline_holds_until_its_last_day(baseline: Suite) -> None:
    assert promote("base", "--days", "30") == 0
    assert baseline.run(model("good"), GATE, "--baseline=baseline").ret == 0
    file = baseline.path / "reports" / "baseline" / "run.json"
    info = json.loads(file.read_text("utf-8"))
    info["promoted"]["until"] = f"{datetime.now(UTC).date() - timedelta(days=1)}"
    file.write_text(json.dumps(info))
    result = baseline.run(model("good"), GATE, "--baseline=baseline")
    assert result.ret == 12
    result.stdout.fnmatch_lines(["*the baseline baseline held until *: promote a newer run*"])


def test_a_baseline_that_was_red_is_named_in_the_report(baseline: Suite) -> None:
    baseline.run(model("ten_wrong"), "--gate=numbers.exact_match >= 0.99", "--run=red")
    result = baseline.run(model("good"), GATE, "--baseline=red")
    assert result.ret == 0
    assert "red was not green itself: a gate is missed (exit status 10)" in baseline.rendered()
