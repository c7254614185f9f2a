"""How judges agree with people on labelled cases; also the judges' signatures."""

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from functools import partial
from typing import Any

from evalsuite import stats
from evalsuite.core.types import SHARE, SIGNATURES, has_canary_tag
from evalsuite.judges.mutations import CORRUPTIONS, TRICKS
from evalsuite.results.tally import Estimate, Row, Tally, estimate_clustered_mean

LabelPair = tuple[float, float]  # People's label and the judge's score.
NOT_ASKED = "judge_not_asked"  # Key in the facts of a case that its scorer decides without the judge.
FEWEST = 30  # To correct a mean, at least this many cases must be labelled, and at least this many unlabelled.


@dataclass(frozen=True, slots=True)
class LabelledScore:
    """A judge's score for a case, together with people's label."""

    row: Row  # The case's row.
    score: str  # The score's name.
    label: float  # The value that a person gave, or the mean of the values that several people gave.
    judge: float  # The judge's value.
    passes: float | None = None  # The lowest passing value; None if values neither pass nor fail.
    nominal: bool = False  # Whether a value is a preference between two answers, from 0 (second) to 1 (first).
    scale: tuple[float, float] | None = None  # Lowest and highest possible value; None if the range is unknown.
    verdict: float | None = None  # The verdict that most people gave; with None, it is derived from the label.
    weight: float = 1.0  # How many cases this case represents, if some cases were more likely to be drawn than others.

    @property
    def verdicts(self) -> LabelPair | None:
        """People's verdict and the judge's; None if values neither pass nor fail, or if people are evenly divided."""
        if self.nominal:
            verdict = convert_preference(self.label) if self.verdict is None else self.verdict
            return verdict, convert_preference(self.judge)
        if self.passes is None:
            return None
        verdict = float(self.label >= self.passes) if self.verdict is None else self.verdict
        # If people are evenly divided, the mean of their labels is not a verdict.
        return (verdict, float(self.judge >= self.passes)) if verdict in (0.0, 1.0) else None


def find_majority_verdict(verdicts: Sequence[float]) -> float:
    """Return the verdict that most people gave; 0.5 if it is a tie."""
    ranked = Counter(verdicts).most_common(2)
    return 0.5 if len(ranked) > 1 and ranked[0][1] == ranked[1][1] else ranked[0][0]


def convert_preference(preference: float) -> float:
    """Convert a preference to a verdict: 1.0 for the first answer, 0.0 for the second and 0.5 for a tie.

    Args:
        preference: a number from 0 (second answer) to 1 (first answer), such as a graded verdict or a mean over people.
    """
    return 0.5 if preference == 0.5 else float(preference > 0.5)


def list_labelled_scores(tally: Tally) -> list[LabelledScore]:
    """List the labelled scores of all cases that a judge scored."""
    return [label for row in tally if row.outcome != "error" for label in _read_labelled_scores(row)]


def _read_labelled_scores(row: Row) -> Iterator[LabelledScore]:
    for facts in (row.facts, *row.facts.values()):
        people = facts.get("people") if isinstance(facts, Mapping) and facts.get("ballots") else None
        for name, label in (people or {}).items():
            if name in row.scores:
                scale = tuple(label.get("scale") or ()) or None
                judged = label["label"], row.scores[name], label.get("passes"), bool(label.get("nominal"))
                yield LabelledScore(row, name, *judged, scale, label.get("verdict"), label.get("weight", 1.0))


def select_labelled_cases(tally: Tally, score: str) -> Tally:
    """Select the cases with people's labels for this score, and drop the other scores of these cases."""
    rows = [label.row for label in list_labelled_scores(tally) if label.score == score]
    return Tally(tuple(row.with_scores({score: row.scores[score]}) for row in rows))


