"""The section for a benchmark that does not define its own: each metric, over all cases and per tag value."""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from evalsuite.core.errors import SettingsError
from evalsuite.output.reports.section import Cell, Chart, Column, Passage, Section, Series, Table, parse_columns
from evalsuite.results.built_in import find_built_in_metric
from evalsuite.results.runs import get_failure
from evalsuite.results.tally import Estimate, RunView, Tally

MOST_VALUES = 20  # If a tag has more values than this, it identifies single cases instead of groups.
MOST_CHARTED = 4  # Maximum metrics in one chart.


def make_generic_section(title: str, name: str, runs: Sequence[RunView], primary: str | None = None) -> Section:
    """Show every metric with its interval, one row per run; if there is only one run, also one row per tag value.

    If judges' single votes (ballots) were recorded, add tables about the judges' biases and agreement.

    Args:
        primary: the most important metric, which is shown first; None keeps the order of the scores.
    """
    from evalsuite.output.reports.judges import make_judge_tables

    metrics = list_primary_first(dict.fromkeys(metric for run in runs for metric in run.tally.metrics()), primary)
    table = _tabulate_metrics_by_run(runs, metrics, primary)
    failures = ((key, get_failure(each)) for run in runs for key, each in run.derived.items())
    notes = dict.fromkeys(f"{key} is not measured: {why}." for key, why in failures if why)
    blocks: list[Table | Chart | Passage] = [table, *(Passage("", note) for note in notes)]
    if len(runs) == 1:
        blocks += _tabulate_metrics_by_tag(name, runs[0], metrics)
    blocks += make_judge_tables(runs)
    return Section(title, blocks)


def list_primary_first(metrics: Iterable[str], primary: str | None) -> list[str]:
    """Put the most important metric first, and keep the order of the others."""
    return sorted(metrics, key=lambda metric: metric != primary)


def _tabulate_metrics_by_run(runs: Sequence[RunView], metrics: Sequence[str], primary: str | None) -> Table:
    derived = dict.fromkeys(metric for run in runs for metric in run.derived)
    ordered = list_primary_first(dict.fromkeys((*metrics, *derived)), primary)
    columns = parse_columns("run | cases: count", ordered, "number 3")
    rows: list[list[Cell]] = [
        [
            *(run.label, len(run.tally)),
            *(
                run.derived[each](run.tally) if each in run.derived else run.estimate(each, run.tally)
                for each in ordered
            ),
        ]
        for run in runs
    ]
    return Table("", columns, rows, _describe_missing_scores(runs, metrics))


def _describe_missing_scores(runs: Sequence[RunView], metrics: Sequence[str]) -> str:
    """State, for each score that some cases lack, how many cases have the score."""
    scored = (
        (run, metric, sum(1 for _ in run.tally.scored(metric)), len(run.tally)) for run in runs for metric in metrics
    )
    lacking = [
        f"{metric} on {count} of {cases}" + (f" ({run.label})" if len(runs) > 1 else "")
        for run, metric, count, cases in scored
        if count < cases
    ]
    return f"Some cases lack a score: {', '.join(lacking)}." if lacking else ""


def _tabulate_metrics_by_tag(name: str, run: RunView, metrics: Sequence[str]) -> Iterator[Table | Chart]:
    columns = parse_columns("cases: count", metrics, "number 3")
    # The tag `cluster` marks related cases for the intervals; cases are not shown by this tag.
    for tag in sorted({tag for row in run.tally for tag in row.tags} - {"cluster"}):
        groups = run.tally.groups(tag)
        if not 1 < len(groups) <= MOST_VALUES:
            continue
        rows: list[list[Cell]] = [
            [value, len(cases), *(run.estimate(metric, cases) for metric in metrics)] for value, cases in groups.items()
        ]
        yield Table(f"By {tag}", [Column(tag), *columns], rows)
        if metrics:
            yield _make_tag_chart(name, tag, metrics, run, groups)


def _make_tag_chart(name: str, tag: str, metrics: Sequence[str], run: RunView, groups: Mapping[str, Tally]) -> Chart:
    """Draw the first metric; if it ranges from 0 to 1, draw the other metrics with this range on the same axis."""
    shares = [metric for metric in metrics if _is_share(run, metric)][:MOST_CHARTED]
    drawn = shares if metrics[0] in shares else metrics[:1]
    return Chart(
        "bars",
        # The chart's name becomes a file name, so keep only letters, digits and `_`.
        re.sub(r"\W+", "_", f"{name}_by_{tag}"),
        f"{name}: {', '.join(drawn)} by {tag}",
        list(groups),
        [Series(metric, [run.estimate(metric, cases) for cases in groups.values()]) for metric in drawn],
        limits=(0.0, 1.0) if drawn == shares else None,
        y_title="mean from 0 to 1, 95% interval" if drawn == shares else "mean, 95% interval",
    )


