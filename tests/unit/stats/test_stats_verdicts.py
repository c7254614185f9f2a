"""What a comparison says, and what follows from it."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from evalsuite import stats

SHARES = stats.compare_paired([1] * 60 + [0] * 40, [1] * 50 + [0] * 50, margin=0.05)


def compared(pvalue: float, no_worse: float, *, deteriorated: bool = True) -> stats.NonInferiority:
    return replace(SHARES, pvalue=pvalue, pvalue_no_worse=no_worse, deteriorated=deteriorated)


def test_binary_scores_are_compared_by_mcnemar_and_tango() -> None:
    assert SHARES.method == "exact McNemar test, Tango's score interval"
    assert (SHARES.n, SHARES.baseline, SHARES.candidate) == (100, 0.6, 0.5)
    assert SHARES.pvalue == pytest.approx(2 * 0.5**10)
    tango = stats.tango_interval(lost=10, won=0, n=100)
    assert (SHARES.low, SHARES.high) == (tango.low, tango.high)
    assert SHARES.deteriorated


def test_binary_scores_of_repeated_samples_are_compared_by_the_clustered_t_test() -> None:
    before, after, samples = [1, 1, 0, 1, 0, 0], [0, 1, 0, 0, 1, 0], ["a", "a", "b", "b", "c", "c"]
    found = stats.compare_paired(before, after, margin=0.05, clusters=samples)
    assert found.method == "paired t test, cluster-robust"
    plain = stats.paired_difference(before, after, clusters=samples)
    assert (found.difference, found.pvalue) == (plain.difference, plain.pvalue)
    alone = stats.compare_paired(before, after, margin=0.05, clusters=range(6))
    assert alone == stats.compare_paired(before, after, margin=0.05)


def test_four_losses_among_a_hundred_alike_are_no_proof_of_a_drop() -> None:
    before, after = [0.5] * 100, [0.4] * 4 + [0.5] * 96
    assert stats.paired_difference(before, after).pvalue < 0.05
    found = stats.compare_paired(before, after, margin=0.05)
    assert found.pvalue == pytest.approx(2 * 0.5**4)


def test_a_margin_is_not_excluded_by_fewer_cases_than_rare_whole_losses_could_have_missed() -> None:
    # No net loss among 200 although 2% lose all: 0.98^200. One among 300: P(Binomial(300, 0.02) <= 1). A gain
    # of 0.1 on average is undone together with the margin by 12% that lose all.
    same = stats.compare_paired([0.5] * 200, [0.5] * 200, margin=0.02)
    assert same.pvalue_no_worse == pytest.approx(0.98**200)
    one = stats.compare_paired([1.0] + [0.5] * 299, [0.0] + [0.5] * 299, margin=0.02)
    assert one.pvalue_no_worse == pytest.approx(0.98**300 + 300 * 0.02 * 0.98**299)
    gained = stats.compare_paired([0.5] * 50, [0.6] * 50, margin=0.02)
    assert gained.pvalue_no_worse == pytest.approx(0.88**50)


def test_an_interval_of_bounded_scores_stays_within_the_possible() -> None:
    found = stats.compare_paired([0.1, 0.9], [0.9, 0.1], margin=0.05)
    assert (found.low, found.high) == (-1.0, 1.0)


def test_what_no_drop_could_have_shown_is_reported_as_infinite() -> None:
    assert stats.compare_paired([0.2], [0.1], margin=0.05).detectable == math.inf
    assert stats.compare_paired([0.1, 0.9], [0.9, 0.1], margin=0.05).detectable == math.inf
    assert stats.compare_paired([1, 0], [1, 0], margin=0.05).detectable == math.inf


def test_where_nothing_varied_the_detectable_drop_is_that_of_whole_losses() -> None:
    found = stats.compare_paired([5.0] * 100, [5.0] * 100, margin=0.5, scale=9)
    assert found.detectable == pytest.approx(9 * stats.detectable_share(100, 0.0))


def test_detectable_drops_are_those_of_the_observed_spread() -> None:
    assert SHARES.detectable == stats.detectable_share(100, 0.1)
    before, after = [0.1, 0.5, 0.4, 0.8] * 10, [0.2, 0.4, 0.4, 0.6] * 10
    interval = stats.paired_difference(before, after)
    found = stats.compare_paired(before, after, margin=0.05)
    differences = [y - x for x, y in zip(before, after, strict=True)]
    mean = sum(differences) / 40
    deviation = math.sqrt(sum((d - mean) ** 2 for d in differences) / 39)
    # The median of chi-square with 39 degrees of freedom is 38.3354.
    widening = stats.power.compute_dispersion([*before, *after], 1.0) / 40
    drop = stats.detectable_mean(40, deviation * math.sqrt(39 / 38.3354), widening=widening)
    assert found.detectable == pytest.approx(drop, rel=1e-5)
    assert (found.low, found.high) == (interval.low, interval.high)


def test_an_excluded_margin_means_no_worse_even_where_a_small_drop_is_shown() -> None:
    assert stats.verdicts([compared(0.001, 0.001)]) == ["no worse"]


def test_a_shown_drop_that_may_exceed_the_margin_means_worse() -> None:
    assert stats.verdicts([compared(0.05, 0.6)]) == ["worse"]
    assert stats.verdicts([compared(0.051, 0.6)]) == ["undecided"]


def test_a_shown_improvement_is_never_worse() -> None:
    assert stats.verdicts([compared(0.001, 0.6, deteriorated=False)]) == ["undecided"]


def test_no_worse_takes_half_the_level_as_the_bound_of_a_two_sided_interval_does() -> None:
    assert stats.verdicts([compared(1.0, 0.025)]) == ["no worse"]
    assert stats.verdicts([compared(1.0, 0.026)]) == ["undecided"]
    assert stats.verdicts([compared(1.0, 0.026)], confidence=0.9) == ["no worse"]


def test_more_metrics_ask_for_stronger_evidence_of_each() -> None:
    # Holm: the smallest of four p-values is multiplied by four, the next by three.
    four = [compared(0.012, 0.6), compared(0.02, 0.6), compared(0.5, 0.6), compared(0.5, 0.006)]
    assert stats.verdicts(four) == ["worse", "undecided", "undecided", "no worse"]
    assert stats.verdicts(four[1:2]) == ["worse"]


def test_a_rise_of_errors_is_worse_where_less_is_better() -> None:
    before, after = [0] * 200, [1] * 30 + [0] * 170
    found = stats.compare_paired(before, after, margin=0.05, lower_is_better=True)
    assert found.difference == 0.15
    assert found.low > 0
    assert stats.verdicts([found]) == ["worse"]
    better = stats.compare_paired(before, after, margin=0.05)
    assert stats.verdicts([better]) == ["no worse"]
