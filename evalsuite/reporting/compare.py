"""Runs side by side: paired statistics against the first, then every benchmark's section with a row a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalsuite.decisions.gates import Measured
from evalsuite.errors import RunError
from evalsuite.page.write import write_comparison_page
from evalsuite.reporting.markdown import render
from evalsuite.reporting.plots import draw_all
from evalsuite.reporting.radar import radar
from evalsuite.reporting.report import benchmark_section, view
from evalsuite.reporting.section import Block, Cell, Chart, Column, Section, Table
from evalsuite.results.estimate import Estimate
from evalsuite.results.runs import load_run, replace_text

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from evalsuite.declarations import Declarations
    from evalsuite.results.runs import Bench, Run, RunFolder
    from evalsuite.results.tally import Tally


def write_comparison(folders: Sequence[RunFolder], target: Path, declarations: Declarations) -> Path:
    """Writes `comparison.md`, its page and its pictures into a folder.

    Args:
        folders: of the runs, the first being the baseline.
        target: the folder.
        declarations: finds the benchmarks that the records name.

    Raises:
        RunError: a run cannot be read, or there is only one.
    """
    if len(folders) < 2:
        raise RunError("a comparison needs two runs or more")
    runs = [load_run(folder, declarations) for folder in folders]
    labels = label_runs(runs)
    sections = compare_runs(runs, labels)
    target.mkdir(parents=True, exist_ok=True)
    charts = [block for section in sections for block in section.blocks if isinstance(block, Chart)]
    pictures = draw_all(charts, target)
    file = target / "comparison.md"
    replace_text(file, f"# {' against '.join(labels)}\n\n{render(sections, pictures)}\n")
    write_comparison_page(runs, labels, sections, target)
    return file


def label_runs(runs: Sequence[Run]) -> list[str]:
    """The models; where two runs have one model, both by their runs' names."""
    models = [str(run.info.get("model")) for run in runs]
    return [
        model if models.count(model) == 1 else run.folder.name
        for run, model in zip(runs, models, strict=True)
    ]


def compare_runs(runs: Sequence[Run], labels: Sequence[str]) -> list[Section]:
    """The comparison's sections."""
    names = sorted({name for run in runs for name in run.benchmarks})
    sections = [_runs(runs, labels), _at_a_glance(runs, labels, names)]
    for name in names:
        views = [
            view(run, name, label) for run, label in zip(runs, labels, strict=True) if name in run.benchmarks
        ]
        section = benchmark_section(name, views, _bench(runs, name))
        extra: list[Block | None] = [
            paired_table(runs, labels, name),
            radar(name, views, section, _bench(runs, name).primary),
        ]
        sections.append(Section(section.title, [*(block for block in extra if block), *section.blocks]))
    return sections


def _bench(runs: Sequence[Run], name: str) -> Bench:
    """A benchmark as the first run has it that knows its code, or the first that has it at all."""
    benches = [run.benchmarks[name] for run in runs if name in run.benchmarks]
    return next((bench for bench in benches if bench.benchmark is not None), benches[0])


def _at_a_glance(runs: Sequence[Run], labels: Sequence[str], names: Sequence[str]) -> Section:
    """One table: a row a benchmark with the metric that stands for it, a column a run."""
    rows: list[list[Cell]] = []
    for name in names:
        metric = _bench(runs, name).primary
        rows.append([name, metric, *(_estimate(run, name, metric) for run in runs)])
    columns = [Column("benchmark"), Column("metric"), *(Column(label, "number", 3) for label in labels)]
    return Section("At a glance", [Table("", columns, rows, "Means with 95% intervals.")])


def _estimate(run: Run, name: str, metric: str | None) -> Estimate | None:
    if metric is None or name not in run.benchmarks:
        return None
    bench = run.benchmarks[name]
    return Measured(bench.tally, bench.derived).estimate(metric, bench.tally)


def _runs(runs: Sequence[Run], labels: Sequence[str]) -> Section:
    rows: list[list[Cell]] = [
        [
            label,
            run.folder.name,
            str(run.info.get("started", "")),
            sum(len(bench.tally) for bench in run.benchmarks.values()),
        ]
        for run, label in zip(runs, labels, strict=True)
    ]
    columns = [Column("label"), Column("run"), Column("date"), Column("cases", "count")]
    return Section("Runs", [Table("", columns, rows)])


def paired_table(runs: Sequence[Run], labels: Sequence[str], name: str) -> Table | None:
    """Differences to the first run, over the cases that both have."""
    base = runs[0].benchmarks.get(name)
    if base is None:
        return None
    rows: list[list[Cell]] = []
    for run, label in list(zip(runs, labels, strict=True))[1:]:
        other = run.benchmarks.get(name)
        if other is not None:
            rows += [[label, *_paired(base.tally, other.tally, metric)] for metric in other.tally.metrics()]
    columns = [
        Column("run"),
        Column("metric"),
        Column("pairs", "count"),
        Column(labels[0], "number", 3),
        Column("here", "number", 3),
        Column("difference", "number", 3),
        Column("p", "number", 4),
    ]
    note = (
        "Over the cases that both runs scored. p: exact McNemar for 0/1 scores asked once, else the paired "
        "difference's, with epochs of a sample, and samples that share a source, as one cluster."
    )
    return Table(f"Against {labels[0]}, case by case", columns, rows, note) if rows else None


def pair(base: Tally, other: Tally, metric: str) -> list[tuple[str, float, float]]:
    """Cluster and both scores of every case that both runs scored."""
    before = {row.case: row.scores[metric] for row in base.scored(metric)}
    return [
        (row.cluster, before[row.case], row.scores[metric])
        for row in other.scored(metric)
        if row.case in before
    ]


def _paired(base: Tally, other: Tally, metric: str) -> list[Cell]:
    from evalsuite import stats

    pairs = pair(base, other, metric)
    if len(pairs) < 2:
        return [metric, len(pairs), None, None, None, None]
    clusters, before, after = (list(column) for column in zip(*pairs, strict=True))
    repeated = len(set(clusters)) < len(clusters)
    found = stats.paired_difference(before, after, clusters=clusters if repeated else None)
    binary = not repeated and set(before) | set(after) <= {0.0, 1.0}
    return [
        metric,
        len(pairs),
        sum(before) / len(before),
        sum(after) / len(after),
        Estimate(found.difference, found.low, found.high, len(pairs)),
        stats.mcnemar(before, after) if binary else found.pvalue,
    ]
