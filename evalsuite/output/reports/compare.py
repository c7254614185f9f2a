"""Compare runs side by side: statistics of every pair of runs, then each benchmark's section with a row per run."""

import itertools
import json
import math
import re
from collections.abc import Sequence
from pathlib import Path

from evalsuite.core.declarations import Declarations
from evalsuite.core.errors import RunError
from evalsuite.decisions.comparison import pair_questions
from evalsuite.decisions.history import FlakyCase, MetricHistory, ReleaseEstimate, find_flaky_cases
from evalsuite.decisions.verdict import estimate_metric
from evalsuite.output.page.write import compare_score_pairs, map_metric_ranges, write_comparison_page
from evalsuite.output.reports.generic import list_primary_first
from evalsuite.output.reports.judges.estimates import tabulate_ratings
from evalsuite.output.reports.markdown import collapse_to_line, escape_markdown, render_sections, render_terminal_table
from evalsuite.output.reports.plots import draw_charts
from evalsuite.output.reports.report import make_benchmark_section, make_run_view
from evalsuite.output.reports.section import (
    Block,
    Cell,
    Chart,
    Column,
    Section,
    Series,
    Table,
    convert_tables,
    find_best_value,
    list_charts,
    parse_columns,
    split_distinct_metrics,
)
from evalsuite.results.run_folders import RunFolder, replace_file
from evalsuite.results.runs import BenchmarkResults, Run, load_run
from evalsuite.results.tally import Estimate, RunView, Tally

GLANCE_TITLE = "At a glance"


def write_comparison(
    folders: Sequence[RunFolder], target: Path, declarations: Declarations, given_labels: Sequence[str] = ()
) -> str:
    """Write `comparison.md`, its page, `comparison.json` and its charts into a folder.

    Args:
        given_labels: one label per run; if empty, the models label the runs.

    Returns:
        A text for the terminal: the table of primary metrics, and the paths of the Markdown file and the page.
    """
    if len(folders) < 2:
        raise RunError("a comparison needs two runs or more")
    paths = [folder.path.resolve() for folder in folders]
    twice = next((folder for folder, path in zip(folders, paths, strict=True) if paths.count(path) > 1), None)
    if twice:
        raise RunError(f"{twice.name} is named twice; a comparison needs different runs")
    runs = [load_run(folder, declarations) for folder in folders]
    labels = make_run_labels(runs, given_labels)
    sections = make_comparison_sections(runs, labels)
    target.mkdir(parents=True, exist_ok=True)
    pictures = draw_charts(list_charts(sections), target)
    file = target / "comparison.md"
    replace_file(file, f"# {escape_markdown(' against '.join(labels))}\n\n{render_sections(sections, pictures)}\n")
    plain = {"runs": [run.folder.name for run in runs], "labels": labels, "tables": convert_tables(sections)}
    replace_file(target / "comparison.json", json.dumps(plain, indent=1, ensure_ascii=False) + "\n")
    page = write_comparison_page(runs, labels, sections, target)
    glance = render_terminal_table(make_primary_metrics_table(runs, labels))
    return f"{glance}\n\ncomparison: {file}\npage:       {page}\n"


def make_run_labels(runs: Sequence[Run], given_labels: Sequence[str] = ()) -> list[str]:
    """Return the user's labels; without labels, the runs' models or, if two runs share a model, the runs' names."""
    if given_labels and (len(given_labels) != len(runs) or len(set(given_labels)) < len(given_labels)):
        raise RunError(f"{len(runs)} runs need {len(runs)} different labels; got {', '.join(given_labels)}")
    models = [str(run.info.get("model") or "no model") for run in runs]
    labels = given_labels or (models if len(set(models)) == len(runs) else [run.folder.name for run in runs])
    return [collapse_to_line(label) for label in labels]


def make_comparison_sections(runs: Sequence[Run], labels: Sequence[str]) -> list[Section]:
    """Build the comparison's sections."""
    columns = parse_columns("label | run | date | cases: count")
    rows: list[list[Cell]] = [
        [label, run.folder.name, str(run.info.get("started", "")), len(run.offsets)]
        for run, label in zip(runs, labels, strict=True)
    ]
    sections = [
        Section("Runs", [Table("", columns, rows)]),
        Section(GLANCE_TITLE, [make_primary_metrics_table(runs, labels)]),
    ]
    for name in _list_benchmarks(runs):
        views = [
            make_run_view(run, name, label) for run, label in zip(runs, labels, strict=True) if name in run.benchmarks
        ]
        section = make_benchmark_section(name, views, _find_benchmark(runs, name))
        extra: list[Block | None] = [
            make_paired_table(runs, labels, name),
            make_rank_table(runs, views, name),
            make_radar_chart(runs, views, name, section),
        ]
        sections.append(Section(section.title, [*(block for block in extra if block), *section.blocks]))
    return sections


def _list_benchmarks(runs: Sequence[Run]) -> list[str]:
    return sorted({name for run in runs for name in run.benchmarks})


