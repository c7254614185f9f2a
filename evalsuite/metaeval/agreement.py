"""Measure how table metrics and a judge's scores (P-Score) agree with people's ratings of tables."""

import json
import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evalsuite.benchmarks.struc_bench.p_score import request_p_score
from evalsuite.builders.building import BuildProgress
from evalsuite.builders.model_session import open_session
from evalsuite.core.errors import DatasetError, JudgeError, ScoringError
from evalsuite.core.protocols import Model
from evalsuite.core.settings import Settings
from evalsuite.metrics import tables
from evalsuite.metrics.tables import FORMATS, Format, strip_answer
from evalsuite.metrics.tables.readings import parse_format, read_in_all_formats
from evalsuite.output.reports.section import Cell, Chart, Series, Table, parse_columns
from evalsuite.results.tally import Estimate
from evalsuite.samples.items import SourceItem, read_json_lines, read_text
from evalsuite.stats.correlation import Correlation, PairResamples, Statistic, compute_pearson_r, compute_spearman_rho

EXPECTED = (
    "objects with `reference`, `prediction` and `human` (a number or a list of numbers), perhaps with `format` "
    '(by default "html") and with other numbers, which are compared like metrics'
)
# Keys of a rated prediction that do not hold scores.
NOT_METRICS = frozenset({"reference", "prediction", "output", "human", "format", "id"})


@dataclass(frozen=True, slots=True)
class RatedTable:
    """A predicted table with its reference and people's ratings."""

    prediction: str
    reference: str
    format: Format  # The markup language of the reference table.
    human: float  # The mean rating, on any scale.
    # Other metrics' scores of this prediction in the rated file, keyed by metric.
    others: Mapping[str, float] = field(default_factory=dict)


def read_rated_tables(path: Path) -> list[RatedTable]:
    """Read rated tables from a JSON list, JSON Lines, or an object with the keys `references`, `columns`, `rows`."""
    records = enumerate(_parse_records(read_text(path, EXPECTED), path), 1)
    tables = [_read_rated_table(record, path, f"record {place}") for place, record in records]
    if not tables:
        raise DatasetError(path, "", "no records", EXPECTED)
    return tables


def _parse_records(text: str, path: Path) -> Iterator[Mapping[str, Any]]:
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        yield from (item.fields for item in read_json_lines(path, refuse_surrogates=False))
        return
    if isinstance(content, list):
        yield from content
    elif isinstance(content, dict) and {"references", "columns", "rows"} <= content.keys():
        study = SourceItem(content, path, "")
        references, columns = study.read("references", list), study.read_list("columns", str)
        for row in study.read_list("rows", list):
            record = dict(zip(columns, row, strict=False))
            place = record.get("reference")
            if not isinstance(place, int) or not 0 <= place < len(references):
                raise study.make_error(f"reference {place!r}", "the index of a reference", "rows")
            yield record | {"reference": references[place]}
    else:
        yield content


def _read_rated_table(record: Any, path: Path, where: str) -> RatedTable:
    if not isinstance(record, dict):
        raise DatasetError(path, where, type(record).__name__, EXPECTED)
    prediction = record.get("prediction", record.get("output"))
    reference = record.get("reference")
    human = record.get("human")
    ratings: list[Any] = human if isinstance(human, list) else [human]
    if not isinstance(prediction, str) or not isinstance(reference, str):
        raise DatasetError(path, where, f"fields {', '.join(record)}", EXPECTED)
    try:
        written = parse_format(record.get("format", "html"))
    except ValueError as error:
        raise DatasetError(path, f"{where}, field 'format'", repr(record["format"]), " or ".join(FORMATS)) from error
    if not ratings or not all(map(_is_finite_number, ratings)):
        raise DatasetError(path, f"{where}, field 'human'", repr(human)[:60], "a number or a list of numbers")
    others = {key: float(value) for key, value in record.items() if key not in NOT_METRICS and _is_finite_number(value)}
    return RatedTable(prediction, reference, written, fmean(ratings), others)


def _is_finite_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= sys.float_info.max


