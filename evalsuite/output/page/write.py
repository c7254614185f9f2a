"""Write `report.html` for one run and `comparison.html` for several runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evalsuite.output.page.document import CaseTable, ChunkStore, add_run_records, build_page
from evalsuite.output.page.overview import (
    compare_run_pairs,
    convert_sections,
    encode_run,
    encode_verdict,
    list_minimised_metrics,
    make_benchmark_rows,
    make_comparison_rows,
    select_estimates,
    summarise_benchmarks,
)
from evalsuite.results.run_folders import RECORDS, replace_file

if TYPE_CHECKING:
    from evalsuite.decisions.verdict import Verdict
    from evalsuite.output.reports.section import Section
    from evalsuite.results.runs import Run

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
        "benchmarks": make_benchmark_rows(run, benchmarks),
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
            tables.append(stack.enter_context(CaseTable()))
            if path.is_file():
                add_run_records(path, number, chunks, tables[-1], tables[0] if number >= whole_run_count else None)
        for number, table in enumerate(tables):
            chunks.add_chunk(f"index-{number}", table.encode_rows_in_pieces())
    replace_file(file, build_page(title, {**overview, "bytes": size}, chunks.inside))
    return file
