"""A run over several machines: each decides nothing, and the joined report is that of the whole."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from evalsuite.cli import main
from tests.plugin.forty_numbers import CASES, GATE, REPEATED, first_screen, model

if TYPE_CHECKING:
    from tests.plugin.conftest import Suite


def same_but_for_time_and_name(report: str) -> list[str]:
    passing = r"^(\| date|\| wall time|`pytest|Made with)|^\|[- ]+\|"
    return [line for line in report.splitlines() if not re.search(passing, line)]


def shard(suite: Suite, part: int, of: int, *args: str) -> str:
    name = f"part{part}"
    suite.run(*args, f"--shard={part}/{of}", f"--run={name}")
    return name


def test_the_joined_report_of_shards_is_that_of_the_whole_run(
    numbers: Suite, parallel: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers.pytester.makepyfile(test_repeated=REPEATED)
    asked = (model("ten_wrong"), GATE, "--gate=numbers[low].exact_match >= 0.9")
    assert numbers.run(*parallel, *asked, "--run=whole").ret == 10
    parts = [shard(numbers, part, 3, *asked) for part in (1, 2, 3)]
    monkeypatch.chdir(numbers.path)
    assert main(["runs", "merge", *parts, "--to=joined"]) == 0
    assert same_but_for_time_and_name(numbers.report("joined")) == same_but_for_time_and_name(numbers.report("whole"))
    cases = [record["case"] for part in parts for record in numbers.records(part)]
    assert len(cases) == len(set(cases)) == CASES + 20
    assert main(["gate", "joined"]) == 10


def test_a_plain_test_that_failed_in_a_shard_fails_the_joined_verdict(
    numbers: Suite, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    numbers.pytester.makepyfile(test_plain="def test_plain(): assert not 1")
    parts = [shard(numbers, part, 2, model("good"), GATE) for part in (1, 2)]
    monkeypatch.chdir(numbers.path)
    assert main(["runs", "merge", *parts, "--to=joined"]) == 0
    assert "joined 2 shards; decide with: evalsuite gate joined\n" in capsys.readouterr().out
    assert main(["gate", "joined"]) == 1
    assert "other than failed cases" in capsys.readouterr().out
    comment = (numbers.path / "reports" / "joined" / "comment.md").read_text("utf-8")
    assert "other tests failed" in comment.splitlines()[0]


def test_a_shard_decides_no_gate_and_says_so(numbers: Suite) -> None:
    result = numbers.run(model("all_wrong"), GATE, "--shard=1/2")
    assert result.ret == 0
    words = "shard 1/2: gates are decided when `evalsuite runs merge` has joined all shards"
    result.stdout.fnmatch_lines([f"*{words}*"])
    assert words in first_screen(numbers.rendered())
    assert not numbers.summary()["gates"]


def test_a_shard_without_cases_has_not_passed(numbers: Suite) -> None:
    result = numbers.run(model("all_wrong"), GATE, "--limit=1", "--shard=2/2")
    assert result.ret == 5
    result.stdout.fnmatch_lines(["no cases ran (exit status 5)"])


def test_the_epochs_of_a_sample_stay_in_one_shard(numbers: Suite) -> None:
    numbers.pytester.makepyfile(test_repeated=REPEATED)
    for part in (1, 2):
        result = numbers.run(model("one_slip"), f"--shard={part}/2", "test_repeated.py")
        assert result.ret == 0
        assert len(numbers.records()) == 10
        assert len({record["sample"] for record in numbers.records()}) == 2


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        (["part1"], "shard 2/2 is missing"),
        (["part1", "part1"], "shard 2/2 is missing"),
        (["part1", "whole"], "is not a shard"),
        (["part1", "other"], "was run with another model than"),
    ],
)
def test_what_is_not_one_run_is_not_merged(
    numbers: Suite, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], parts: list[str], words: str
) -> None:
    shard(numbers, 1, 2, model("good"))
    numbers.run(model("good"), "--run=whole")
    numbers.run(model("two_wrong"), "--shard=2/2", "--run=other")
    monkeypatch.chdir(numbers.path)
    capsys.readouterr()
    assert main(["runs", "merge", *parts, "--to=joined"]) == 2
    assert words in capsys.readouterr().err
    assert not (numbers.path / "reports" / "joined").exists()


def test_a_merge_that_fails_leaves_no_run(numbers: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    parts = [shard(numbers, part, 2, model("good")) for part in (1, 2)]
    (numbers.path / "reports" / "part2" / "journal.sqlite").write_bytes(b"nothing of SQLite's" * 1000)
    monkeypatch.chdir(numbers.path)
    assert main(["runs", "merge", *parts, "--to=joined"]) == 2
    assert not (numbers.path / "reports" / "joined").exists()


def test_shards_of_another_number_of_samples_are_not_merged(
    numbers: Suite, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Sample 40 belongs to shard 1 of 2, which ran before the sample was added."""
    shard(numbers, 1, 2, model("good"), GATE)
    monkeypatch.setenv("LAST", str(CASES + 1))
    shard(numbers, 2, 2, model("good"), GATE)
    monkeypatch.chdir(numbers.path)
    capsys.readouterr()
    assert main(["runs", "merge", "part1", "part2", "--to=joined"]) == 2
    assert "part2 divided other samples of numbers than " in capsys.readouterr().err
    assert not (numbers.path / "reports" / "joined").exists()


@pytest.mark.parametrize("text", ["0/2", "3/2", "1", "a/b"])
def test_a_shard_that_is_none_is_refused(numbers: Suite, text: str) -> None:
    result = numbers.run(model("good"), f"--shard={text}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*--shard {text}: write K/N*"])