MEASURES = ("Pearson", "Spearman", "Kendall within", "Pairs within")
FROM_FILE = " (file)"
FIRST = "table_score"  # The metric with which all other metrics are compared.
TableMetric = Callable[[str, str, tables.Format], float]
METRICS: Mapping[str, TableMetric] = {
    FIRST: lambda one, two, written: tables.table_score(one, two, format=written).value,
    "table_content": lambda one, two, written: tables.table_score(one, two, format=written).content,
    "table_form": lambda one, two, written: tables.table_score(one, two, format=written).form,
    "teds": lambda one, two, written: tables.teds(one, two, format=written),
    "teds_structure": lambda one, two, written: tables.teds_structure(one, two, format=written),
    "grits_content": lambda one, two, written: tables.grits_content(one, two, format=written),
    "grits_topology": lambda one, two, written: tables.grits_topology(one, two, format=written),
    "rms": lambda one, two, written: tables.rms(one, two, format=written),
    "cell_f1": lambda one, two, written: tables.cell_f1(one, two, format=written).cells,
}


@dataclass(frozen=True, slots=True)
class MetricAgreement:
    """The agreement of one metric with people's ratings."""

    metric: str
    outputs: int  # The number of predictions for which the metric has a value.
    agreement: Mapping[str, Correlation]  # Agreement with people's ratings, one value per measure in `MEASURES`.
    # Per measure, the agreement of `FIRST` minus the agreement of this metric, on predictions that both can score.
    # Empty for `FIRST` itself.
    behind: Mapping[str, Correlation]


def is_readable(rated: RatedTable) -> bool:
    """Tell whether a prediction contains a table in any markup language."""
    return bool(read_in_all_formats(rated.prediction, rated.format))


def compute_metrics(rated: Sequence[RatedTable]) -> dict[str, list[float]]:
    """Compute every metric for every prediction; NaN if a metric has no value for a prediction."""
    values = {name: [_compute_metric_or_nan(metric, pair) for pair in rated] for name, metric in METRICS.items()}
    others = dict.fromkeys(name for pair in rated for name in pair.others)
    # Mark a score from the file if evalsuite has a metric of the same name, because the two implementations may differ.
    named = {name: f"{name}{FROM_FILE}" if name in values else name for name in others}
    return values | {named[name]: [pair.others.get(name, float("nan")) for pair in rated] for name in others}


def _compute_metric_or_nan(metric: TableMetric, rated: RatedTable) -> float:
    try:
        return metric(rated.prediction, rated.reference, rated.format)
    except ScoringError:
        return float("nan")


def fill_unreadable_scores(
    rated: Sequence[RatedTable], readable: Sequence[bool], values: Mapping[str, Sequence[float]]
) -> dict[str, list[float]]:
    """Fill in the scores of unreadable predictions: the rated file's score or, without one, 0."""
    filled = {}
    for name, column in values.items():
        known = iter(column)
        filled[name] = [
            next(known) if is_read else pair.others.get(name.removesuffix(FROM_FILE), 0.0)
            for pair, is_read in zip(rated, readable, strict=True)
        ]
    return filled


def compute_agreements(rated: Sequence[RatedTable], values: Mapping[str, Sequence[float]]) -> list[MetricAgreement]:
    """Compare each metric with people's ratings, and sort the metrics by Pearson's r, highest first.

    The bootstrap draws references, each with all of its predictions.
    """
    human = np.array([pair.human for pair in rated])
    references = np.unique([pair.reference for pair in rated], return_inverse=True)[1]
    draws = PairResamples(references.tolist())
    columns = {name: np.array(column) for name, column in values.items()}
    lines = []
    for name, column in columns.items():
        is_measured = ~np.isnan(column)
        agreement = {
            measure: draws.interval(statistic, is_measured)
            for measure, statistic in _make_measures(column, human, references, is_measured).items()
        }
        behind = {}
        if name != FIRST:
            both = is_measured & ~np.isnan(columns[FIRST])
            first = _make_measures(columns[FIRST], human, references, both)
            for measure, statistic in _make_measures(column, human, references, both).items():
                behind[measure] = draws.interval(_make_difference_statistic(first[measure], statistic), both)
        lines.append(MetricAgreement(name, int(is_measured.sum()), agreement, behind))
    return sorted(lines, key=lambda line: -line.agreement["Pearson"].value)


def _make_difference_statistic(one: Statistic, two: Statistic) -> Statistic:
    return lambda at: one(at) - two(at)