def compute_accuracy(tally: Tally, verdict: float | None = None) -> Estimate | None:
    """Compute the share of the judge's verdicts that equal people's; None without verdicts.

    If `verdict` is given, count only the cases to which people gave this verdict, and leave out comparisons of two
    answers.
    """
    verdicts = ((label, label.verdicts) for label in list_labelled_scores(tally))
    return estimate_weighted_mean(
        [
            (label, float(both[0] == both[1]))
            for label, both in verdicts
            if both is not None and (verdict is None or (both[0] == verdict and not label.nominal))
        ]
    )


compute_sensitivity = partial(compute_accuracy, verdict=1.0)
"""Computes the judge's pass rate on the cases that pass according to people; None without such cases."""

compute_specificity = partial(compute_accuracy, verdict=0.0)
"""Computes the judge's failure rate on the cases that fail according to people; None without such cases."""


def estimate_weighted_mean(outcomes: Sequence[tuple[LabelledScore, float]]) -> Estimate | None:
    """Estimate the weighted mean of outcomes over labelled cases; None without outcomes."""
    if has_equal_weights(label for label, _ in outcomes):
        return estimate_clustered_mean([(value, label.row.cluster) for label, value in outcomes], bounds=SHARE.range)
    total = math.fsum(label.weight for label, _ in outcomes)
    mean = math.fsum(label.weight * value for label, value in outcomes) / total
    # Transform the values so that their plain mean has the same variance as the weighted mean (linearization).
    number = len(outcomes)
    linear = [(mean + label.weight * number / total * (value - mean), label.row.cluster) for label, value in outcomes]
    found = estimate_clustered_mean(linear)
    if found is None or found.low is None or found.high is None:
        return Estimate(mean, n=len(outcomes))
    return Estimate(mean, max(0.0, found.low), min(1.0, found.high), found.n)


def has_equal_weights(labels: Iterable[LabelledScore]) -> bool:
    """Tell whether all cases were equally likely to be labelled; kappa and similar statistics require this."""
    return len({label.weight for label in labels}) <= 1


def _pair_verdicts(tally: Tally) -> tuple[list[LabelPair], list[str]]:
    """Pair people's and the judge's verdicts, with clusters; empty if the labelled cases have unequal weights."""
    labels = list_labelled_scores(tally)
    found = [(pair, label.row.cluster) for label in labels if (pair := label.verdicts) is not None]
    pairs = found if has_equal_weights(labels) else []
    return [pair for pair, _ in pairs], [cluster for _, cluster in pairs]


def compute_kappa(tally: Tally) -> Estimate | None:
    """Compute Cohen's kappa between the judge's and people's verdicts; None if it is undefined."""
    return estimate_kappa(*_pair_verdicts(tally))


def estimate_kappa(pairs: Sequence[tuple[Hashable, Hashable]], clusters: Sequence[Hashable]) -> Estimate | None:
    """Compute Cohen's kappa of two raters with the interval of `stats.clustered_kappa`; None if it is undefined."""
    if not pairs:
        return None
    one, other = zip(*pairs, strict=True)
    return Estimate.of(*astuple(stats.clustered_kappa(one, other, clusters=clusters)))


def compute_ac1(tally: Tally) -> Estimate | None:
    """Compute Gwet's AC1 between the judge's and people's verdicts; None without verdicts."""
    pairs, clusters = _pair_verdicts(tally)
    if not pairs:
        return None
    people, judge = zip(*pairs, strict=True)
    ties = [0.5] if any(label.nominal for label in list_labelled_scores(tally)) else []
    found = stats.ac1_interval(people, judge, categories=[0.0, 1.0, *ties], clusters=clusters)
    return Estimate.of(*astuple(found))


def _pair_labels_with_scores(tally: Tally, *, allow_nominal: bool = False) -> tuple[list[LabelPair], list[str]]:
    """Pair people's label with the judge's score for each labelled case, with clusters.

    Return empty lists if the labelled cases have unequal weights, or scores with several names (their scales may
    differ). Also return empty lists for comparisons of two answers, unless `allow_nominal` is true.
    """
    scores = list_labelled_scores(tally)
    if len({score.score for score in scores}) != 1 or not has_equal_weights(scores):
        return [], []
    if scores[0].nominal and not allow_nominal:
        return [], []
    return [(score.label, score.judge) for score in scores], [score.row.cluster for score in scores]