def _is_share(run: RunView, metric: str) -> bool:
    """Tell whether a metric ranges from 0 to 1, by its declared range or, without one, by its values."""
    declared = run.declared.get(metric)
    if declared is not None and declared.range is not None:
        return declared.range == (0.0, 1.0)
    return all(0 <= value <= 1 for value in run.tally.values(metric))


MOST_ATTEMPTS = 5  # Maximum k in the table of pass@k, because each k has a column.


def tabulate_pass_at_k(views: Sequence[RunView]) -> Table | None:
    """Tabulate pass@k and pass^k with intervals, for each k up to the number of epochs; None for a single epoch."""
    fewest = [min(Counter(row.sample for row in view.tally.ran()).values(), default=0) for view in views]
    most = min(MOST_ATTEMPTS, max(fewest, default=0))
    if most < 2:
        return None
    more = [(kind, sign, k) for kind, sign in (("at", "@"), ("hat", "^")) for k in range(2, most + 1)]
    measured = [("at", "@", 1), *more]
    columns = parse_columns("run", (f"pass{sign}{k}" for _, sign, k in measured))
    metrics = [metric for kind, _, k in measured if (metric := find_built_in_metric(f"pass_{kind}_{k}"))]
    rows: list[list[Cell]] = [[view.label, *(metric(view.tally) for metric in metrics)] for view in views]
    note = (
        "The chance that one of k attempts at a sample passes its test (pass@k), and that all of them do (pass^k); a "
        "dash where a sample has fewer attempts. Gates can name them: pass_at_2, pass_hat_2."
    )
    return Table("Repeated attempts", columns, rows, note)


def warn_of_cut_off_answers(view: RunView, declared: str) -> Iterator[Passage]:
    """Warn about cases whose last answer ended at the token limit, because a cut answer may get a wrong score."""
    cut = sum(row.facts.get("finish") == "length" for row in view.tally)
    if cut:
        yield Passage(
            "",
            f"{view.label}: in {cut} of {len(view.tally)} cases the last answer was cut off at the limit on tokens, "
            f"which costs score. `@benchmark({declared}, max_tokens=...)` sets it.",
        )


def warn_of_cut_off_judges(view: RunView) -> Iterator[Passage]:
    """Warn about judges' answers that ended at the token limit; they are never read as scores."""
    cut = sum(bool(row.facts.get("cut_off")) for row in view.tally)
    if cut:
        yield Passage(
            "",
            f"{view.label}: in {cut} of {len(view.tally)} cases an answer of the judge was cut off at the limit on "
            "tokens. What was cut is not read as a score: the judge was asked again, or gave no verdict. Give it more "
            "room with max_tokens where the judge is declared.",
        )


Measure = Callable[["Tally"], "Estimate | float | None"]
_Draw = Callable[[str, "RunView"], "Sequence[Table | Chart]"]


@dataclass(frozen=True, slots=True)
class CaseMetric:
    """A metric that a function computes from all cases together."""

    name: str  # The metric's name in gates and tables.
    measure: Measure  # Computes the metric from a tally of cases; returns None if the metric is undefined.
    # Makes further tables and charts from a benchmark's name and the view of a run; None if there are none.
    draw: _Draw | None = None
    lower_is_better: bool = False  # Whether lower values are better.
    # Lowest and highest possible value, used to express a loss as a share of the range; None if unbounded.
    range: tuple[float, float] | None = None

    def __call__(self, tally: Tally) -> Estimate | None:
        value = self.measure(tally)
        # Convert with `fsum`, which accepts numbers of any type, because `float` would also convert a text.
        return value if isinstance(value, Estimate | None) else Estimate(math.fsum([value]), n=len(tally))


def make_case_metric(metric: CaseMetric | Measure) -> CaseMetric:
    """Convert a function of all scored cases to a metric of the same name; return a `CaseMetric` unchanged."""
    if isinstance(metric, CaseMetric):
        return metric
    name = str(getattr(metric, "__name__", "<"))
    if not name.isidentifier():
        raise SettingsError(f"metrics: {metric!r} is not a metric; give macro_f1() or the like, or a named function")
    return CaseMetric(name, metric)


def make_report_function(metrics: Sequence[CaseMetric], name: str) -> Callable[[Sequence[RunView]], Section]:
    """Make a benchmark's report function: it shows all scores and tags, and the tables and charts of `metrics`."""

    def make_report_section(runs: Sequence[RunView]) -> Section:
        section = make_generic_section(name, name, runs)
        drawn = [
            _name_run_in_title(block, run, number) if len(runs) > 1 else block
            for metric in metrics
            if metric.draw
            for number, run in enumerate(runs, 1)
            for block in metric.draw(name, run)
        ]
        return Section(section.title, [*section.blocks, *drawn])

    return make_report_section


def _name_run_in_title(block: Table | Chart, run: RunView, number: int) -> Table | Chart:
    """Add the run's label to the title of a table or chart, and the run's number to a chart's file name."""
    title = f"{block.title}: {run.label}"
    if isinstance(block, Chart):
        return replace(block, title=title, name=f"{block.name}_{number}")
    return replace(block, title=title)