def _make_measures(
    values: NDArray[Any], human: NDArray[Any], references: NDArray[Any], is_measured: NDArray[Any]
) -> dict[str, Statistic]:
    """Map each name in `MEASURES` to a function that computes the measure for the predictions with given indices.

    Two measures compare only predictions for the same reference: Kendall's tau-b, and the share of pairs that metric
    and people put in the same order. Only pairs that people rated differently count; a pair with equal metric values
    counts half.
    """
    tau = np.full(len(values), np.nan)
    right, pairs = np.zeros(len(values)), np.zeros(len(values))
    for reference in np.unique(references[is_measured]):
        places = np.flatnonzero(is_measured & (references == reference))
        ours, theirs = (np.sign(np.subtract.outer(side[places], side[places])) for side in (values, human))
        if spread := math.sqrt((ours**2).sum() * (theirs**2).sum()):
            tau[places] = (ours * theirs).sum() / spread
        pairs[places] = (theirs != 0).sum(axis=1)
        right[places] = ((ours * theirs + 1) / 2 * (theirs != 0)).sum(axis=1)

    def compute_mean_tau(indices: NDArray[Any]) -> float:
        known = tau[indices][~np.isnan(tau[indices])]
        return float(known.mean()) if len(known) else math.nan

    statistics: tuple[Statistic, ...] = (
        lambda at: compute_pearson_r(values[at], human[at]),
        lambda at: compute_spearman_rho(values[at], human[at]),
        compute_mean_tau,
        lambda at: float(right[at].sum() / pairs[at].sum()) if pairs[at].any() else math.nan,
    )
    return dict(zip(MEASURES, statistics, strict=True))


def judge_tables(rated: Sequence[RatedTable], settings: Settings, store: Path) -> dict[str, list[float]]:
    """Ask a judge for P-Scores of content and format, from 0 to 10; NaN if an answer cannot be read."""

    async def judge_table(table: RatedTable, model: Model, progress: BuildProgress) -> tuple[float, float]:
        answer = strip_answer(table.prediction, table.format)
        try:
            scores = await request_p_score(model, answer, table.reference, format=table.format)
        except JudgeError:
            return math.nan, math.nan
        finally:
            progress.advance(1)
        return scores["p_content"].value, scores["p_format"].value

    with open_session(settings, store) as opened, BuildProgress(len(rated), "output") as progress:
        scores = opened.run_coroutines(judge_table(table, opened.model, progress) for table in rated)
    if unread := sum(math.isnan(content) for content, _ in scores):
        sys.stderr.write(f"{settings.model}: {unread} of {len(rated)} outputs have no readable judgement\n")
    names = (f"p_content ({settings.model})", f"p_format ({settings.model})")
    return {name: [score[side] for score in scores] for side, name in enumerate(names)}


def tabulate_agreements(agreements: Sequence[MetricAgreement], title: str) -> list[Table]:
    """Tabulate the metrics by their agreement with people; a second table compares each with `table_score`."""
    rows: list[list[Cell]] = [
        [line.metric, line.outputs, *map(_convert_to_estimate, line.agreement.values())] for line in agreements
    ]
    behind: list[list[Cell]] = [
        [line.metric, *map(_convert_to_estimate, line.behind.values())] for line in agreements if line.behind
    ]
    note = (
        "Within: among the outputs for one reference, Kendall's tau-b and the share of pairs with different ratings "
        "that the metric orders as people do, where a pair with equal metric values counts half. 95% bootstrap "
        "intervals, where a reference is drawn with all its outputs."
    )
    return [
        Table(title, parse_columns("Metric | Outputs: count", MEASURES, "number 3"), rows, note),
        Table(
            f"Ahead of the others, {title[:1].lower()}{title[1:]}",
            parse_columns(f"{FIRST} minus", MEASURES, "number 3"),
            behind,
            "Paired differences, on the same outputs and draws.",
        ),
    ]


def draw_agreements(agreements: Sequence[MetricAgreement], title: str) -> Chart:
    """Draw two bars per metric: Pearson and Spearman correlation."""
    series = [
        Series(name, [_convert_to_estimate(line.agreement[name]) for line in agreements])
        for name in ("Pearson", "Spearman")
    ]
    return Chart("bars", "metaeval_tables", title, [line.metric for line in agreements], series, y_title="Correlation")


def _convert_to_estimate(correlation: Correlation) -> Estimate | None:
    return Estimate.of(correlation.value, correlation.low, correlation.high)