def _estimate_by_jackknife(statistic: Callable[[Sequence[LabelPair]], float], tally: Tally) -> Estimate | None:
    """Compute a statistic of people's and the judge's scores, with an interval by a jackknife over clusters.

    Return None if the statistic is undefined.
    """
    from evalsuite.stats.clustering import group_by_cluster

    pairs, clusters = _pair_labels_with_scores(tally)
    value = statistic(pairs) if pairs else math.nan
    if math.isnan(value):
        return None
    interval = stats.jackknife_interval(group_by_cluster(pairs, clusters), statistic, bounds=(-math.inf, 1.0))
    return Estimate.of(value, interval.low, interval.high, len(pairs))


def _compute_ordinal_alpha(pairs: Sequence[LabelPair]) -> float:
    return stats.krippendorff_alpha(list(zip(*pairs, strict=True)), level="ordinal")


def compute_weighted_kappa(pairs: Sequence[LabelPair]) -> float:
    """Compute the quadratic-weighted kappa; NaN if it is undefined.

    The formula is from Cohen, "Weighted kappa" (Psychological Bulletin 70, 1968): 1 minus the mean squared difference
    divided by its expectation under chance, var(x) + var(y) + (mean(x) - mean(y))^2.
    """
    from statistics import fmean, pvariance  # Imported here, because workers need only the metrics' names.

    people, judge = zip(*pairs, strict=True)
    chance = pvariance(people) + pvariance(judge) + (fmean(people) - fmean(judge)) ** 2
    return 1 - fmean((one - other) ** 2 for one, other in pairs) / chance if chance else math.nan


compute_alpha = partial(_estimate_by_jackknife, _compute_ordinal_alpha)
"""Computes Krippendorff's ordinal alpha between the judge's and people's scores; None if alpha is undefined."""

compute_quadratic_kappa = partial(_estimate_by_jackknife, compute_weighted_kappa)
"""Computes the quadratic-weighted kappa between the judge's and people's scores; None if kappa is undefined."""


def compute_rho(tally: Tally) -> Estimate | None:
    """Compute Spearman's rho between the judge's and people's scores; None if rho is undefined."""
    return estimate_rho(*_pair_labels_with_scores(tally, allow_nominal=True))


def estimate_corrected_score(score: str, tally: Tally) -> Estimate | None:
    """Estimate the mean of people's scores by prediction-powered inference, as in `stats.prediction_powered`.

    Return None for fewer than 30 labelled or fewer than 30 unlabelled cases. The labelled cases must be drawn at random
    from all cases about which the judge was asked; the other cases (`NOT_ASKED`) count with their own scores.
    """
    from evalsuite.stats.prediction_powered import ppi_mean

    cases = tally.where(lambda row: not has_canary_tag(row.tags))
    labels = [label for label in list_labelled_scores(cases) if label.score == score]
    has_label = {label.row.case for label in labels}
    known = cases.where(lambda row: NOT_ASKED in row.facts).values(score)
    rest = [row for row in cases.scored(score) if row.case not in has_label and NOT_ASKED not in row.facts]
    if min(len(labels), len(rest)) < FEWEST:
        return None
    weights = None if has_equal_weights(labels) else [label.weight for label in labels]
    human, machine = [label.label for label in labels], [label.judge for label in labels]
    clusters = [label.row.cluster for label in labels], [row.cluster for row in rest]
    alone = [row.scores[score] for row in rest]
    mean = ppi_mean(human, machine, alone, bounds=labels[0].scale, weights=weights, clusters=clusters)
    estimate = Estimate(mean.estimate, mean.low, mean.high, len(labels) + len(rest))
    return include_known_scores(estimate, len(labels) + len(rest), known)


