"""What every statistic does with too little, the wrong or the pathological."""

from __future__ import annotations

import math
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from evalsuite import stats

if TYPE_CHECKING:
    from collections.abc import Callable


def compare(a: Any, b: Any) -> object:
    return stats.compare_paired(a, b, margin=0.1)


def ppi_of_labels(a: Any, b: Any) -> object:
    return stats.ppi_mean(a, b, [0.0, 1.0])


def alpha(a: Any, b: Any) -> object:
    return stats.krippendorff_alpha([a, b], level="interval")


def anova(values: Any) -> object:
    return stats.welch_anova(values, [1.0, 2.0])


def ppi_of_the_rest(values: Any) -> object:
    return stats.ppi_mean([0.0, 1.0], [0.0, 1.0], values)


TWO_LISTS: list[Callable[[Any, Any], object]] = [
    stats.paired_difference,
    stats.mcnemar,
    stats.cohen_kappa,
    stats.clustered_kappa,
    stats.pearson,
    stats.spearman,
    stats.kendall,
    compare,
    ppi_of_labels,
    alpha,
]
ONE_LIST: list[Callable[[Any], object]] = [
    stats.mean_interval,
    stats.share_interval,
    stats.bootstrap_interval,
    stats.holm,
    anova,
    ppi_of_the_rest,
]


@pytest.mark.parametrize("statistic", TWO_LISTS)
def test_lists_of_different_length_are_refused(statistic: Callable[[Any, Any], object]) -> None:
    with pytest.raises(ValueError, match=r"entries|entry|lengths"):
        statistic([1, 0, 1], [1, 0])


@pytest.mark.parametrize("statistic", TWO_LISTS)
def test_two_empty_lists_are_refused(statistic: Callable[[Any, Any], object]) -> None:
    with pytest.raises(ValueError, match=r"empty|no item"):
        statistic([], [])


@pytest.mark.parametrize("statistic", TWO_LISTS[:-1])
def test_a_nan_in_either_list_is_refused_with_its_place(statistic: Callable[[Any, Any], object]) -> None:
    for lists in (([1, math.nan, 0], [1, 0, 1]), ([1, 0, 1], [1, math.nan, 0])):
        with pytest.raises(ValueError, match=r"\[1\] is nan"):
            statistic(*lists)


