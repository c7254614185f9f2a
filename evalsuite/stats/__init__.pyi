from .agreement import (
    Kappa,
    Weights,
    clustered_kappa,
    cohen_kappa,
    kappa_interval,
    pairwise_kappas,
)
from .betting import betting_interval
from .binary_sequence import BinarySequence
from .bounded_sequence import BoundedSequence
from .clustering import ClusteredMean, Interval, clustered_mean, mean_interval
from .correlation import Significance, kendall, pearson, spearman, welch_anova
from .intervals import (
    bootstrap_interval,
    count_interval,
    exact_interval,
    share_interval,
    wilson_interval,
)
from .jackknife import jackknife_interval
from .krippendorff import Level, krippendorff_alpha
from .multiplicity import holm, joint
from .noninferiority import (
    NonInferiority,
    NonInferiorityVerdict,
    compare_paired,
    compare_statistic,
    verdicts,
)
from .paired import PairedDifference, mcnemar, paired_difference
from .paired_shares import tango_interval, tango_pvalue
from .power import (
    detectable_mean,
    detectable_share,
    power_mean,
    power_share,
    required_n_mean,
    required_n_share,
)
from .prediction_powered import PredictionPowered, ppi_mean
from .repeats import at_least_k_of_m, pass_at_k, pass_hat_k
from .sequences import ConfidenceSequence
from .unpaired import unpaired_difference

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
