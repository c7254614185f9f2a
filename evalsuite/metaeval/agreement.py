"""How well metrics agree with people: three correlations, their intervals, and paired differences."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from evalsuite.errors import ScoringError
from evalsuite.metrics import tables
from evalsuite.metrics.tables.any_markup import read_any

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from evalsuite.metaeval.rated_tables import RatedTable

FIRST = "table_score"
"""The metric that the others are compared with."""
RESAMPLES = 1_000
FEWEST = 3

TableMetric = Callable[[str, str, tables.Format], float]
Correlate = Callable[..., float]
METRICS: Mapping[str, TableMetric] = {
    FIRST: lambda one, two, written: tables.table_score(one, two, format=written).value,
    "table_content": lambda one, two, written: tables.table_score(one, two, format=written).content,
    "table_form": lambda one, two, written: tables.table_score(one, two, format=written).form,
    "h_content": lambda one, two, written: tables.h_score(one, two, format=written).content,
    "h_format": lambda one, two, written: tables.h_score(one, two, format=written).format,
    "teds": lambda one, two, written: tables.teds(one, two, format=written),
    "teds_structure": lambda one, two, written: tables.teds_structure(one, two, format=written),
    "grits_content": lambda one, two, written: tables.grits_content(one, two, format=written),
    "grits_topology": lambda one, two, written: tables.grits_topology(one, two, format=written),
    "rms": lambda one, two, written: tables.rms(one, two, format=written),
    "cell_f1": lambda one, two, written: tables.cell_f1(one, two, format=written).cells,
}


@dataclass(frozen=True, slots=True)
class Correlation:
    """A correlation and its bootstrap interval of 95%; NaN where it is not defined."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class MetricAgreement:
    """One metric against people.

    Attributes:
        metric: its name.
        outputs: how many it has a value for.
        pearson: linear correlation.
        spearman: of ranks.
        kendall: tau-b.
        behind: by how much its Pearson correlation is below that of `FIRST`, over the outputs both have; None
            for `FIRST` itself.
    """

    metric: str
    outputs: int
    pearson: Correlation
    spearman: Correlation
    kendall: Correlation
    behind: Correlation | None


def is_readable(rated: RatedTable) -> bool:
    """Whether the prediction holds a table in any markup."""
    return bool(read_any(rated.prediction, rated.format).tables)


def measure(rated: Sequence[RatedTable]) -> dict[str, list[float]]:
    """All metrics of all predictions; NaN where a metric has no value for one."""
    values = {name: [_value(metric, one) for one in rated] for name, metric in METRICS.items()}
    others = dict.fromkeys(name for one in rated for name in one.others)
    # What a file calls teds may be another implementation's.
    named = {name: f"{name} (file)" if name in values else name for name in others}
    return values | {named[name]: [one.others.get(name, float("nan")) for one in rated] for name in others}


def _value(metric: TableMetric, rated: RatedTable) -> float:
    try:
        return metric(rated.prediction, rated.reference, rated.format)
    except ScoringError:
        return float("nan")


def agreements(rated: Sequence[RatedTable], values: Mapping[str, Sequence[float]]) -> list[MetricAgreement]:
    """Each metric against the ratings. Outputs for one reference are drawn together: they are no independent ones."""
    import numpy as np

    human = np.array([one.human for one in rated])
    groups = list(dict.fromkeys(one.reference for one in rated))
    places = [np.flatnonzero([one.reference == group for one in rated]) for group in groups]
    draws = _draws(places)
    first = np.array(values[FIRST])
    return [
        _agreement(name, np.array(column), human, draws, None if name == FIRST else first)
        for name, column in values.items()
    ]


def _draws(places: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
    import numpy as np

    random = np.random.default_rng(0)
    return [
        np.concatenate([places[group] for group in random.integers(len(places), size=len(places))])
        for _ in range(RESAMPLES)
    ]


def _agreement(
    name: str,
    column: NDArray[Any],
    human: NDArray[Any],
    draws: Sequence[NDArray[Any]],
    first: NDArray[Any] | None,
) -> MetricAgreement:
    import numpy as np

    has = ~np.isnan(column)

    def interval(correlation: Correlate, resamples: int = RESAMPLES) -> Correlation:
        return _interval(lambda places: correlation(column[places], human[places]), has, draws[:resamples])

    behind = None
    if first is not None:
        behind = _interval(
            lambda places: _pearson(first[places], human[places]) - _pearson(column[places], human[places]),
            has & ~np.isnan(first),
            draws,
        )
    # Kendall's tau takes much longer than the others.
    kendall = interval(_kendall, RESAMPLES // 5)
    return MetricAgreement(name, int(has.sum()), interval(_pearson), interval(_spearman), kendall, behind)


def _interval(
    statistic: Callable[[NDArray[Any]], float], has: NDArray[Any], draws: Sequence[NDArray[Any]]
) -> Correlation:
    """A statistic of the outputs that have a value, and its percentile interval over the draws."""
    import numpy as np

    if has.sum() < FEWEST:
        return Correlation(*[float("nan")] * 3)
    drawn = np.array([statistic(draw[has[draw]]) for draw in draws])
    drawn = drawn[~np.isnan(drawn)]
    low, high = np.quantile(drawn, (0.025, 0.975)) if len(drawn) else (float("nan"), float("nan"))
    return Correlation(statistic(np.flatnonzero(has)), float(low), float(high))


def _pearson(one: NDArray[Any], two: NDArray[Any]) -> float:
    import numpy as np

    if len(one) < FEWEST:
        return float("nan")
    a, b = one - one.mean(), two - two.mean()
    spread = float(np.sqrt((a * a).sum() * (b * b).sum()))
    return float((a * b).sum()) / spread if spread else float("nan")


def _spearman(one: NDArray[Any], two: NDArray[Any]) -> float:
    from scipy.stats import rankdata

    return _pearson(rankdata(one), rankdata(two)) if len(one) >= FEWEST else float("nan")


def _kendall(one: NDArray[Any], two: NDArray[Any]) -> float:
    from scipy.stats import kendalltau

    return float(kendalltau(one, two).statistic) if len(one) >= FEWEST else float("nan")
