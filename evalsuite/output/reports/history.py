"""Releases over time as Markdown, pictures and a page."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from evalsuite.decisions.flaky import flaky_cases
from evalsuite.output.page.write import write_comparison_page
from evalsuite.output.reports.markdown import escape, render
from evalsuite.output.reports.plots import draw_all
from evalsuite.output.reports.section import Cell, Chart, Column, Section, Series, Table
from evalsuite.results.run_folders import replace_text
from evalsuite.results.tally import Estimate

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from evalsuite.decisions.flaky import FlakyCase
    from evalsuite.decisions.history import Course, Release
    from evalsuite.results.runs import Run

FILE = "history.md"

MOST_FLAKY = 20
"""Flaky cases shown, the most undecided first."""


def write_history(runs: Sequence[Run], courses: Sequence[Course], target: Path) -> Path:
    """Writes history.md, its page and pictures into a folder.

    Args:
        runs: the releases.
        courses: of their metrics.
        target: the folder.
    """
    target.mkdir(parents=True, exist_ok=True)
    sections = [*history_sections(courses), *_flaky(flaky_cases(runs))]
    charts = [block for section in sections for block in section.blocks if isinstance(block, Chart)]
    pictures = draw_all(charts, target)
    file = target / FILE
    replace_text(file, f"# {len(runs)} releases\n\n{findings(courses)}\n\n{render(sections, pictures)}\n")
    drifts = {
        "drifts": [line for course in courses for line in course.drifts()],
        "latest": [line for course in courses for line in course.drifts(latest_only=True)],
    }
    write_comparison_page(runs, [run.folder.name for run in runs], sections, target, drifts)
    return file


def findings(courses: Sequence[Course]) -> str:
    """In a list, what has drifted; or that nothing has."""
    lines = [line for course in courses for line in course.drifts()]
    return "\n".join(f"- {escape(line)}" for line in lines) or "No drift from a reference is shown."


def history_sections(courses: Sequence[Course]) -> list[Section]:
    """A section for each metric: its picture, and a row for each release."""
    return [Section(str(course.subject), [_chart(course), _table(course)]) for course in courses]


def _flaky(cases: Sequence[FlakyCase]) -> list[Section]:
    """Cases that flip between epochs or runs of one model; nothing where none does."""
    if not cases:
        return []
    columns = [
        Column("benchmark"),
        Column("sample"),
        Column("model"),
        Column("passed", "count"),
        Column("failed", "count"),
    ]
    rows: list[list[Cell]] = [
        [case.benchmark, case.sample, case.model, case.passed, case.failed] for case in cases[:MOST_FLAKY]
    ]
    note = f"{len(cases)} questions passed and failed when asked the same way of the same model."
    return [Section("Flaky cases", [Table("", columns, rows, note)])]


def _table(course: Course) -> Table:
    references = list(dict.fromkeys(name for release in course.releases for name in release.standings))
    columns = [
        Column("release"),
        Column("started"),
        Column("model"),
        Column("value with 95% interval", "number", 4),
    ]
    for name in references:
        columns += [
            Column(f"against {name}", "number", 4),
            Column("p", "pvalue"),
            Column("level", "pvalue"),
            Column(""),
        ]
    rows = [_row(release, references) for release in course.releases]
    note = (
        "Every release is compared with the same reference, paired by question. `drift`: a fall is shown at a level "
        "that, summed over all looks and metrics, stays at 5%, and a loss of the margin is not excluded."
    )
    return Table("", columns, rows, note if references else "")


def _row(release: Release, references: Sequence[str]) -> list[Cell]:
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


def _chart(course: Course) -> Chart:
    name = re.sub(r"\W+", "_", str(course.subject)).strip("_")
    return Chart(
        "lines",
        f"history_{name}",
        str(course.subject),
        [release.run for release in course.releases],
        [Series("value", [release.estimate for release in course.releases])],
        y_title="mean, 95% interval",
    )
