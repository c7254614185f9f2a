"""Metrics that every benchmark has, about resources, repeated attempts and agreement with people.

`latency_p50`, `latency_p95` (or another whole percentile): seconds until a case has its answer. Latency does not
include waits before a call is sent: for a connection, a rate limit, a retry, or the start of the program. `cost`,
`tokens`, `calls`: US dollars, tokens and calls that the tested model needs per case. The metrics of resources take
prefixes: `judge_` for the judge, `simulator_` for models that play users and tools, `total_` for all models together.
`pass_at_K`: the probability that of K attempts at a sample, at least one passes. `pass_hat_K`: the probability that all
K attempts at a sample pass. Each epoch of a sample counts as one attempt. `judge_accuracy`, `judge_kappa`, `judge_rho`:
how well the judge agrees with people on labelled cases. `corrected_SCORE`: the mean of a score that a judge gives,
corrected by people's labels.
"""

import math
import re
from collections.abc import Callable, Iterable, Mapping
from fnmatch import fnmatchcase
from functools import partial
from typing import Any

from evalsuite import stats
from evalsuite.core.errors import write_count
from evalsuite.core.types import ASSERTS, SHARE, Metric, Usage
from evalsuite.results.judge_labels import JUDGE_METRICS, estimate_corrected_score
from evalsuite.results.tally import Estimate, Row, Tally, estimate_clustered_mean

LATENCY = re.compile(r"latency_p(\d{1,2})")
JUDGE = "judge_"
CORRECTED = "corrected_"
REPEATED = re.compile(r"pass_(at|hat)_([1-9]\d*)")


_USAGES = {"": "model_usage", "judge": "judge_usage", "simulator": "simulator_usage", "total": "usage"}
AMOUNTS = {"seconds"} | {f"{prefix}_{part}".lstrip("_") for prefix in _USAGES for part in ("cost", "tokens", "calls")}


def is_resource_metric(name: str) -> bool:
    """Tell whether a metric measures resources, such as `judge_cost` and `latency_p95`."""
    return name in AMOUNTS or LATENCY.fullmatch(name) is not None


def _get_resource_amount(name: str, row: Row) -> float:
    if name == "seconds":
        return row.seconds
    prefix, _, part = name.rpartition("_")
    usage: Usage = getattr(row, _USAGES[prefix])
    return float(usage.prompt_tokens + usage.completion_tokens if part == "tokens" else getattr(usage, part))


def count_estimated_calls(name: str, tally: Tally) -> tuple[int, int]:
    """Count the calls whose tokens are estimates, and all calls; both are 0 if the metric is not of tokens or costs."""
    usages = _list_usages(name, tally)
    return sum(usage.estimated for usage in usages), sum(usage.calls for usage in usages)


def explain_unknown_amount(name: str, tally: Tally) -> str:
    """Explain why a metric of tokens or costs is unknown; return "" if there is nothing to explain."""
    usages = _list_usages(name, tally)
    calls = sum(usage.calls for usage in usages)
    if not name.endswith("cost"):
        uncounted = sum(usage.calls for usage in usages if not usage.prompt_tokens + usage.completion_tokens)
        return f"no tokens were counted in {uncounted} of {write_count(calls, 'call')}" if uncounted else ""
    unpriced = sum(usage.unpriced for usage in usages)
    remedy = "run with --price MODEL=PROMPT/COMPLETION, or 0/0 if they cost nothing"
    return f"no price of {unpriced} of {write_count(calls, 'call')} is known: {remedy}" if unpriced else ""


def _list_usages(name: str, tally: Tally) -> list[Usage]:
    """List each case's usage for a metric of tokens or costs; return an empty list for scores and other metrics."""
    prefix, _, part = name.rpartition("_")
    usage_name = None if name in tally.metrics() else _USAGES.get(prefix)
    return [getattr(row, usage_name) for row in tally] if usage_name and part in {"cost", "tokens"} else []


