"""Means from few labels and many judgements, as the report shows them."""

from __future__ import annotations

import pytest

from evalsuite.output.reports.judges.estimates import estimate_corrected_mean, tabulate_corrected_means
from evalsuite.stats.prediction_powered import ppi_mean

PEOPLE = [float(at % 3 == 0) for at in range(40)]
JUDGE = [float(at % 2 == 0) for at in range(200)]
SCORES = [(PEOPLE[at] if at < 40 else None, judge) for at, judge in enumerate(JUDGE)]


def test_the_three_estimates_use_what_they_say() -> None:
    found = estimate_corrected_mean("wins", SCORES, truth=0.35)
    assert found is not None
    direct = ppi_mean(PEOPLE, JUDGE[:40], JUDGE[40:])
    assert found.naive.value == 0.5
    assert found.people_only.value == pytest.approx(sum(PEOPLE) / 40)
    assert (found.corrected.value, found.corrected.low, found.corrected.high) == (
        direct.estimate,
        direct.low,
        direct.high,
    )
    assert (found.labelled, found.naive.n, found.tuning) == (40, 200, direct.tuning)


def test_a_judge_that_is_always_one_too_high_is_corrected() -> None:
    people = [float(at % 5) for at in range(200)]
    found = estimate_corrected_mean("score", [(one if at < 50 else None, one + 1) for at, one in enumerate(people)])
    assert found is not None
    assert found.naive.value == 3.0
    assert found.corrected.value == pytest.approx(2.0, abs=0.01)


@pytest.mark.parametrize(("labelled", "others"), [(29, 100), (100, 29), (0, 100)])
def test_with_too_few_labels_or_too_few_others_nothing_is_claimed(labelled: int, others: int) -> None:
    assert estimate_corrected_mean("wins", [(1.0, 1.0)] * labelled + [(None, 1.0)] * others) is None


def test_the_table_keeps_the_estimates_unrounded() -> None:
    found = estimate_corrected_mean("wins", SCORES, truth=0.35)
    assert found is not None
    table = tabulate_corrected_means("Corrected", [("mine", found)])
    assert table.rows[0] == ("mine", "wins", found.naive, found.people_only, found.corrected, found.tuning, 40, 0.35)


def test_repeated_cases_of_one_cluster_leave_every_interval_as_it_is() -> None:
    once = estimate_corrected_mean("wins", SCORES)
    again = estimate_corrected_mean("wins", SCORES * 5, clusters=list(range(len(SCORES))) * 5)
    assert once is not None
    assert again is not None
    for name in ("naive", "people_only", "corrected"):
        before, after = getattr(once, name), getattr(again, name)
        assert (after.value, after.low, after.high) == pytest.approx((before.value, before.low, before.high), abs=1e-3)
