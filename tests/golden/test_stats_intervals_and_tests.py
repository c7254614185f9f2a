"""Intervals, tests and corrections against published examples and other packages' results."""

from __future__ import annotations

import itertools
import math
from statistics import NormalDist

import numpy as np
import pytest
from scipy.stats import binomtest

from evalsuite import stats

# Student (1908): extra hours of sleep of ten patients under two drugs; R's data set `sleep`.
DRUG_1 = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0]
DRUG_2 = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4]

# Twelve values in six clusters, made up for the comparison with statsmodels 0.15.0.
CLUSTERED = [0.2, 0.4, 0.9, 1.0, 0.3, 0.35, 0.8, 0.75, 0.1, 0.6, 0.55, 0.65]
CLUSTERS = [0, 0, 1, 1, 2, 2, 2, 3, 4, 4, 5, 5]

# Cavo et al. (2012), complete response before and after therapy, as in Fagerland, Lydersen and Laake,
# "Statistical Analysis of Contingency Tables" (2017), chapter 8: 59 yes-yes, 6 yes-no, 16 no-yes, 80 no-no.
BEFORE = [1] * 65 + [0] * 96
AFTER = [1] * 59 + [0] * 6 + [1] * 16 + [0] * 80

# R's data set InsectSprays (Beall 1942): insects counted after six sprays.
SPRAYS = [
    [10, 7, 20, 14, 14, 12, 10, 23, 17, 20, 14, 13],
    [11, 17, 21, 11, 16, 14, 17, 17, 19, 21, 7, 13],
    [0, 1, 7, 2, 3, 1, 2, 1, 3, 0, 1, 4],
    [3, 5, 12, 6, 4, 3, 5, 5, 5, 5, 2, 4],
    [3, 5, 3, 5, 3, 6, 1, 1, 3, 2, 6, 4],
    [11, 9, 15, 22, 15, 16, 13, 10, 26, 26, 24, 13],
]


@pytest.mark.parametrize(
    ("successes", "n", "low", "high"),
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)],
)
def test_wilson_interval_is_that_of_newcombes_table(successes: int, n: int, low: float, high: float) -> None:
    # Newcombe, Statistics in Medicine 17 (1998) 857-872, table I, method 3.
    found = stats.wilson_interval(successes, n)
    assert (round(found.low, 4), round(found.high, 4)) == (low, high)


def test_paired_difference_is_that_of_students_sleep_data() -> None:
    # R: t.test(extra ~ group, paired) gives t = -4.0621, df = 9, p = 0.002833, [-2.4598858, -0.7001142].
    found = stats.paired_difference(DRUG_1, DRUG_2)
    assert found.difference == pytest.approx(1.58)
    assert (found.low, found.high) == pytest.approx((0.7001142, 2.4598858), abs=1e-7)
    assert found.pvalue == pytest.approx(0.002833, abs=5e-7)


def test_means_of_clusters_of_one_size_have_liang_and_zegers_error() -> None:
    found = stats.clustered_mean([0, 1, 1, 1, 0, 0], [1, 1, 2, 2, 3, 3])
    # Residual sums of 0, 1 and -1 with G / (G - 1) = 3/2, over 6 cases.
    assert found.error == pytest.approx(math.sqrt(2 * 3 / 2) / 6, abs=1e-12)
    assert found.freedom == 2


def test_unequal_clusters_have_the_cr2_variance_and_satterthwaites_degrees_of_freedom() -> None:
    # Bell and McCaffrey (2002) by the matrices of their definition: A_g = (I - H_gg)^(-1/2), df = tr(M)^2 / tr(M^2).
    values, n = np.array(CLUSTERED, dtype=float), len(CLUSTERED)
    groups = [np.array([at for at, name in enumerate(CLUSTERS) if name == one]) for one in dict.fromkeys(CLUSTERS)]
    variance, columns = 0.0, []
    for group in groups:
        size = len(group)
        roots, vectors = np.linalg.eigh(np.eye(size) - np.ones((size, size)) / n)
        adjustment = vectors @ np.diag(roots**-0.5) @ vectors.T
        weights = np.ones(size) @ adjustment / n
        variance += float(weights @ (values[group] - values.mean())) ** 2
        columns.append((np.eye(n) - np.ones((n, n)) / n)[group].T @ weights)
    inner = np.array(columns) @ np.array(columns).T
    found = stats.clustered_mean(CLUSTERED, CLUSTERS)
    assert found.error == pytest.approx(math.sqrt(variance), rel=1e-12)
    assert found.freedom == pytest.approx(np.trace(inner) ** 2 / np.trace(inner @ inner), rel=1e-12)


def test_an_exact_interval_is_that_of_clopper_and_pearson() -> None:
    # scipy 1.16: binomtest(k, n).proportion_ci(method="exact").
    for successes, n in ((0, 20), (1, 29), (9, 40), (20, 20)):
        found, known = (stats.exact_interval(successes, n), binomtest(successes, n).proportion_ci(method="exact"))
        assert (found.low, found.high) == pytest.approx((known.low, known.high), abs=1e-12)


def test_bootstrap_interval_comes_near_the_bca_interval_over_every_possible_resample() -> None:
    # Efron (1987), the formula of the BCa interval, by enumerating all 6^6 resamples instead of drawing some.
    values = [0.1, 0.2, 0.25, 0.4, 0.9, 1.0]
    mean, n, normal = sum(values) / 6, 6, NormalDist()
    means = sorted(sum(drawn) / n for drawn in itertools.product(values, repeat=n))
    below = sum(m < mean - 1e-12 for m in means) + 0.5 * sum(abs(m - mean) <= 1e-12 for m in means)
    bias = normal.inv_cdf(below / len(means))
    left_out = [(mean * n - value) / (n - 1) for value in values]
    skew = [mean - m for m in left_out]
    acceleration = sum(d**3 for d in skew) / (6 * sum(d**2 for d in skew) ** 1.5)

    def bound(probability: float) -> float:
        z = bias + normal.inv_cdf(probability)
        return means[int(normal.cdf(bias + z / (1 - acceleration * z)) * len(means))]

    found = stats.bootstrap_interval(values)
    assert found.low == pytest.approx(bound(0.025), abs=0.01)
    assert found.high == pytest.approx(bound(0.975), abs=0.01)


