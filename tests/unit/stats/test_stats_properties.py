"""What holds for statistics on any data."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from evalsuite import stats
from evalsuite.stats.agreement import compute_alpha_replicates

if TYPE_CHECKING:
    from collections.abc import Callable

modest = settings(max_examples=40, deadline=None)
few = settings(max_examples=12, deadline=None)

scores = st.floats(0, 1).map(lambda x: round(x, 3))
score_lists = st.lists(scores, min_size=2, max_size=30)
outcomes = st.lists(st.integers(0, 1), min_size=1, max_size=40)
paired_outcomes = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 1)), min_size=1, max_size=60)
paired_scores = st.lists(st.tuples(scores, scores), min_size=2, max_size=30)
attempts = st.integers(1, 30).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n), st.integers(1, n)))
sequences = st.sampled_from([stats.BinarySequence, stats.BoundedSequence])


@given(st.integers(1, 10**6), st.floats(0, 1))
@modest
def test_wilson_interval_holds_its_share_and_stays_within_bounds(n: int, share: float) -> None:
    successes = round(share * n)
    found = stats.wilson_interval(successes, n)
    assert 0 <= found.low <= successes / n <= found.high <= 1
    assert found.low < found.high


@given(st.integers(1, 500), st.floats(0, 1))
@modest
def test_wilson_interval_of_failures_is_the_mirror_image(n: int, share: float) -> None:
    one, other = (stats.wilson_interval(round(share * n), n), stats.wilson_interval(n - round(share * n), n))
    assert (one.low, one.high) == pytest.approx((1 - other.high, 1 - other.low))


@given(score_lists)
@modest
def test_a_cluster_of_its_own_for_each_value_changes_nothing(values: list[float]) -> None:
    for interval in (stats.mean_interval, stats.bootstrap_interval):
        assert interval(values, clusters=range(len(values))) == interval(values)


@given(outcomes)
@modest
def test_a_share_without_clusters_has_wilsons_interval_or_near_the_ends_the_exact_one(values: list[int]) -> None:
    few = min(sum(values), len(values) - sum(values)) < 30
    method = stats.exact_interval if few else stats.wilson_interval
    assert stats.share_interval(values) == method(sum(values), len(values))


@given(score_lists, st.integers(1, 4))
@modest
def test_a_betting_interval_holds_the_mean_within_the_bounds_and_is_never_one_point(
    values: list[float], size: int
) -> None:
    found = stats.betting_interval(values, clusters=[at // size for at in range(len(values))])
    assert 0 <= found.low <= math.fsum(values) / len(values) + 1e-9
    assert math.fsum(values) / len(values) - 1e-9 <= found.high <= 1
    assert found.low < found.high
    marks = stats.betting_interval([1 + 9 * value for value in values], bounds=(1, 10))
    plain = stats.betting_interval(values)
    assert (marks.low, marks.high) == pytest.approx((1 + 9 * plain.low, 1 + 9 * plain.high), abs=1e-6)


@given(st.lists(st.floats(0, 1e6), min_size=30, max_size=80))
@modest
def test_an_interval_of_amounts_begins_at_zero_or_above_and_holds_the_mean(values: list[float]) -> None:
    found = stats.amount_interval(values)
    mean = math.fsum(values) / len(values)
    assert 0 <= found.low <= mean * (1 + 1e-9)
    assert found.high >= mean * (1 - 1e-9)


def test_few_or_equal_amounts_have_no_upper_bound() -> None:
    assert stats.amount_interval([1.0, 2.0] * 14).high == math.inf
    assert stats.amount_interval([3.0] * 40).high == math.inf


@given(score_lists, st.integers(2, 4))
@modest
def test_copies_within_clusters_add_no_certainty(values: list[float], copies: int) -> None:
    clusters = [at for at in range(len(values)) for _ in range(copies)]
    repeated = stats.mean_interval([value for value in values for _ in range(copies)], clusters=clusters)
    once = stats.mean_interval(values)
    assert (repeated.low, repeated.high) == pytest.approx((once.low, once.high), abs=1e-9)


@given(score_lists, st.floats(-100, 100), st.floats(0.1, 10))
@modest
def test_mean_interval_moves_and_stretches_with_its_values(values: list[float], shift: float, factor: float) -> None:
    assume(max(values) - min(values) > 0.01)
    once = stats.mean_interval(values)
    moved = stats.mean_interval([shift + factor * value for value in values])
    expected = (shift + factor * once.low, shift + factor * once.high)
    assert (moved.low, moved.high) == pytest.approx(expected, abs=1e-6)


@given(score_lists)
@few
def test_bootstrap_interval_stays_within_the_values_and_repeats_itself(values: list[float]) -> None:
    interval = stats.bootstrap_interval(values)
    assert stats.bootstrap_interval(values) == interval
    if math.isfinite(interval.high):
        assert min(values) - 1e-12 <= interval.low < interval.high <= max(values) + 1e-12


@given(paired_scores)
@modest
def test_exchanging_the_runs_turns_the_difference(pairs: list[tuple[float, float]]) -> None:
    before, after = [x for x, _ in pairs], [y for _, y in pairs]
    one, other = stats.paired_difference(before, after), stats.paired_difference(after, before)
    assert (one.difference, one.low, one.high) == pytest.approx((-other.difference, -other.high, -other.low), abs=1e-12)
    assert one.pvalue == pytest.approx(other.pvalue)


@given(paired_scores)
@modest
def test_a_paired_pvalue_below_5_percent_means_an_interval_without_zero(pairs: list[tuple[float, float]]) -> None:
    found = stats.paired_difference([x for x, _ in pairs], [y for _, y in pairs])
    assume(found.low < found.high)
    assert (found.pvalue < 0.05) == (found.low > 0 or found.high < 0)


@given(paired_outcomes)
@modest
def test_mcnemar_does_not_care_which_run_comes_first(pairs: list[tuple[int, int]]) -> None:
    before, after = [x for x, _ in pairs], [y for _, y in pairs]
    assert stats.mcnemar(before, after) == stats.mcnemar(after, before)
    assert 0 < stats.mcnemar(before, after) <= 1


@given(paired_outcomes, st.floats(0.01, 0.5))
@modest
def test_tangos_interval_excludes_the_margin_exactly_where_his_test_does(
    pairs: list[tuple[int, int]], margin: float
) -> None:
    lost, won, n = sum(x > y for x, y in pairs), sum(x < y for x, y in pairs), len(pairs)
    found = stats.tango_interval(lost, won, n)
    assert -1 <= found.low <= (won - lost) / n <= found.high <= 1
    assume(abs(found.low + margin) > 1e-9)
    assert (stats.tango_pvalue(lost, won, n, margin) < 0.025) == (found.low > -margin)


@given(paired_outcomes)
@modest
def test_where_less_is_better_the_same_change_is_judged_the_other_way(pairs: list[tuple[int, int]]) -> None:
    right, now = [x for x, _ in pairs], [y for _, y in pairs]
    one = stats.compare_paired(right, now, margin=0.1)
    other = stats.compare_paired([1 - x for x in right], [1 - x for x in now], margin=0.1, lower_is_better=True)
    assert (other.difference, other.low, other.high) == pytest.approx((-one.difference, -one.high, -one.low))
    assert (other.pvalue, other.pvalue_no_worse) == (one.pvalue, one.pvalue_no_worse)
    assert (other.deteriorated, other.detectable) == (one.deteriorated, one.detectable)
    assert other.baseline == pytest.approx(1 - one.baseline)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
@modest
def test_holm_corrects_upwards_keeps_the_order_and_is_no_worse_than_bonferroni(pvalues: list[float]) -> None:
    adjusted = stats.holm(pvalues)
    assert all(p <= q <= min(1.0, len(pvalues) * p) + 1e-15 for p, q in zip(pvalues, adjusted, strict=True))
    ranked = [q for _, q in sorted(zip(pvalues, adjusted, strict=True))]
    assert ranked == sorted(ranked)


@given(st.lists(st.tuples(st.integers(1, 4), st.integers(1, 4)), min_size=2, max_size=40))
@modest
def test_kappa_does_not_care_who_rates_first_and_lies_in_its_interval(pairs: list[tuple[int, int]]) -> None:
    a, b = [x for x, _ in pairs], [y for _, y in pairs]
    plain = stats.cohen_kappa(a, b)
    assume(not math.isnan(plain))
    assert stats.cohen_kappa(b, a) == pytest.approx(plain)
    found = stats.clustered_kappa(a, b)
    assert found.value == plain
    assert math.isnan(found.low) or -1 <= found.low <= found.value + 1e-12
    assert math.isnan(found.high) or found.value - 1e-12 <= found.high <= 1


@given(st.lists(st.lists(st.integers(1, 5) | st.none(), min_size=12, max_size=12), min_size=2, max_size=4))
@modest
def test_alpha_does_not_care_about_the_order_of_raters_or_items(ratings: list[list[int | None]]) -> None:
    assume(sum(sum(rater[at] is not None for rater in ratings) > 1 for at in range(12)) > 1)
    alpha = stats.krippendorff_alpha(ratings, level="ordinal")
    turned = stats.krippendorff_alpha([rater[::-1] for rater in ratings[::-1]], level="ordinal")
    assert alpha == pytest.approx(turned, nan_ok=True)
    assert math.isnan(alpha) or alpha <= 1


@given(attempts)
@modest
def test_the_share_of_right_attempts_lies_between_both_pass_rates(counts: tuple[int, int, int]) -> None:
    n, c, k = counts
    assert 0 <= stats.pass_hat_k(n, c, k) <= c / n + 1e-12 <= stats.pass_at_k(n, c, k) + 2e-12


@given(st.lists(st.tuples(scores, scores), min_size=2, max_size=20), score_lists)
@modest
def test_a_prediction_powered_interval_is_not_wider_than_the_labels_own(
    labelled: list[tuple[float, float]], judged_only: list[float]
) -> None:
    labels, judged = [x for x, _ in labelled], [y for _, y in labelled]
    found = stats.ppi_mean(labels, judged, judged_only)
    assert 0 <= found.tuning <= 1
    assert found.low <= found.estimate <= found.high
    same = stats.ppi_mean([x + 10 for x in labels], [y + 10 for y in judged], [y + 10 for y in judged_only])
    assert same.estimate == pytest.approx(found.estimate + 10)


@given(st.integers(8, 3000), st.floats(0.01, 0.6), st.floats(0.5, 0.95))
@few
def test_the_detectable_drop_of_a_share_has_the_power_it_is_reported_with(
    n: int, discordance: float, power: float
) -> None:
    drop = stats.detectable_share(n, discordance, power=power)
    assume(math.isfinite(drop))
    for part, shown in ((1.0, True), (0.9998, False)):
        differing = min(1.0, discordance + drop * part)
        assert (stats.power_share(n, differing, drop * part) >= power) == shown


@given(st.integers(2, 5000), st.floats(0.01, 10), st.floats(0.5, 0.95))
@modest
def test_the_detectable_drop_of_a_mean_has_the_power_it_is_reported_with(
    n: int, deviation: float, power: float
) -> None:
    drop = stats.detectable_mean(n, deviation, power=power)
    assert stats.power_mean(n, deviation, drop) == pytest.approx(power, abs=1e-6)


@given(st.floats(0.03, 0.4), st.floats(0.0, 0.4))
@few
def test_one_case_fewer_than_required_has_not_the_power(drop: float, more: float) -> None:
    n = stats.required_n_share(drop, drop + more)
    assert stats.power_share(n, drop + more, drop) >= 0.8 > stats.power_share(n - 1, drop + more, drop)
    n = stats.required_n_mean(drop, 0.5)
    assert stats.power_mean(n, 0.5, drop) >= 0.8 > stats.power_mean(n - 1, 0.5, drop)


@given(sequences, outcomes)
@modest
def test_a_sequences_interval_shrinks_until_nothing_is_left_of_it(
    make: Callable[..., stats.ConfidenceSequence], values: list[int]
) -> None:
    sequence = make()
    low, high = sequence.low, sequence.high
    for n, value in enumerate(values, 1):
        sequence.add(value)
        assert low <= sequence.low < sequence.high <= high or (sequence.low, sequence.high) == (0, 1)
        low, high = sequence.low, sequence.high
        assert sequence.n == n
        assert sequence.mean == pytest.approx(sum(values[:n]) / n)


@given(sequences, outcomes)
@modest
def test_a_sequence_of_the_opposite_values_is_the_mirror_image(
    make: Callable[..., stats.ConfidenceSequence], values: list[int]
) -> None:
    one, other = make(), make()
    for value in values:
        one.add(value)
        other.add(1 - value)
    assert (one.low, one.high) == pytest.approx((1 - other.high, 1 - other.low))


@pytest.mark.parametrize("make", [stats.BinarySequence, stats.BoundedSequence])
def test_answers_that_change_midway_take_back_what_the_first_half_proved(
    make: Callable[..., stats.ConfidenceSequence],
) -> None:
    sequence = make()
    for _ in range(40):
        sequence.add(1)
    assert sequence.low > 0.8
    for _ in range(400):
        sequence.add(0)
    assert (sequence.low, sequence.high) == (0.0, 1.0)


@given(
    st.lists(
        st.tuples(st.lists(st.integers(1, 4), min_size=1, max_size=4), st.integers(0, 5)), min_size=2, max_size=15
    ),
    st.sampled_from(["nominal", "interval"]),
)
@modest
def test_alpha_without_a_cluster_is_alpha_of_what_is_left(
    things: list[tuple[list[int], int]], level: Literal["nominal", "interval"]
) -> None:
    def alpha(left: list[list[int]]) -> float:
        if not any(len(ratings) > 1 for ratings in left):
            return math.nan
        raters = [[ratings[at] if at < len(ratings) else None for ratings in left] for at in range(4)]
        return stats.krippendorff_alpha(raters, level=level)

    clusters = [cluster for _, cluster in things]
    whole, without = compute_alpha_replicates([ratings for ratings, _ in things], clusters, level=level)
    assert whole == pytest.approx(alpha([ratings for ratings, _ in things]), nan_ok=True)
    left_out = [alpha([ratings for ratings, cluster in things if cluster != gone]) for gone in dict.fromkeys(clusters)]
    assert without == pytest.approx(left_out, nan_ok=True)
