"""Write `report.html` for one run and `comparison.html` for several runs; their overviews are made here as well.

An overview has verdict, gates, baseline, benchmarks, costs and the report's sections.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

from evalsuite import stats
from evalsuite.core.types import PASS_RATE, are_outcomes
from evalsuite.decisions.comparison import (
    BaselineComparison,
    ScorePair,
    SharedQuestions,
    find_declaration,
    pair_questions,
    split_score_pairs,
)
from evalsuite.decisions.gates import GateDecision, read_gates
from evalsuite.decisions.measured import MeasuredBenchmark
from evalsuite.decisions.verdict import Verdict, estimate_metric
from evalsuite.output.page.document import CaseTable, ChunkStore, add_run_records, build_page
from evalsuite.output.reports.markdown import format_plain_cell
from evalsuite.output.reports.section import Block, Chart, Section, Table, convert_cell, drop_unmeasured_columns
from evalsuite.results.run_folders import RECORDS, replace_file
from evalsuite.results.runs import Run
from evalsuite.results.tally import Estimate, Tally

PAGE, COMPARISON = "report.html", "comparison.html"
INSIDE = 8 << 20
"""Maximum bytes of records that are stored in the page; a larger run's chunks are stored next to the page."""


def write_page(
    run: Run,
    verdict: Verdict,
    benchmarks: Mapping[str, Mapping[str, Any]],
    sections: Sequence[Section],
    baseline: Run | None,
    target: Path,
    live_case_count: int | None = None,
) -> Path:
    """Write the page of one run; it shows the baseline's scores, and the baseline's texts for cases that changed."""
    runs = [run] if baseline is None else [run, baseline]
    overview = {
        "kind": "run",
        "runs": [encode_run(each, each.folder.name) for each in runs],
        "subject": 0,
        "against": None if baseline is None else 1,
        "verdict": encode_verdict(verdict),
        "benchmarks": [
            {
                "name": name,
                "cases": len(bench.tally),
                "source": bench.source,
                "metric": bench.primary,
                "found": benchmarks[name]["metrics"].get(bench.primary),
            }
            for name, bench in run.benchmarks.items()
        ],
        "lower_is_better": list_minimised_metrics(runs),
        "estimates": [select_estimates(benchmarks)],
        "differences": compare_run_pairs(runs, [(1, 0)] if baseline else []),
        "sections": convert_sections(sections),
    }
    if live_case_count is not None:
        overview["live"] = live_case_count
    title = f"{run.info.get('model') or 'no model'}: {verdict.headline}"
    return _write_page_file(target / PAGE, title, overview, runs, whole_run_count=1)


def write_comparison_page(
    runs: Sequence[Run],
    labels: Sequence[str],
    sections: Sequence[Section],
    target: Path,
    history: Mapping[str, Sequence[str]] | None = None,
) -> Path:
    """Write the page of several runs into a folder."""
    overview: dict[str, Any] = {
        "kind": "comparison",
        "runs": [encode_run(run, label) for run, label in zip(runs, labels, strict=True)],
        "subject": 1,
        "against": 0,
        "verdict": None,
        "benchmarks": make_comparison_rows(runs),
        "lower_is_better": list_minimised_metrics(runs),
        "estimates": [select_estimates(summarise_benchmarks(run)) for run in runs],
        # A history has no comparison of all pairs of runs, because there would be too many.
        "differences": compare_run_pairs(runs, list(combinations(range(len(runs)), 2)) if history is None else []),
        "sections": convert_sections(sections, ()),
    }
    if history is not None:
        overview["history"] = {name: list(lines) for name, lines in history.items()}
    return _write_page_file(target / COMPARISON, " against ".join(labels), overview, runs, whole_run_count=len(runs))


def _write_page_file(
    file: Path, title: str, overview: dict[str, Any], runs: Sequence[Run], whole_run_count: int
) -> Path:
    """Write a page with all records of the first `whole_run_count` runs, and the others' records that differ."""
    records = [run.folder.path / RECORDS for run in runs]
    size = sum(path.stat().st_size for path in records if path.is_file())
    chunks = ChunkStore(file.parent, beside=size > INSIDE)
    with ExitStack() as stack:
        tables: list[CaseTable] = []
        for number, path in enumerate(records):
            tables.append(stack.enter_context(closing(CaseTable())))
            if path.is_file():
                add_run_records(path, number, chunks, tables[-1], tables[0] if number >= whole_run_count else None)
        for number, table in enumerate(tables):
            chunks.add_chunk(f"index-{number}", table.encode_rows_in_pieces())
    replace_file(file, build_page(title, {**overview, "bytes": size}, chunks.inside))
    return file


