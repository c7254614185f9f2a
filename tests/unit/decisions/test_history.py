"""Releases held against a reference that does not move: slow drift is found, and luck is not called one."""

from __future__ import annotations

import itertools
import json
from typing import TYPE_CHECKING

import numpy as np
import pytest

from evalsuite.cli import main
from evalsuite.decisions.baseline import compare_to_baselines
from evalsuite.decisions.comparison import ComparisonRules
from evalsuite.decisions.gates import parse_gate
from evalsuite.decisions.history import compute_test_level, track_metrics
from evalsuite.decisions.quarantine import Quarantine, QuarantineEntry
from evalsuite.output.reports.compare import describe_drifts, write_history
from evalsuite.stats import mcnemar

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from evalsuite.results.runs import Run
    from tests.unit.conftest import Desk

QUESTIONS = 600
GATE = "capitals.m >= 0.5"


def release(desk: Desk, number: int, points: int) -> Run:
    """A run that fell from 90% by so many points; hard questions for it change at random."""
    hardness, luck = np.random.default_rng(1).random(QUESTIONS), np.random.default_rng(100 + number)
    right = hardness + luck.normal(0, 0.1, QUESTIONS) < 0.9 - points / 100
    records = [desk.record(f"{n:03}", {"m": float(score)}) for n, score in enumerate(right)]
    return desk.run(records, f"v{number:02}", settings={"gate": [GATE]})


@pytest.fixture
def falling(desk: Desk) -> Sequence[Run]:
    return [release(desk, number, number) for number in range(11)]


def test_ten_falls_of_one_point_are_a_drift_that_gates_on_the_last_release_pass(falling: Sequence[Run]) -> None:
    gates = [parse_gate(GATE)]
    steps = [
        compare_to_baselines([before], after, gates, ComparisonRules())[0].found[0][2]
        for before, after in itertools.pairwise(falling)
    ]
    assert steps.count("worse") <= 1  # by the luck of one draw; nine gates and more are passed
    (course,) = track_metrics(falling, falling[:1], ComparisonRules())
    assert course.list_drifts(latest_only=True)
    assert not any(standing.drifted for standing in course.releases[1].standings.values())


def test_a_steady_model_has_no_drift(desk: Desk, tmp_path: Path) -> None:
    runs = [release(desk, number, 0) for number in range(4)]
    courses = track_metrics(runs, runs[:1], ComparisonRules())
    assert describe_drifts(courses) == "No drift from a reference is shown."
    text = write_history(runs, courses, tmp_path / "history").read_text("utf-8")
    assert "v03" in text


def test_several_references_are_each_held_against_later_releases(desk: Desk) -> None:
    runs = [release(desk, number, points) for number, points in enumerate((0, 10, 10))]
    (course,) = track_metrics(runs, runs[:2], ComparisonRules())
    assert set(course.releases[2].standings) == {"v00", "v01"}
    assert set(course.releases[1].standings) == {"v00"}
    assert course.releases[2].standings["v00"].drifted
    assert not course.releases[2].standings["v01"].drifted


def test_a_quarantine_of_the_newest_release_leaves_nothing_out_of_earlier_ones(desk: Desk) -> None:
    records = [desk.record(f"g{n}", {"m": 1.0}) for n in range(8)]
    held = Quarantine((QuarantineEntry("capitals", "g0", "flaky", "2099-01-01"),), "2026-11-22").encode()
    runs = [desk.run(records, "v00"), desk.run(records, "v01"), desk.run(records, "v02", quarantine=held)]
    (course,) = track_metrics(runs, runs[:1], ComparisonRules())
    compared = [release.standings["v00"].result for release in course.releases[1:]]
    assert [result and result.n for result in compared] == [8, 7]


def test_the_levels_of_all_looks_sum_to_that_of_the_test() -> None:
    assert sum(compute_test_level(look) for look in range(1, 10_000)) == pytest.approx(0.05, rel=1e-3)


def test_a_model_that_does_not_change_is_rarely_ever_called_drifting() -> None:
    rng, alarms, runs = np.random.default_rng(5), 0, 200
    for _ in range(runs):
        chance = rng.beta(2, 1, 300)  # of being right, by question; every release draws anew
        reference = rng.random(300) < chance
        looks = [rng.random(300) < chance for _ in range(12)]
        alarms += any(
            mcnemar(reference.astype(float), now.astype(float)) <= compute_test_level(look)
            for look, now in enumerate(looks, 1)
        )
    assert alarms / runs <= 0.05 + 0.03  # two standard errors; either direction counts here


def test_the_list_of_runs_has_no_cost_where_a_price_is_unknown(desk: Desk, capsys: pytest.CaptureFixture[str]) -> None:
    for name, usage in (("free", {"cost": 0.0}), ("unknown", {"cost": 0.0, "unpriced": 2})):
        folder = desk.folder([desk.record("fr")], name)
        (folder.path / "summary.json").write_text(json.dumps({"usage": usage, "verdict": "passed"}), "utf-8")
    assert main(["runs", "--reports", str(desk.reports)]) == 0
    rows = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines()[2:])
    assert ("0.0000" in rows["free"], "0.0000" in rows["unknown"]) == (True, False)


def test_pruning_keeps_the_baselines_of_the_runs_that_stay(desk: Desk, capsys: pytest.CaptureFixture[str]) -> None:
    for day, (name, baselines) in enumerate([("protected", []), ("old", []), ("new", ["protected"])], 1):
        settings = {"baseline": baselines}
        desk.folder([desk.record("fr")], name, started=f"2026-01-0{day}T00:00:00+00:00", settings=settings)
    assert main(["runs", "prune", "--reports", str(desk.reports), "--keep", "1", "--yes"]) == 0
    assert sorted(folder.name for folder in desk.reports.iterdir()) == ["new", "protected"]
    assert "removed" in capsys.readouterr().out


def test_pruning_keeps_the_baselines_of_runs_that_are_also_kept_and_leaves_links(desk: Desk, tmp_path: Path) -> None:
    for day, (name, baselines) in enumerate([("before", []), ("also", ["before"]), ("old", []), ("new", [])], 1):
        settings = {"baseline": baselines}
        desk.folder([desk.record("fr")], name, started=f"2026-01-0{day}T00:00:00+00:00", settings=settings)
    desk.folder([desk.record("fr")], "first", started="2025-01-01T00:00:00+00:00").path.rename(tmp_path / "elsewhere")
    (desk.reports / "first").symlink_to(tmp_path / "elsewhere")
    options = ["--reports", str(desk.reports), "--keep", "1", "--also", "also", "--yes"]
    assert main(["runs", "prune", *options]) == 0
    assert sorted(folder.name for folder in desk.reports.iterdir()) == ["also", "before", "first", "new"]