def _find_benchmark(runs: Sequence[Run], name: str) -> BenchmarkResults:
    """Find a benchmark in the first run that has the benchmark's code or, without such a run, in the first run."""
    benches = [run.benchmarks[name] for run in runs if name in run.benchmarks]
    return next((bench for bench in benches if bench.benchmark is not None), benches[0])


def _is_lower_better(runs: Sequence[Run], name: str, metric: str) -> bool:
    return any(run.lower_is_better(name, metric) for run in runs if name in run.benchmarks)


def make_primary_metrics_table(runs: Sequence[Run], labels: Sequence[str]) -> Table:
    """Make a table of primary metrics, with a row per benchmark and a column per run."""
    rows: list[list[Cell]] = []
    best: list[float | None] = []
    for name in _list_benchmarks(runs):
        bench = _find_benchmark(runs, name)
        metric = bench.primary
        lower_is_better = metric is not None and _is_lower_better(runs, name, metric)
        estimates = [estimate_metric(run, name, metric) for run in runs]
        rows.append([name, f"{metric} {'↓' if lower_is_better else '↑'}" if metric else None, *estimates])
        best.append(find_best_value(estimates, lower_is_better=lower_is_better))
    columns = parse_columns("benchmark | metric", labels, "number 3")
    note = "Means with 95% intervals; ↑ more is better, ↓ less is better; the best in bold."
    return Table("", columns, rows, note, best)


def make_paired_table(runs: Sequence[Run], labels: Sequence[str], name: str) -> Table | None:
    """Compare each pair of runs on their shared questions; correct p-values and intervals for the number of pairs."""
    tallies = [
        (label, run.benchmarks[name].tally) for run, label in zip(runs, labels, strict=True) if name in run.benchmarks
    ]
    names = list_primary_first(
        dict.fromkeys(metric for _, tally in tallies for metric in tally.metrics()), _find_benchmark(runs, name).primary
    )
    values = [[row.scores.get(metric) for _, tally in tallies for row in tally] for metric in names]
    metrics, repeated = split_distinct_metrics(names, values)
    ranges, comparisons = map_metric_ranges(runs), math.comb(len(tallies), 2)
    paired = [
        (other, base, pair_questions(before, after))
        for (base, before), (other, after) in itertools.combinations(tallies, 2)
    ]
    rows: list[list[Cell]] = [
        [other, base, metric, pair.n, pair.before, pair.after, pair.difference, pair.pvalue]
        for metric in metrics
        for other, base, both in paired
        for pair in [compare_score_pairs(both.list_pairs(metric), ranges.get(f"{name}.{metric}"), comparisons)]
    ]
    columns = parse_columns(
        "run | against | metric | pairs: count | before: number 3 | here: number 3 | difference: number 3 | p: pvalue"
    )
    note = (
        "Over the questions that both runs scored, epochs averaged. Independent 0/1 scores: p is McNemar's exact "
        "test, the interval is Tango's, extended to zero if the test does not reject. Other scores: paired t test and "
        "interval within the metric's range, with samples that share a source as one cluster"
    )
    corrected = f"; Bonferroni's correction for the {comparisons} pairs of a metric, of p and interval alike."
    note += corrected if comparisons > 1 else "."
    note += f" Left out: {'; '.join(repeated)}." if repeated else ""
    return Table("All pairs, question by question", columns, rows, note) if rows else None


def make_rank_table(runs: Sequence[Run], views: Sequence[RunView], name: str) -> Table | None:
    """Rank three or more runs by how many questions each wins against another run, on the primary metric."""
    metric = _find_benchmark(runs, name).primary
    if metric is None or len(views) < 3:
        return None
    sign = -1 if _is_lower_better(runs, name, metric) else 1
    outcomes, clusters = [], []
    for base, other in itertools.combinations(views, 2):
        for pair in pair_questions(base.tally, other.tally).list_pairs(metric):
            gain = sign * (pair.after - pair.before)
            outcomes.append((other.label, base.label, 0.5 + 0.5 * ((gain > 0) - (gain < 0))))
            clusters.append(pair.row.cluster)
    return tabulate_ratings(f"Ranks by {metric}, question by question", outcomes, clusters)


FEWEST, MOST = 3, 12  # Fewest and most spokes in a radar chart; a chart outside this range is hard to read.