SHOWN_APART = {"This run", "Gates", "Benchmarks", "Lowest scores", "Signature"}
"""Report sections that the page leaves out, because its first screen or its list of cases shows their content."""

NOT_REPEATED = {
    "run", "resume", "replay", "shard", "gate", "baseline", "stop_when_decided", "limit", "reports",
}  # fmt: skip
"""Command-line options that are not needed to repeat a single case of a run."""

MOST_VALUES = 60  # If a tag has more values than this, it identifies single cases instead of groups.


def encode_run(run: Run, label: str) -> dict[str, Any]:
    """Convert a run's model, time, options and cost to plain data."""
    info = run.info
    settings = info.get("settings", {})
    return {
        "name": run.folder.name,
        "label": label,
        "model": info.get("model"),
        "base_url": settings.get("model_base_url"),
        "params": settings.get("model_param") or [],
        "judge": settings.get("judge_model"),
        "started": info.get("started"),
        "seconds": info.get("seconds"),
        "usage": info.get("usage"),
        "command": info.get("command"),
        "versions": info.get("versions", {}),
        "sources": {name: bench.source for name, bench in run.benchmarks.items()},
        "options": _list_options(settings),
    }


def _list_options(settings: Mapping[str, Any]) -> list[str]:
    """List the command-line options with which a case of this run can be repeated."""
    options = []
    for name in settings.get("given", ()):
        value = settings.get(name)
        if name not in NOT_REPEATED and value not in (None, [], False):
            flag = f"--{name.replace('_', '-')}"
            values = value if isinstance(value, list) else [value]
            options += [flag if amount is True else f"{flag}={amount}" for amount in values]
    return options


def encode_verdict(verdict: Verdict) -> dict[str, Any]:
    """Convert the verdict, with its gates and baselines, to plain data."""
    return {
        "status": int(verdict.status),
        "id": verdict.id,
        "headline": verdict.headline,
        "reasons": verdict.reasons_beyond_gates,
        "remarks": verdict.remarks,
        "counts": dict(verdict.counts),
        "gates": [{**asdict(decision.gate), **encode_decision(decision)} for decision in verdict.decisions],
        "baselines": [_encode_baseline_comparison(against) for against in verdict.against],
    }


def encode_decision(decision: GateDecision) -> dict[str, Any]:
    """Convert a gate's decision to plain data, without the gate."""
    return {
        "subject": decision.subject,
        "verdict": decision.verdict,
        "reason": decision.reason,
        "found": convert_cell(decision.estimate),
    }


def _encode_baseline_comparison(comparison: BaselineComparison) -> dict[str, Any]:
    return {
        "name": comparison.name,
        "metrics": [
            {
                "subject": str(subject),
                **asdict(subject),
                "verdict": verdict,
                "margin": measured.margin,
                **{name: convert_cell(value) for name, value in measured.to_dict().items()},
            }
            for subject, measured, verdict in comparison.found
        ],
        "left_out": {side: len(cases) for side, cases in comparison.left_out.items()},
        "not_compared": list(map(str, comparison.not_compared)),
    }


def summarise_benchmarks(run: Run) -> dict[str, dict[str, Any]]:
    """Estimate every metric of each benchmark, over all cases and over the cases with each tag value."""
    return {name: _summarise_benchmark(MeasuredBenchmark.from_run(run, name)) for name in run.benchmarks}


