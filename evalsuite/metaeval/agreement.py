"""Agreement of table metrics and of a judge's P-Score with people's ratings of tables."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import TYPE_CHECKING, Any

from evalsuite.benchmarks.struc_bench.p_score import p_score
from evalsuite.builders.building import BuildProgress
from evalsuite.builders.model_session import session
from evalsuite.core.errors import DatasetError, JudgeError, ScoringError
from evalsuite.metrics import tables
from evalsuite.metrics.tables import FORMATS, Format, strip_answer
from evalsuite.metrics.tables.readings import read_all
from evalsuite.output.reports.section import Chart, Column, Series, Table
from evalsuite.results.tally import Estimate
from evalsuite.stats.correlation import ClusterDraws, Correlation, correlations, pearson_r

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from numpy.typing import NDArray

    from evalsuite.core.protocols import Model
    from evalsuite.core.settings import Settings
    from evalsuite.output.reports.section import Cell

EXPECTED = (
    "objects with `reference`, `prediction` and `human` (a number or a list of numbers), perhaps with `format` "
    '(by default "html") and with other numbers, which are compared like metrics'
)
NOT_METRICS = frozenset({"reference", "prediction", "output", "human", "format", "id"})


@dataclass(frozen=True, slots=True)
class RatedTable:
    """A prediction with people's ratings."""

    prediction: str
    reference: str
    format: Format  # The markup of the reference.
    human: float  # The mean rating, on any scale.
    # Other numbers in the file by name, such as a judge's marks.
    others: Mapping[str, float] = field(default_factory=dict)
    ratings: tuple[float, ...] = ()


def read_rated_tables(path: Path) -> list[RatedTable]:
    """Read a JSON list, JSON lines, or an object `{references, columns, rows}`, as in published table studies."""
    try:
        text = path.read_text("utf-8")
    except UnicodeDecodeError as error:
        raise DatasetError(path, "", f"{type(error).__name__}: {error}", EXPECTED) from error
    tables = [
        _read_record(record, path, f"record {place}") for place, record in enumerate(_parse_records(text, path), 1)
    ]
    if not tables:
        raise DatasetError(path, "", "no records", EXPECTED)
    return tables


def _parse_records(text: str, path: Path) -> Iterator[Mapping[str, Any]]:
    try:
        content = json.loads(text)
    except ValueError:
        yield from _parse_lines(text, path)
        return
    if isinstance(content, list):
        yield from content
    elif isinstance(content, dict) and {"references", "columns", "rows"} <= content.keys():
        for row in content["rows"]:
            record = dict(zip(content["columns"], row, strict=False))
            place = record.get("reference")
            if not isinstance(place, int) or not 0 <= place < len(content["references"]):
                raise DatasetError(path, "rows", f"reference {place!r}", "the index of a reference")
            yield record | {"reference": content["references"][place]}
    else:
        yield content


def _parse_lines(text: str, path: Path) -> Iterator[Mapping[str, Any]]:
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            try:
                yield json.loads(line)
            except ValueError as error:
                raise DatasetError(path, f"line {number}", f"invalid JSON ({error})", EXPECTED) from error


def _read_record(record: Any, path: Path, where: str) -> RatedTable:
    if not isinstance(record, dict):
        raise DatasetError(path, where, type(record).__name__, EXPECTED)
    prediction = record.get("prediction", record.get("output"))
    reference, written = record.get("reference"), record.get("format", "html")
    human = record.get("human")
    ratings: list[Any] = human if isinstance(human, list) else [human]
    if not isinstance(prediction, str) or not isinstance(reference, str):
        raise DatasetError(path, where, f"fields {', '.join(record)}", EXPECTED)
    if written not in FORMATS:
        raise DatasetError(path, f"{where}, field 'format'", repr(written), " or ".join(FORMATS))
    if not ratings or not all(_is_number(rating) for rating in ratings):
        raise DatasetError(path, f"{where}, field 'human'", repr(human)[:60], "a number or a list of numbers")
    others = {name: float(value) for name, value in record.items() if name not in NOT_METRICS and _is_number(value)}
    return RatedTable(prediction, reference, written, fmean(ratings), others, tuple(map(float, ratings)))


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


FIRST = "table_score"  # the metric that the others are compared with
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
    """One metric against people."""

    metric: str
    outputs: int  # how many it has a value for
    pearson: Correlation
    spearman: Correlation
    kendall: Correlation
    # by how much its Pearson correlation is below that of `FIRST`, over the outputs both have; None for `FIRST` itself
    behind: Correlation | None


def is_readable(rated: RatedTable) -> bool:
    """Tell whether the prediction contains a table in any markup."""
    return bool(read_all(rated.prediction, rated.format))


