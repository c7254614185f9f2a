"""Agreement and prediction-powered inference against published examples and other packages' results."""

from __future__ import annotations

import math

import pytest

from evalsuite import stats
from evalsuite.results.judge_labels import compute_weighted_kappa

# Krippendorff, "Computing Krippendorff's Alpha-Reliability" (2011), example C: four observers, twelve units.
NONE = None
OBSERVERS: list[list[int | None]] = [
    [1, 2, 3, 3, 2, 1, 4, 1, 2, NONE, NONE, NONE],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, NONE, 3],
    [NONE, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, NONE],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, NONE],
]

# Four made-up raters with disagreements and gaps, for the comparison with krippendorff 0.9.0.
GAP = math.nan
RATERS: list[list[float]] = [
    [GAP, 4, 2, 5, 3, 1, 4, GAP, 5, 3, 1, 4, 2, 5, GAP, 1, 4, 2, 5, 3],
    [1, 4, 2, 5, 1, 1, 4, 2, 1, 3, 1, 4, 1, 5, 2, 1, 1, 2, 5, 3],
    [3, 2, 2, 5, 3, 1, 2, 2, 5, 3, 1, 2, 2, 5, 1, 1, 2, 2, 5, 3],
    [4, 3, GAP, 1, 5, 4, 3, 2, 1, GAP, 4, 3, 2, 1, 5, 4, GAP, 2, 1, 5],
]

# Fleiss, Levin and Paik, "Statistical Methods for Rates and Proportions" (2003), table 18.1: two raters'
# diagnoses of a hundred subjects: psychotic, neurotic, organic.
DIAGNOSES = [[75, 1, 4], [5, 4, 1], [0, 0, 10]]
FIRST = [row for row in range(3) for column in range(3) for _ in range(DIAGNOSES[row][column])]
SECOND = [column for row in range(3) for column in range(3) for _ in range(DIAGNOSES[row][column])]

# Labels, judge's scores and judge's scores without labels, made up for the comparison with ppi-python 0.2.3.
LABELS = [((7 * i) % 11) / 10 for i in range(1, 41)]
JUDGED = [0.6 * label + 0.3 * ((5 * i) % 13) / 12 for i, label in enumerate(LABELS, 1)]
JUDGED_ONLY = [(((29 * i) % 97) / 96) ** 1.5 for i in range(1, 301)]


@pytest.mark.parametrize(("level", "alpha"), [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849)])
def test_krippendorffs_alpha_is_that_of_his_example(level: stats.Level, alpha: float) -> None:
    assert round(stats.krippendorff_alpha(OBSERVERS, level=level), 3) == alpha


@pytest.mark.parametrize(
    ("level", "alpha"),
    [("nominal", 0.30877598152424934), ("ordinal", 0.04472559597065062), ("interval", 0.058064516129032406)],
)
def test_krippendorffs_alpha_is_that_of_the_package(level: stats.Level, alpha: float) -> None:
    # krippendorff 0.9.0: alpha(RATERS, level_of_measurement=level).
    assert stats.krippendorff_alpha(RATERS, level=level) == pytest.approx(alpha, rel=1e-10)


def test_cohens_kappa_is_that_of_the_diagnoses() -> None:
    # Fleiss, Levin and Paik, section 18.1: kappa = 0.68.
    assert round(stats.cohen_kappa(FIRST, SECOND), 2) == 0.68


def test_plain_and_quadratic_kappa_are_those_of_statsmodels() -> None:
    # statsmodels 0.15.0: cohens_kappa(DIAGNOSES, wt=...).
    assert stats.cohen_kappa(FIRST, SECOND) == pytest.approx(0.676470588235294, rel=1e-10)
    weighted = compute_weighted_kappa(list(zip(FIRST, SECOND, strict=True)))
    assert weighted == pytest.approx(0.7553191489361702, rel=1e-10)


def is_somewhat_wider(found: stats.PredictionPowered, low: float, high: float) -> bool:
    """Whether the guarded interval holds the normal one of ppi-python, and is at most half as wide again."""
    return found.low < low and found.high > high and found.high - found.low < 1.5 * (high - low)


def test_prediction_powered_mean_is_that_of_ppi_python() -> None:
    # ppi-python 0.2.3: ppi_mean_pointestimate and ppi_mean_ci(alpha=0.05).
    found = stats.ppi_mean(LABELS, JUDGED, JUDGED_ONLY)
    assert (found.estimate, found.tuning) == pytest.approx((0.48060107, 0.624010314185049), abs=5e-9)
    assert is_somewhat_wider(found, 0.41592418, 0.54527796)


@pytest.mark.parametrize(("confidence", "low", "high"), [(0.95, 0.44855666, 0.67909787), (0.9, 0.46708912, 0.6605654)])
def test_prediction_powered_share_is_that_of_ppi_python(confidence: float, low: float, high: float) -> None:
    # ppi-python 0.2.3 on 0/1 labels, of which the judge gets every seventh wrong.
    labels = [float(label > 0.4) for label in LABELS]
    judged = [1 - label if i % 7 == 0 else label for i, label in enumerate(labels)]
    found = stats.ppi_mean(labels, judged, [float(x > 0.35) for x in JUDGED_ONLY], confidence=confidence)
    assert (found.estimate, found.tuning) == pytest.approx((0.56382726, 0.6094220518500575), abs=5e-9)
    assert is_somewhat_wider(found, low, high)


def test_a_judge_who_says_the_opposite_is_left_out_as_ppi_python_leaves_it_out() -> None:
    # ppi-python 0.2.3 on 1 - JUDGED: tuning 0.
    found = stats.ppi_mean(LABELS, [1 - score for score in JUDGED], JUDGED_ONLY)
    assert found.estimate == pytest.approx(0.5175)
    assert found.tuning == 0.0
    assert is_somewhat_wider(found, 0.42101096, 0.61398904)
