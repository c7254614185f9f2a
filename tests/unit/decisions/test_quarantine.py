"""Cases in quarantine decide nothing until a day, and the verdict says so."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from evalsuite.core.errors import SettingsError
from evalsuite.decisions.quarantine import Quarantine, QuarantineEntry, decode_quarantine, read_quarantine
from evalsuite.decisions.verdict import Status, make_verdict
from evalsuite.output.reports.case_block import list_worst_cases

if TYPE_CHECKING:
    from pathlib import Path

    from evalsuite.decisions.verdict import Verdict
    from tests.unit.conftest import Desk

NOW = datetime(2026, 11, 22, tzinfo=UTC)
FILE = """
[[case]]
benchmark = "capitals"
sample = "b*"
reason = "the map service is being moved"
until = 2026-12-31

[[case]]
benchmark = "capitals"
sample = "g0"
reason = "was flaky"
until = 2026-11-21
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "quarantine.toml"
    file.write_text(FILE, encoding="utf-8")
    return file


def verdict(desk: Desk, quarantine: Quarantine, *gates: str, base: bool = False) -> Verdict:
    """Of eight cases that hold and two, named b0 and b1, that do not; in the baseline all held."""
    made = [desk.record(f"g{n}", {"m": 1.0}) for n in range(8)]
    made += [desk.record(f"b{n}", {"m": 0.0}, "failed") for n in range(2)]
    run = desk.run(made, settings={"gate": list(gates)}, quarantine=quarantine.encode())
    before = [desk.record(one.sample, {"m": 1.0}) for one in made]
    return make_verdict(run, *([desk.run(before, "base")] if base else []))


def test_a_gate_leaves_out_what_is_in_quarantine_and_the_verdict_says_so(desk: Desk, file: Path) -> None:
    found = verdict(desk, read_quarantine(file, NOW), "capitals.m >= 1")
    assert found.status is Status.GOOD
    assert found.decisions[0].estimate is not None
    assert found.decisions[0].estimate.n == 8
    assert found.counts["failed"] == 2
    held, ended = found.asides
    assert held == (
        "in quarantine until 2026-12-31: 2 cases of capitals b*, left out of every decision "
        "(the map service is being moved)"
    )
    assert "the quarantine of capitals g0 ended on 2026-11-21, and it decides again" in ended


def test_a_missed_gate_shows_no_case_in_quarantine(desk: Desk, file: Path) -> None:
    records = [desk.record("b0", {"m": 0.0}, "failed"), desk.record("g0", {"m": 0.0}, "failed")]
    quarantine = read_quarantine(file, NOW).encode()
    run = desk.run(records, settings={"gate": ["capitals.m >= 1"]}, quarantine=quarantine)
    (decision,) = make_verdict(run).decisions
    assert list_worst_cases(decision, run) == [records[1].case]


def test_failures_and_regressions_in_quarantine_fail_nothing(desk: Desk, file: Path) -> None:
    quarantine = read_quarantine(file, NOW)
    assert verdict(desk, quarantine).status is Status.GOOD
    (against,) = verdict(desk, quarantine, "capitals.m >= 0", base=True).against
    assert [result.difference for _, result, _ in against.found] == [0]


def test_a_case_decides_again_from_the_day_after_the_last_one(desk: Desk, file: Path) -> None:
    last, after = datetime(2026, 12, 31, tzinfo=UTC), datetime(2027, 1, 1, tzinfo=UTC)
    assert verdict(desk, read_quarantine(file, last), "capitals.m >= 1").status is Status.GOOD
    assert verdict(desk, read_quarantine(file, after), "capitals.m >= 1").status is Status.GATE_MISSED


def test_a_benchmark_that_is_wholly_in_quarantine_leaves_its_gate_without_data(desk: Desk) -> None:
    everything = Quarantine((QuarantineEntry("capitals", "*", "down", "2099-01-01"),), "2026-11-22")
    assert verdict(desk, everything, "capitals.m >= 0.1").status is Status.INCOMPLETE


def test_an_entry_that_names_nothing_is_told(desk: Desk) -> None:
    gone = Quarantine((QuarantineEntry("capitals", "nobody", "?", "2099-01-01"),), "2026-11-22")
    assert verdict(desk, gone).asides == ("the quarantine names capitals nobody, which this suite does not have",)
    shard = desk.run([desk.record("g0")], settings={"shard": "1/2"}, quarantine=gone.encode())
    assert make_verdict(shard).asides == ()
    elsewhere = Quarantine((QuarantineEntry("rivers", "b0", "?", "2099-01-01"),), "2026-11-22")
    shard = desk.run([desk.record("g0")], settings={"shard": "1/2"}, quarantine=elsewhere.encode())
    assert make_verdict(shard).asides == (), "another shard may have all cases of a small benchmark"
    misspelt = Quarantine((QuarantineEntry("capitols", "b0", "?", "2099-01-01"),), "2026-11-22")
    assert verdict(desk, misspelt).asides == (
        "the quarantine names capitols b0, and no case of capitols is here; did you mean capitals?",
    )


def test_a_quarantine_travels_as_plain_data(file: Path) -> None:
    quarantine = read_quarantine(file, NOW)
    assert decode_quarantine(quarantine.encode()) == quarantine
    assert decode_quarantine(None) == Quarantine()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("case = 3", "write [[case]]"),
        ("[[cases]]", "found 'cases'"),
        ("[[case]]\nbenchmark = 'b'", "it needs exactly benchmark, sample, reason, until"),
        (FILE.replace('"was flaky"', '" "'), "case 2: reason is ' '; write some words"),
        (FILE.replace("2026-12-31", '"2026-12-31"'), "case 1: until is '2026-12-31'; write a day without quotes"),
        (FILE.replace("2026-12-31", "2026-12-31T00:00:00Z"), "write a day without quotes"),
        ("[[case]", "not TOML"),
    ],
)
def test_a_file_of_another_form_is_one_message_that_says_what_to_write(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "q.toml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(SettingsError) as caught:
        read_quarantine(file, NOW)
    assert message in str(caught.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"q\.toml: No such file"):
        read_quarantine(tmp_path / "q.toml", NOW)