@pytest.mark.parametrize("statistic", ONE_LIST)
@pytest.mark.parametrize(
    ("values", "message"),
    [([], "is empty"), ([0.5, math.nan], r"\[1\] is nan"), ([math.inf], "is inf"), ([[1.0]], "dimensions")],
)
def test_a_list_that_is_no_list_of_numbers_is_refused(
    statistic: Callable[[Any], object], values: list[Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        statistic(values)


@pytest.mark.parametrize("confidence", [0, 1, -0.5, 95, math.nan])
def test_a_confidence_that_is_no_probability_is_refused(confidence: float) -> None:
    for make in (
        lambda: stats.wilson_interval(1, 2, confidence),
        lambda: stats.mean_interval([1, 2], confidence=confidence),
        lambda: stats.share_interval([1, 0, 1], clusters=[1, 1, 2], confidence=confidence),
        lambda: stats.bootstrap_interval([1, 2], confidence=confidence),
        lambda: stats.paired_difference([1], [2], confidence=confidence),
        lambda: stats.tango_interval(1, 1, 9, confidence),
        lambda: stats.compare_paired([1.0, 2.0], [1.5, 2.0], margin=0.1, confidence=confidence),
        lambda: stats.BinarySequence(confidence),
        lambda: stats.BoundedSequence(confidence=confidence),
        lambda: stats.power_share(9, 0.1, 0.1, confidence),
        lambda: stats.clustered_kappa("abb", "abb", confidence=confidence),
    ):
        with pytest.raises(ValueError, match="confidence must lie strictly between 0 and 1"):
            make()


@pytest.mark.parametrize(("successes", "n"), [(0, 0), (-1, 3), (4, 3), (math.nan, 3), (1, math.nan)])
def test_a_share_that_cannot_be_is_refused(successes: float, n: float) -> None:
    with pytest.raises(ValueError, match="n="):
        stats.wilson_interval(successes, n)


def test_a_single_value_bounds_nothing() -> None:
    line = stats.Interval(-math.inf, math.inf)
    assert stats.mean_interval([0.5]) == line
    assert stats.bootstrap_interval([0.5]) == line
    assert stats.mean_interval([0.1, 0.9], clusters=["a", "a"]) == line
    found = stats.paired_difference([0.2], [0.9])
    assert (found.low, found.high, found.pvalue) == (-math.inf, math.inf, 1.0)


def test_equal_values_bound_nothing() -> None:
    for values in ([0.1] * 7, [0.3, 0.1 + 0.2] * 5):
        for interval in (stats.mean_interval(values), stats.bootstrap_interval(values)):
            assert interval == stats.Interval(-math.inf, math.inf)


def test_equal_clusters_bound_nothing_however_their_values_differ() -> None:
    values, clusters = [0.1, 0.2, 0.6] * 4, [at // 3 for at in range(12)]
    for interval in (
        stats.mean_interval(values, clusters=clusters),
        stats.bootstrap_interval(values, clusters=clusters),
    ):
        assert interval == stats.Interval(-math.inf, math.inf)


def test_a_share_of_clustered_equal_values_is_bounded_by_the_number_of_clusters() -> None:
    # Ten samples, five epochs each, all right: no better known than by ten cases, and a little worse.
    found = stats.share_interval([1] * 50, clusters=[at // 5 for at in range(50)])
    assert found.high == 1.0
    assert 0.6 < found.low < stats.wilson_interval(10, 10).low
    assert stats.share_interval([1] * 5, clusters=["only"] * 5) == stats.Interval(0.0, 1.0)


def test_equal_differences_have_the_pvalue_of_the_sign_test() -> None:
    found = stats.paired_difference([0.1, 0.2, 0.3], [0.2, 0.3, 0.4])
    assert found.pvalue == pytest.approx(2 * 0.5**3)
    assert (found.low, found.high) == pytest.approx((0.1, 0.1))


def test_equal_differences_on_a_scale_have_the_baseline_comparison_s_interval() -> None:
    before, after, clusters = [0.1, 0.2, 0.3, 0.4], [0.2, 0.3, 0.4, 0.5], ["a", "a", "b", "b"]
    found = stats.paired_difference(before, after, clusters=clusters, scale=1.0)
    other = stats.compare_paired(before, after, margin=0.1, clusters=clusters)
    assert (found.low, found.high) == (other.low, other.high)
    assert found.low < 0.0
    assert found.high > 0.5


def test_no_difference_at_all_has_a_pvalue_of_one() -> None:
    assert stats.paired_difference([0.1, 0.2], [0.1, 0.2]).pvalue == 1.0
    assert stats.mcnemar([1, 0, 1], [1, 0, 1]) == 1.0


def test_scores_other_than_0_and_1_are_no_matter_for_mcnemar() -> None:
    with pytest.raises(ValueError, match=r"only 0 and 1; found 0\.5"):
        stats.mcnemar([1, 0.5], [1, 0])


def test_kappa_of_raters_who_know_one_label_only_is_undefined() -> None:
    assert math.isnan(stats.cohen_kappa(["A", "A"], ["A", "A"]))
    found = stats.clustered_kappa(["A", "A"], ["A", "A"])
    assert math.isnan(found.value)
    assert math.isnan(found.low)
    assert found.n == 2


def test_a_judge_who_always_prefers_the_first_answer_gets_kappa_zero() -> None:
    people = ["first", "second", "tie", "first", "second"]
    assert stats.cohen_kappa(people, ["first"] * 5) == 0.0
    assert stats.clustered_kappa(people, ["first"] * 5).value == 0.0


def test_perfect_agreement_of_four_items_proves_nothing() -> None:
    kappa = stats.clustered_kappa("abab", "abab")
    assert (kappa.value, kappa.high) == (1.0, 1.0)
    assert kappa.low < 0


def test_alpha_of_one_value_is_undefined_and_of_single_ratings_refused() -> None:
    assert math.isnan(stats.krippendorff_alpha([[1, 1], [1, None]], level="nominal"))
    with pytest.raises(ValueError, match="no item has two ratings"):
        stats.krippendorff_alpha([[1, None], [None, 2]], level="nominal")
    with pytest.raises(ValueError, match="at least two raters"):
        stats.krippendorff_alpha([[1, 2]], level="nominal")
    with pytest.raises(ValueError, match="interval ratings must be finite; found inf"):
        stats.krippendorff_alpha([[1.0, math.inf, 2.0], [1.0, 3.0, 2.0]], level="interval")
    assert stats.krippendorff_alpha([[1.0, math.inf, 2.0], [1.0, math.inf, 2.0]], level="ordinal") == 1.0
    with pytest.raises(ValueError, match="interval ratings must be numbers"):
        stats.krippendorff_alpha([["good", "bad"], ["good", "good"]], level="interval")


@pytest.mark.parametrize("correlation", [stats.pearson, stats.spearman, stats.kendall])
def test_correlation_with_a_constant_or_of_two_points_is_undefined(
    correlation: Callable[[list[float], list[float]], stats.Significance],
) -> None:
    for x, y in (([1.0, 2.0, 3.0], [5.0, 5.0, 5.0]), ([1.0, 2.0], [3.0, 4.0])):
        found = correlation(x, y)
        assert math.isnan(found.statistic)
        assert math.isnan(found.pvalue)


def test_welchs_anova_needs_two_groups_that_vary() -> None:
    assert math.isnan(stats.welch_anova([1.0, 1.0], [1.0, 2.0]).pvalue)
    assert math.isnan(stats.welch_anova([1.0], [1.0, 2.0]).statistic)
    with pytest.raises(ValueError, match="at least two groups; got 1"):
        stats.welch_anova([1.0, 2.0])


@pytest.mark.parametrize(("n", "c", "k"), [(0, 0, 1), (5, 6, 1), (5, -1, 1), (5, 2, 6), (5, 2, 0)])
def test_attempts_that_were_not_made_are_refused(n: int, c: int, k: int) -> None:
    for estimate in (stats.pass_at_k, stats.pass_hat_k):
        with pytest.raises(ValueError, match=f"n={n}"):
            estimate(n, c, k)


@pytest.mark.parametrize("margin", [0.0, -0.1, 1.0, math.nan])
def test_a_margin_outside_of_the_scores_range_is_refused(margin: float) -> None:
    with pytest.raises(ValueError, match="margin must lie between 0 and the score's range of 1"):
        stats.compare_paired([0, 1], [1, 1], margin=margin)


def test_differences_beyond_the_scale_are_refused() -> None:
    with pytest.raises(ValueError, match=r"differences must lie in \[-1, 1\]; found -6"):
        stats.compare_paired([9.0, 5.0], [3.0, 5.0], margin=0.5)
    assert stats.compare_paired([9.0, 5.0], [3.0, 5.0], margin=0.5, scale=9).difference == -3.0


def test_a_judge_who_never_varies_leaves_peoples_labels_alone() -> None:
    found = stats.ppi_mean([0.0, 1.0, 1.0, 0.0], [1.0] * 4, [1.0] * 50)
    assert found.tuning == 0.0
    assert found.estimate == 0.5


def test_a_single_label_bounds_nothing() -> None:
    found = stats.ppi_mean([1.0], [0.8], [0.5, 0.9])
    assert (found.low, found.high) == (0.0, 1.0)


def test_labels_of_a_single_cluster_bound_nothing_and_clusters_of_one_case_change_nothing() -> None:
    sides: tuple[list[float], list[float], list[float]] = ([1.0, 0.0, 1.0, 1.0], [0.8, 0.4, 0.9, 1.0], [0.5, 0.9, 0.2])
    found = stats.ppi_mean(*sides, clusters=([7, 7, 7, 7], [1, 2, 3]))
    assert (found.low, found.high) == (0.0, 1.0)
    alone = stats.ppi_mean(*sides, clusters=([1, 2, 3, 4], "abc"))
    plain = stats.ppi_mean(*sides)
    assert (alone.low, alone.high) == pytest.approx((plain.low, plain.high))
    with pytest.raises(ValueError, match="values and clusters"):
        stats.ppi_mean(*sides, clusters=([1, 2, 3, 4], [1, 2]))


@pytest.mark.parametrize("value", [0.5, -1, 2, math.nan])
def test_a_binary_sequence_refuses_other_values_and_stays_as_it_was(value: float) -> None:
    sequence = stats.BinarySequence()
    sequence.add(1)
    before = (sequence.n, sequence.low, sequence.high)
    with pytest.raises(ValueError, match="takes 0 and 1"):
        sequence.add(value)
    assert (sequence.n, sequence.low, sequence.high) == before


@pytest.mark.parametrize("value", [-0.1, 1.1, math.nan, math.inf])
def test_a_bounded_sequence_refuses_values_out_of_range_and_stays_as_it_was(value: float) -> None:
    sequence = stats.BoundedSequence()
    sequence.add(0.4)
    before = (sequence.n, sequence.mean)
    with pytest.raises(ValueError, match=r"scores lie in \[0, 1\]"):
        sequence.add(value)
    assert (sequence.n, sequence.mean) == before


def test_a_range_with_low_at_or_above_high_is_refused() -> None:
    for low, high in ((1.0, 1.0), (2.0, 1.0), (math.nan, 1.0), (0.0, math.inf)):
        with pytest.raises(ValueError, match="low below high"):
            stats.BoundedSequence(low, high)


def test_power_is_refused_where_nothing_could_be_shown() -> None:
    for call in (
        lambda: stats.power_share(0, 0.1, 0.1),
        lambda: stats.power_share(9, 1.1, 0.1),
        lambda: stats.power_share(9, 0.1, 0.0),
        lambda: stats.power_mean(1, 1.0, 0.1),
        lambda: stats.power_mean(9, 0.0, 0.1),
        lambda: stats.power_mean(9, 1.0, 0.0),
        lambda: stats.detectable_mean(9, 1.0, power=1.0),
        lambda: stats.detectable_share(9, 0.1, power=0.0),
        lambda: stats.required_n_mean(1e-9, 1.0),
    ):
        with pytest.raises(ValueError, match=r"power|cases would be needed"):
            call()


def test_five_cases_could_not_show_even_the_loss_of_all() -> None:
    # 2 * 0.5^5 is above 5%; six losses are the fewest that McNemar's test can call significant.
    assert stats.detectable_share(5, 0.0) == math.inf
    assert stats.detectable_share(6, 0.0) < 1


def test_common_statistics_import_neither_numpy_nor_scipy() -> None:
    code = (
        "import sys; from evalsuite import stats; stats.wilson_interval(3, 9); "
        "stats.BinarySequence().add(1); stats.tango_interval(1, 2, 9); stats.cohen_kappa('ab', 'aa'); "
        "assert not {'numpy', 'scipy'} & set(sys.modules); stats.mean_interval([1, 2]); "
        "assert 'scipy.stats' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