def test_mcnemars_exact_test_is_that_of_the_published_example() -> None:
    # R package contingencytables 3.0.0 and statsmodels 0.15.0 (mcnemar, exact=True).
    assert stats.mcnemar(BEFORE, AFTER) == pytest.approx(0.052478790283203125, rel=1e-12)


def test_mcnemars_exact_test_is_that_of_agrestis_approval_ratings() -> None:
    # Agresti (1990, p. 350): 794 and 570 agree, 150 and 86 do not. statsmodels 0.15.0: 3.7159361395713866e-05.
    before = [1] * (794 + 150) + [0] * (86 + 570)
    after = [1] * 794 + [0] * 150 + [1] * 86 + [0] * 570
    assert stats.mcnemar(before, after) == pytest.approx(3.7159361395713866e-05, rel=1e-10)


def test_tangos_interval_is_that_of_the_published_example() -> None:
    # R package contingencytables 3.0.0 for the table above: -0.0621 (-0.1240 to -0.0054); there the
    # difference is before minus after.
    found = stats.tango_interval(lost=6, won=16, n=161)
    assert (round(-found.high, 4), round(-found.low, 4)) == (-0.1240, -0.0054)


def test_comparison_of_shares_reports_the_published_examples_numbers() -> None:
    found = stats.compare_paired(BEFORE, AFTER, margin=0.05)
    assert (round(found.difference, 4), round(found.low, 4), round(found.high, 4)) == (0.0621, 0.0054, 0.1240)
    assert found.pvalue == pytest.approx(0.052479, abs=5e-7)


def test_holms_adjusted_pvalues_are_those_of_statsmodels() -> None:
    # statsmodels 0.15.0: multipletests(..., method="holm").
    assert stats.holm([0.01, 0.04, 0.03, 0.005, 0.2]) == pytest.approx([0.04, 0.09, 0.09, 0.025, 0.2])


def test_welchs_anova_is_that_of_the_insect_sprays() -> None:
    # R: oneway.test(count ~ spray, InsectSprays) gives F = 36.065, df = 5 and 30.043, p = 7.999e-12.
    found = stats.welch_anova(*SPRAYS)
    assert found.statistic == pytest.approx(36.065, abs=5e-4)
    assert found.pvalue == pytest.approx(7.999e-12, rel=1e-4)


def test_correlations_are_those_of_scipys_documentation() -> None:
    # Examples of pearsonr, spearmanr and kendalltau in the reference of scipy 1.17.
    found = stats.pearson([1, 2, 3, 4, 5], [10, 9, 2.5, 6, 4])
    assert (found.statistic, found.pvalue) == pytest.approx((-0.7426106572325056, 0.15055580885344558))
    found = stats.spearman([1, 2, 3, 4, 5], [5, 6, 7, 8, 7])
    assert (found.statistic, found.pvalue) == pytest.approx((0.8207826816681233, 0.08858700531354381))
    found = stats.kendall([12, 2, 1, 12, 2], [1, 4, 7, 1, 0])
    assert (found.statistic, found.pvalue) == pytest.approx((-0.47140452079103173, 0.2827454599327748))


def test_pass_at_k_is_that_of_its_formula_worked_by_hand() -> None:
    # Chen et al. (2021), equation 1: 1 - C(7, 5) / C(10, 5) = 1 - 21 / 252; C(3, 2) / C(5, 2) = 3 / 10.
    assert stats.pass_at_k(10, 3, 5) == pytest.approx(1 - 21 / 252)
    assert stats.pass_hat_k(5, 3, 2) == pytest.approx(0.3)


def test_cases_for_a_medium_effect_are_those_of_cohens_and_gpowers_tables() -> None:
    # d = 0.5, two-sided 5%, power 80%: 34 pairs (G*Power 3.1; R: pwr.t.test gives 33.36713).
    assert stats.required_n_mean(0.5, 1.0) == 34


def test_power_of_the_paired_t_test_is_that_of_statsmodels() -> None:
    # statsmodels 0.15.0, TTestPower with alternative="larger" and alpha=0.025.
    assert stats.power_mean(20, 1.0, 0.5) == pytest.approx(0.5644828966786231, rel=1e-9)
    assert stats.detectable_mean(50, 1.0) == pytest.approx(0.4041834520268627, rel=1e-6)
    assert stats.required_n_mean(0.1, 1.0) == math.ceil(786.8108626075098)


def test_power_of_mcnemars_test_is_the_sum_over_every_outcome() -> None:
    # 30 cases lose with probability 0.25, win with 0.05: the trinomial, outcome by outcome.
    n, loss, win, power = 30, 0.25, 0.05, 0.0
    for lost in range(n + 1):
        for won in range(min(lost, n - lost + 1)):
            tail = sum(math.comb(lost + won, k) for k in range(won + 1)) / 2 ** (lost + won)
            if 2 * tail <= 0.05:
                ways = math.comb(n, lost) * math.comb(n - lost, won)
                power += ways * loss**lost * win**won * (1 - loss - win) ** (n - lost - won)
    assert stats.power_share(n, loss + win, loss - win) == pytest.approx(power, rel=1e-10)
