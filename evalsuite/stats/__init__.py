"""Intervals, agreement, correlation, paired tests, repeats, sequences. Works without pytest.

Invalid input (no values, nan, lists of different length) raises ValueError; a statistic that is
undefined on valid input (kappa with one category, a correlation with a constant) is nan.
Each name's module is imported on first use.
docs/statistics.md states every formula, its source and its use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evalsuite.stats.agreement import (
        Kappa,
        Weights,
        clustered_kappa,
        cohen_kappa,
        kappa_interval,
        pairwise_kappas,
    )
    from evalsuite.stats.betting import betting_interval
    from evalsuite.stats.binary_sequence import BinarySequence
    from evalsuite.stats.bounded_sequence import BoundedSequence
    from evalsuite.stats.clustering import ClusteredMean, Interval, clustered_mean, mean_interval
    from evalsuite.stats.correlation import Significance, kendall, pearson, spearman, welch_anova
    from evalsuite.stats.intervals import (
        bootstrap_interval,
        count_interval,
        exact_interval,
        share_interval,
        wilson_interval,
    )
    from evalsuite.stats.jackknife import jackknife_interval
    from evalsuite.stats.krippendorff import Level, krippendorff_alpha
    from evalsuite.stats.multiplicity import holm, joint
    from evalsuite.stats.noninferiority import (
        NonInferiority,
        NonInferiorityVerdict,
        compare_paired,
        compare_statistic,
        verdicts,
    )
    from evalsuite.stats.paired import PairedDifference, mcnemar, paired_difference
    from evalsuite.stats.paired_shares import tango_interval, tango_pvalue
    from evalsuite.stats.power import (
        detectable_mean,
        detectable_share,
        power_mean,
        power_share,
        required_n_mean,
        required_n_share,
    )
    from evalsuite.stats.prediction_powered import PredictionPowered, ppi_mean
    from evalsuite.stats.repeats import at_least_k_of_m, pass_at_k, pass_hat_k
    from evalsuite.stats.sequences import ConfidenceSequence
    from evalsuite.stats.unpaired import unpaired_difference

_HOMES = {
    "agreement": ("Kappa", "Weights", "clustered_kappa", "cohen_kappa", "kappa_interval", "pairwise_kappas"),
    "betting": ("betting_interval",),
    "binary_sequence": ("BinarySequence",),
    "bounded_sequence": ("BoundedSequence",),
    "clustering": ("ClusteredMean", "Interval", "clustered_mean", "mean_interval"),
    "correlation": ("Significance", "kendall", "pearson", "spearman", "welch_anova"),
    "intervals": (
        "bootstrap_interval",
        "count_interval",
        "exact_interval",
        "share_interval",
        "wilson_interval",
    ),
    "jackknife": ("jackknife_interval",),
    "krippendorff": ("Level", "krippendorff_alpha"),
    "multiplicity": ("holm", "joint"),
    "noninferiority": (
        "NonInferiority",
        "NonInferiorityVerdict",
        "compare_paired",
        "compare_statistic",
        "verdicts",
    ),
    "paired": ("PairedDifference", "mcnemar", "paired_difference"),
    "paired_shares": ("tango_interval", "tango_pvalue"),
    "power": (
        "detectable_mean",
        "detectable_share",
        "power_mean",
        "power_share",
        "required_n_mean",
        "required_n_share",
    ),
    "prediction_powered": ("PredictionPowered", "ppi_mean"),
    "repeats": ("at_least_k_of_m", "pass_at_k", "pass_hat_k"),
    "sequences": ("ConfidenceSequence",),
    "unpaired": ("unpaired_difference",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "BinarySequence",
    "BoundedSequence",
    "ClusteredMean",
    "ConfidenceSequence",
    "Interval",
    "Kappa",
    "Level",
    "NonInferiority",
    "NonInferiorityVerdict",
    "PairedDifference",
    "PredictionPowered",
    "Significance",
    "Weights",
    "at_least_k_of_m",
    "betting_interval",
    "bootstrap_interval",
    "clustered_kappa",
    "clustered_mean",
    "cohen_kappa",
    "compare_paired",
    "compare_statistic",
    "count_interval",
    "detectable_mean",
    "detectable_share",
    "exact_interval",
    "holm",
    "jackknife_interval",
    "joint",
    "kappa_interval",
    "kendall",
    "krippendorff_alpha",
    "mcnemar",
    "mean_interval",
    "paired_difference",
    "pairwise_kappas",
    "pass_at_k",
    "pass_hat_k",
    "pearson",
    "power_mean",
    "power_share",
    "ppi_mean",
    "required_n_mean",
    "required_n_share",
    "share_interval",
    "spearman",
    "tango_interval",
    "tango_pvalue",
    "unpaired_difference",
    "verdicts",
    "welch_anova",
    "wilson_interval",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME_OF[name]}"), name)


def __dir__() -> list[str]:
    return [*__all__, *globals()]