def _summarise_benchmark(measured: MeasuredBenchmark) -> dict[str, Any]:
    tags = sorted({tag for row in measured.tally for tag in row.tags})
    metrics = _estimate_metrics(measured, measured.tally)
    # Read failures before the tags are measured, because a derived metric keeps only its latest failure.
    failed = {metric: reason for metric in metrics if (reason := measured.explain_failure(metric))}
    missing = {
        metric: [row.case for row in rows]
        for metric in measured.derived
        if (rows := measured.find_unscored_cases(metric, measured.tally))
    }
    return {
        "cases": len(measured.tally),
        **({"missing": missing} if missing else {}),
        "errors": measured.tally.count("error"),
        "metrics": metrics,
        **({"failed_metrics": failed} if failed else {}),
        "tags": {
            tag: {value: _estimate_metrics(measured, cases) for value, cases in groups.items()}
            for tag in tags
            # Omit tags whose value differs in almost every case, because such tags identify cases instead of groups.
            if len(groups := measured.tally.groups(tag)) <= max(2, len(measured.tally) // 2)
        },
    }


def _estimate_metrics(measured: MeasuredBenchmark, cases: Tally) -> dict[str, Any]:
    return {metric: convert_cell(measured.estimate_metric(metric, cases)) for metric in measured.list_metrics()}


def select_estimates(benchmarks: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Select from the benchmarks' summaries the estimates that the page shows."""
    return {
        name: {"": bench["metrics"]}
        | {
            f"{tag}:{value}": metrics
            for tag, values in bench["tags"].items()
            if len(values) <= MOST_VALUES
            for value, metrics in values.items()
        }
        for name, bench in benchmarks.items()
    }


def compare_run_pairs(runs: Sequence[Run], pairs: Sequence[tuple[int, int]]) -> list[dict[str, Any]]:
    """Compare pairs of runs in every metric, over all questions and over the questions with each tag value.

    Args:
        pairs: the indices of the first and the second run of each pair. P-values and intervals are corrected for the
            number of pairs.
    """
    ranges, rows = map_metric_ranges(runs), []
    for first, second in pairs:
        base, other = runs[first].benchmarks, runs[second].benchmarks
        for name in sorted(set(base) & set(other)):
            questions = pair_questions(base[name].tally, other[name].tally)
            for metric in dict.fromkeys((*other[name].tally.metrics(), PASS_RATE)):
                found = compare_runs_by_tag(questions, metric, ranges.get(f"{name}.{metric}"), len(pairs))
                rows += [
                    {"benchmark": name, "metric": metric, "first": first, "second": second, "part": part}
                    | convert_cell(pair.difference)
                    | {"p": pair.pvalue}
                    for part, pair in found
                    if pair.difference is not None
                ]
    return rows


def make_comparison_rows(runs: Sequence[Run]) -> list[dict[str, Any]]:
    """Make one row for every benchmark in any of the runs, with each run's estimate of the primary metric."""
    rows = []
    for name in sorted({name for run in runs for name in run.benchmarks}):
        benches = [run.benchmarks[name] for run in runs if name in run.benchmarks]
        metric = next((bench.primary for bench in benches if bench.primary), None)
        rows.append(
            {
                "name": name,
                "cases": max(len(bench.tally) for bench in benches),
                "metric": metric,
                "found": [convert_cell(estimate_metric(run, name, metric)) for run in runs],
            }
        )
    return rows


def list_minimised_metrics(runs: Iterable[Run]) -> list[str]:
    """List each metric (as `benchmark.metric`) whose declaration or gate states that lower is better."""
    names = set()
    for run in runs:
        gates = read_gates(run)
        for name, bench in run.benchmarks.items():
            bounded = {gate.metric for gate in gates if gate.covers_benchmark(name) and not gate.is_higher_better}
            metrics = (*bench.tally.metrics(), *bench.derived)
            names |= {
                f"{name}.{metric}" for metric in metrics if metric in bounded or run.lower_is_better(name, metric)
            }
    return sorted(names)


def map_metric_ranges(runs: Iterable[Run]) -> dict[str, tuple[float, float]]:
    """Map `benchmark.metric` to the metric's declared range; if runs differ, the first run's range counts."""
    ranges: dict[str, tuple[float, float]] = {}
    for run in runs:
        for name, bench in run.benchmarks.items():
            for metric in bench.tally.metrics():
                if (bounds := find_declaration(run, name, metric).range) is not None:
                    ranges.setdefault(f"{name}.{metric}", bounds)
    return ranges


def convert_sections(sections: Iterable[Section], omitted_titles: Iterable[str] = SHOWN_APART) -> list[dict[str, Any]]:
    """Convert the report's sections, with numbers rounded as in the report."""
    left_out = set(omitted_titles)
    return [
        {"title": section.title, "blocks": [convert_block(block) for block in section.blocks]}
        for section in sections
        if section.title not in left_out
    ]


def convert_block(block: Block) -> dict[str, Any]:
    """Convert one block of a report (a table, chart or passage) to plain data for the page."""
    if isinstance(block, Table):
        block = drop_unmeasured_columns(block)
        return {
            "kind": "table",
            "title": block.title,
            "note": block.note,
            "columns": [{"title": column.title, "style": column.style} for column in block.columns],
            "folded": block.folded,
            "rows": [list(map(format_plain_cell, row, block.columns)) for row in block.rows],
        }
    if isinstance(block, Chart):
        return {
            "kind": block.kind,
            "folded": block.folded,
            "title": block.title,
            "labels": list(block.labels),
            "series": [
                {"name": series.name, "values": [_encode_estimate(value) for value in series.values]}
                for series in block.series
            ],
            "unit": block.unit,
            "limits": block.limits,
            "x_title": block.x_title,
            "y_title": block.y_title,
        }
    return {"kind": "passage", "title": block.title, "text": block.text, "folded": block.folded}


def _encode_estimate(value: Any) -> Any:
    """Convert a measured value to an object with value and interval; return None for a missing value."""
    if isinstance(value, float | int):
        return {"value": value} if math.isfinite(value) else None
    return convert_cell(value)


@dataclass(frozen=True, slots=True)
class PairedComparison:
    """A comparison of two runs in one metric, over the questions that both runs scored."""

    n: int  # Number of questions.
    before: float | None = None  # The metric's mean in the first run.
    after: float | None = None  # The metric's mean in the second run.
    # Mean of the second run minus mean of the first run, with its interval; None for fewer than two questions.
    difference: Estimate | None = None
    pvalue: float | None = None  # Two-sided p-value for no difference; None for fewer than two questions.


def compare_runs_by_tag(
    questions: SharedQuestions, metric: str, bounds: tuple[float, float] | None, comparison_count: int
) -> Iterator[tuple[str, PairedComparison]]:
    """Yield comparisons with keys: "" for all questions, `tag:value` for the questions with this tag value."""
    pairs = questions.list_pairs(metric)
    parts: dict[str, dict[str, list[ScorePair]]] = {}
    for pair in pairs:
        for tag, value in pair.row.tags.items():
            parts.setdefault(tag, {}).setdefault(value, []).append(pair)
    yield "", compare_score_pairs(pairs, bounds, comparison_count)
    for tag, values in sorted(parts.items()):
        if len(values) <= MOST_VALUES:
            for value, part in sorted(values.items()):
                yield f"{tag}:{value}", compare_score_pairs(part, bounds, comparison_count)


def compare_score_pairs(
    pairs: Sequence[ScorePair], bounds: tuple[float, float] | None, comparison_count: int
) -> PairedComparison:
    """Compare two runs by pairs of scores; each pair has both runs' scores for one question.

    Args:
        bounds: the metric's declared range; None if it declares none.
        comparison_count: the number of comparisons for which p-value and interval are corrected.
    """
    from evalsuite.stats.paired import compute_paired_pvalue

    if len(pairs) < 2:
        return PairedComparison(len(pairs))
    before, after, clusters = split_score_pairs(pairs)
    shares = are_outcomes({*before, *after}, bounds)
    low, high = (0.0, 1.0) if shares else bounds or (-math.inf, math.inf)
    inside = low <= min(*before, *after) and max(*before, *after) <= high < math.inf
    found = stats.paired_difference(
        before, after, clusters=clusters, scale=high - low if inside else None, confidence=1 - 0.05 / comparison_count
    )
    pvalue, ends = compute_paired_pvalue(before, after, clusters), (found.low, found.high)
    is_exact = clusters is None and are_outcomes({*before, *after}, None)  # Whether McNemar's test gave the p-value.
    if is_exact and pvalue > 0.05 / comparison_count:
        # The interval is an approximation: extend it to zero if the exact test finds no difference.
        ends = (min(0.0, found.low), max(0.0, found.high))
    return PairedComparison(
        len(pairs),
        math.fsum(before) / len(before),
        math.fsum(after) / len(after),
        Estimate(found.difference, *ends, len(pairs)),
        min(1.0, comparison_count * pvalue),
    )