def make_radar_chart(runs: Sequence[Run], views: Sequence[RunView], name: str, section: Section) -> Chart | None:
    """Make a radar chart with a polygon per run; None if there are too few spokes, or the section already has one.

    Metrics for which lower is better are left out, because a greater distance from the centre must always be better.

    Each spoke of the chart is a metric whose values are from 0 to 1 in every run. If there are fewer than three such
    metrics, each spoke is one value of a tag, and shows the mean of the primary metric over the cases with this value.
    """
    if any(isinstance(block, Chart) and block.kind == "radar" and block.has_values for block in section.blocks):
        return None
    tallies = [view.tally for view in views]
    shares = [
        metric
        for metric in tallies[0].metrics()
        if not _is_lower_better(runs, name, metric)
        and all(tally.values(metric) and all(0 <= value <= 1 for value in tally.values(metric)) for tally in tallies)
    ]
    if len(shares) >= FEWEST:
        spokes, title = shares[:MOST], f"{name}: means of its metrics, in percent"
        means = [[tally.mean(metric) for metric in spokes] for tally in tallies]
    else:
        tags = sorted({tag for tally in tallies for row in tally for tag in row.tags})
        by_tag = {tag: sorted({value for tally in tallies for value in tally.groups(tag)}) for tag in tags}
        tag = next((tag for tag, values in by_tag.items() if FEWEST <= len(values) <= MOST), None)
        primary = _find_benchmark(runs, name).primary
        if primary is None or tag is None:
            return None
        spokes, title = by_tag[tag], f"{name}: mean {primary} by {tag}, in percent"
        means = [[tally.groups(tag).get(value, Tally()).mean(primary) for value in spokes] for tally in tallies]
    series = [Series(view.label, values) for view, values in zip(views, means, strict=True)]
    # The chart's name becomes a file name, so keep only letters, digits and `_`.
    file = re.sub(r"\W+", "_", f"{name}_runs")
    return Chart("radar", file, title, [spoke.replace("_", " ") for spoke in spokes], series, "percent", (0.0, 1.0))


HISTORY = "history.md"
MOST_FLAKY = 20  # Maximum number of flaky cases (whose outcome changes) to show, most changes first.


def write_history(runs: Sequence[Run], histories: Sequence[MetricHistory], target: Path) -> Path:
    """Write history.md, its page and its charts into a folder."""
    target.mkdir(parents=True, exist_ok=True)
    sections = [
        *(Section(str(each.subject), [_make_history_chart(each), _make_history_table(each)]) for each in histories),
        *_make_flaky_sections(find_flaky_cases(runs)),
    ]
    pictures = draw_charts(list_charts(sections), target)
    file = target / HISTORY
    text = f"# {len(runs)} releases\n\n{describe_drifts(histories)}\n\n{render_sections(sections, pictures)}\n"
    replace_file(file, text)
    drifts = {
        "drifts": [line for history in histories for line in history.list_drifts()],
        "latest": [line for history in histories for line in history.list_drifts(latest_only=True)],
    }
    write_comparison_page(runs, [run.folder.name for run in runs], sections, target, drifts)
    return file


def describe_drifts(histories: Sequence[MetricHistory]) -> str:
    """List the metrics that drifted from a reference release, or state that no metric drifted."""
    lines = [line for history in histories for line in history.list_drifts()]
    return "\n".join(f"- {escape_markdown(line)}" for line in lines) or "No drift from a reference is shown."


def _make_flaky_sections(cases: Sequence[FlakyCase]) -> list[Section]:
    """List questions that passed in one epoch or run of a model and failed in another."""
    if not cases:
        return []
    columns = parse_columns("benchmark | sample | model | passed: count | failed: count")
    rows: list[list[Cell]] = [
        [case.benchmark, case.sample, case.model, case.passed, case.failed] for case in cases[:MOST_FLAKY]
    ]
    note = f"{len(cases)} questions passed and failed when asked the same way of the same model."
    return [Section("Flaky cases", [Table("", columns, rows, note)])]


def _make_history_table(history: MetricHistory) -> Table:
    references = list(dict.fromkeys(name for release in history.releases for name in release.standings))
    columns = parse_columns("release | started | model | value with 95% interval: number 4")
    for name in references:
        against = Column(f"against {name}", "number", 4)
        columns += [against, Column("p", "pvalue"), Column("level", "pvalue"), Column("")]
    rows = [_make_release_row(release, references) for release in history.releases]
    note = (
        "Every release is compared with the same reference, paired by question. `drift`: a fall is shown at a level "
        "that, summed over all looks and metrics, stays at 5%, and a loss of the margin is not excluded."
    )
    return Table("", columns, rows, note if references else "")


def _make_release_row(release: ReleaseEstimate, references: Sequence[str]) -> list[Cell]:
    row: list[Cell] = [release.run, release.started[:16].replace("T", " "), release.model, release.estimate]
    for name in references:
        standing = release.standings.get(name)
        result = standing.result if standing else None
        if standing is None or result is None:
            row += [None, None, None, f"not compared: {standing.reason}" if standing else None]
            continue
        difference = Estimate(result.difference, result.low, result.high, result.n)
        row += [difference, result.pvalue, standing.level, "drift" if standing.drifted else ""]
    return row


def _make_history_chart(history: MetricHistory) -> Chart:
    name = re.sub(r"\W+", "_", str(history.subject)).strip("_")
    return Chart(
        "lines",
        f"history_{name}",
        str(history.subject),
        [release.run for release in history.releases],
        [Series("value", [release.estimate for release in history.releases])],
        y_title="mean, 95% interval",
    )