def find_built_in_metric(name: str) -> Callable[[Tally], Estimate | None] | None:
    """Find the built-in metric with this name; None if no such metric exists."""
    if name in AMOUNTS:
        return partial(estimate_mean_amount, name)
    if name.removeprefix(JUDGE) in JUDGE_METRICS and name.startswith(JUDGE):
        return JUDGE_METRICS[name.removeprefix(JUDGE)]
    if name.startswith(CORRECTED) and name != CORRECTED:
        return partial(estimate_corrected_score, name.removeprefix(CORRECTED))
    if latency := LATENCY.fullmatch(name):
        return partial(_estimate_latency, int(latency[1]) / 100)
    if repeated := REPEATED.fullmatch(name):
        return partial(_estimate_pass_at_k, repeated[1], int(repeated[2]))
    return None


class DeclaredAndBuiltInMetrics(dict[str, Metric]):
    """Maps names or patterns to the metrics that a benchmark declares; look-up also finds built-in metrics.

    Args:
        declared: the declarations by name or pattern.
        scores: the names of the benchmark's scores; a score comes before a built-in metric of the same name.
    """

    def __init__(self, declared: Mapping[str, Metric], scores: Iterable[str]) -> None:
        super().__init__(declared)
        self._scores = frozenset(scores)

    def __missing__(self, name: str) -> Metric:
        if name not in self._scores and find_built_in_metric(name) is not None:
            if name.startswith(CORRECTED):
                return super().get(name.removeprefix(CORRECTED)) or Metric()
            if name.startswith(JUDGE) and name not in AMOUNTS:
                return Metric(range=(-1.0, 1.0))
            return SHARE if REPEATED.fullmatch(name) else Metric(better="lower")
        # If several patterns match a name, the longest pattern counts, regardless of order.
        for pattern in sorted(self, key=len, reverse=True):
            if fnmatchcase(name, pattern):
                return self[pattern]
        raise KeyError(name)

    def get(self, name: str, default: Any = None) -> Any:
        """Return the declaration of a declared or built-in metric; for any other name, return `default`."""
        try:
            return self[name]
        except KeyError:
            return default


def estimate_mean_amount(name: str, tally: Tally, confidence: float = 0.95) -> Estimate | None:
    """Estimate an amount's mean per case; without an interval if cases are few or all amounts are equal."""
    ran = tally.ran()
    values = [_get_resource_amount(name, row) for row in ran]
    if not values:
        return None
    interval = stats.amount_interval(values, clusters=[row.cluster for row in ran], confidence=confidence)
    return Estimate.of(math.fsum(values) / len(values), interval.low, interval.high, len(values))


def _estimate_latency(share: float, tally: Tally) -> Estimate | None:
    """Estimate a latency percentile, with an interval that is valid for any distribution.

    The interval is between two of the sorted latencies, chosen by the binomial distribution: Conover, "Practical
    Nonparametric Statistics" (1999, section 3.2).
    """
    seconds = sorted(row.solving_seconds or row.seconds for row in tally.ran())
    if not seconds:
        return None
    n = len(seconds)
    value = seconds[min(n - 1, max(0, math.ceil(share * n) - 1))]
    from scipy.stats import binom

    low, high = int(binom.ppf(0.025, n, share)) - 1, int(binom.ppf(0.975, n, share))
    bounded = low >= 0 and high < n
    return Estimate(value, seconds[low], seconds[high], n) if bounded else Estimate(value, n=n)


def _estimate_pass_at_k(kind: str, k: int, tally: Tally) -> Estimate | None:
    """Estimate pass@k or pass^k over all samples; None if any sample has fewer than k attempts."""
    attempts: dict[str, list[Row]] = {}
    for row in tally.ran().where(lambda row: row.facts.get(ASSERTS, True)):
        attempts.setdefault(row.sample, []).append(row)
    if not attempts or min(map(len, attempts.values())) < k:
        return None
    chance = stats.pass_at_k if kind == "at" else stats.pass_hat_k
    counts = ((len(rows), sum(row.outcome == "passed" for row in rows), rows[0].cluster) for rows in attempts.values())
    chances = ((chance(number, passed, k), cluster) for number, passed, cluster in counts)
    return estimate_clustered_mean(chances, bounds=SHARE.range)