def measure(rated: Sequence[RatedTable]) -> dict[str, list[float]]:
    """Compute all metrics of all predictions; NaN if a metric has no value."""
    values = {name: [_compute_value(metric, pair) for pair in rated] for name, metric in METRICS.items()}
    others = dict.fromkeys(name for pair in rated for name in pair.others)
    # A file's numbers with the name of a metric here may come from another implementation.
    named = {name: f"{name} (file)" if name in values else name for name in others}
    return values | {named[name]: [pair.others.get(name, float("nan")) for pair in rated] for name in others}


def _compute_value(metric: TableMetric, rated: RatedTable) -> float:
    try:
        return metric(rated.prediction, rated.reference, rated.format)
    except ScoringError:
        return float("nan")


def agreements(rated: Sequence[RatedTable], values: Mapping[str, Sequence[float]]) -> list[MetricAgreement]:
    """Correlate each metric with the ratings; the bootstrap draws all outputs for a reference together."""
    import numpy as np

    human = np.array([pair.human for pair in rated])
    draws = ClusterDraws([pair.reference for pair in rated])
    first = np.array(values[FIRST])
    return [
        _make_agreement(name, np.array(column), human, draws, None if name == FIRST else first)
        for name, column in values.items()
    ]


def _make_agreement(
    name: str, column: NDArray[Any], human: NDArray[Any], draws: ClusterDraws, first: NDArray[Any] | None
) -> MetricAgreement:
    import numpy as np

    has = ~np.isnan(column)
    behind = None
    if first is not None:
        behind = draws.interval(
            lambda at: pearson_r(first[at], human[at]) - pearson_r(column[at], human[at]), has & ~np.isnan(first)
        )
    pearson, spearman, kendall = correlations(column, human, draws).values()
    return MetricAgreement(name, int(has.sum()), pearson, spearman, kendall, behind)


UNREAD = float("nan")


def judge_tables(rated: Sequence[RatedTable], settings: Settings, store: Path) -> dict[str, list[float]]:
    """Request the P-Scores of content and of format, from 0 to 10; NaN if the judge's answer could not be read."""
    scores = [(UNREAD, UNREAD)] * len(rated)

    async def judge(model: Model) -> None:
        import asyncio

        async def score(place: int) -> None:
            table = rated[place]
            answer = strip_answer(table.prediction, table.format)
            try:
                marks = await p_score(model, answer, table.reference, format=table.format)
                scores[place] = (marks.content, marks.format)
            except JudgeError:
                pass
            progress.advance(1)

        await asyncio.gather(*map(score, range(len(rated))))

    with session(settings, store) as opened, BuildProgress(len(rated), "output") as progress:
        opened.do(judge)
    if unread := sum(math.isnan(content) for content, _ in scores):
        sys.stderr.write(f"{settings.model}: {unread} of {len(rated)} outputs have no readable judgement\n")
    names = (f"p_content ({settings.model})", f"p_format ({settings.model})")
    return {name: [score[side] for score in scores] for side, name in enumerate(names)}


CORRELATIONS = ("Pearson", "Spearman", "Kendall")


def agreement_table(agreements: Sequence[MetricAgreement], title: str) -> Table:
    """Tabulate the metrics, sorted by agreement, best first."""
    columns = [
        Column("Metric"),
        Column("Outputs", "count"),
        *(Column(name, "number", 3) for name in CORRELATIONS),
        Column("Behind table_score", "number", 3),
    ]
    rows: list[list[Cell]] = [
        [line.metric, line.outputs, *map(_estimate, (line.pearson, line.spearman, line.kendall, line.behind))]
        for line in _rank(agreements)
    ]
    note = (
        "Correlation with the mean human rating; 95% bootstrap intervals, where a reference is drawn with all its "
        "outputs. Behind: Pearson correlation of table_score minus the metric's, on the same outputs and draws."
    )
    return Table(title, columns, rows, note)


def agreement_chart(agreements: Sequence[MetricAgreement], title: str) -> Chart:
    """Draw Pearson and Spearman correlation, as a pair of bars per metric."""
    ranked = _rank(agreements)
    series = [
        Series("Pearson", [_estimate(line.pearson) for line in ranked]),
        Series("Spearman", [_estimate(line.spearman) for line in ranked]),
    ]
    return Chart("bars", "metaeval_tables", title, [line.metric for line in ranked], series, y_title="Correlation")


def _rank(agreements: Sequence[MetricAgreement]) -> list[MetricAgreement]:
    return sorted(agreements, key=lambda line: (math.isnan(line.pearson.value), -line.pearson.value))


def _estimate(correlation: Correlation | None) -> Estimate | None:
    return Estimate.of(correlation.value, correlation.low, correlation.high) if correlation else None