def include_known_scores(mean: Estimate, count: int, known: Sequence[float]) -> Estimate:
    """Average the estimated mean of `count` cases with the known scores of further cases."""
    if not known:
        return mean  # Unchanged to the last bit.
    total, added = count + len(known), math.fsum(known)
    low, high = (None if bound is None else (count * bound + added) / total for bound in (mean.low, mean.high))
    return replace(mean, value=(count * mean.value + added) / total, low=low, high=high, n=mean.n + len(known))


MUTATIONS = "mutations"  # A case's facts contain the results of mutation tests, by metric, under this key.


def _estimate_mutation_metric(metric: str, tally: Tally) -> Estimate | None:
    """Estimate how often the judge detects or resists mutated answers, by a metric such as `detects_KIND`."""
    rows = ((row, row.facts.get(MUTATIONS)) for row in tally if row.outcome != "error")
    tested = ((found[metric], row.cluster) for row, found in rows if found and metric in found)
    return estimate_clustered_mean(tested, bounds=SHARE.range)


JUDGE_METRICS: Mapping[str, Callable[[Tally], Estimate | None]] = {
    "accuracy": compute_accuracy,
    "sensitivity": compute_sensitivity,
    "specificity": compute_specificity,
    "ac1": compute_ac1,
    "alpha": compute_alpha,
    "kappa": compute_kappa,
    "rho": compute_rho,
    "weighted_kappa": compute_quadratic_kappa,
    **{
        metric: partial(_estimate_mutation_metric, metric)
        for metric in (*(f"detects_{kind}" for kind in CORRUPTIONS), *(f"resists_{kind}" for kind in TRICKS))
    },
}
"""Metrics of a run's judges, for gates such as `judge.kappa >= 0.6 @95%`."""

VERDICT_METRICS = ("accuracy", "sensitivity", "specificity", "ac1", "kappa")
NO_VERDICTS = (
    "the judge's scores are points on a scale, not verdicts; name the least score that passes with passes=, or gate "
    "judge.weighted_kappa, judge.alpha or judge.rho"
)
UNEQUAL = (
    "some cases were more likely to be labelled; label a sheet of `evalsuite judge sheet --random` without --equally"
)


def explain_missing_metric(metric: str, tally: Tally) -> str:
    """Explain why a metric of `JUDGE_METRICS` has no value on the labelled cases; return "" for an unknown reason."""
    labels = list_labelled_scores(tally)
    if metric in VERDICT_METRICS and not any(label.verdicts for label in labels):
        return NO_VERDICTS
    return UNEQUAL if metric in JUDGE_METRICS and not has_equal_weights(labels) else ""


def estimate_rho(pairs: Sequence[LabelPair], clusters: Sequence[Hashable] | None = None) -> Estimate | None:
    """Compute Spearman's rho with the interval of `rank_interval`; None if rho is undefined."""
    from evalsuite.stats.correlation import rank_interval

    if not pairs:
        return None
    people, judge = zip(*pairs, strict=True)
    value, interval = rank_interval([(people, judge)], list(clusters or range(len(pairs))), "spearman")
    return Estimate.of(value, interval.low, interval.high, len(pairs))


def read_signatures(facts: Mapping[str, Any]) -> dict[str, str]:
    """Read the judge's signature of each score in a case's facts; empty if no score is judged."""
    signatures = facts.get(SIGNATURES)
    return dict(signatures) if isinstance(signatures, Mapping) else {}


def group_scores_by_signature(facts: Mapping[str, Any]) -> dict[str, list[str]]:
    """Group the judged scores' names by the judge's signature."""
    scores: dict[str, list[str]] = {}
    for name, signature in read_signatures(facts).items():
        scores.setdefault(signature, []).append(name)
    return scores


def is_canary(tally: Tally) -> bool:
    """Tell whether all cases are canaries: cases with fixed answers, which reveal changes of the judge."""
    return len(tally) > 0 and all(has_canary_tag(row.tags) for row in tally)
