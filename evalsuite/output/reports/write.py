"""Writes what is made of a run into its folder: `report.md`, `report.html`, `summary.json` and the pictures."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from evalsuite.core.errors import in_words
from evalsuite.core.shortening import both_ends
from evalsuite.decisions.verdict import Status, Verdict, judge_run, measure
from evalsuite.output.page.write import PAGE, write_page
from evalsuite.output.reports.failed_cases import blocks, cases_to_show
from evalsuite.output.reports.markdown import contents, escape, render, render_passage
from evalsuite.output.reports.plots import can_draw, draw_all
from evalsuite.output.reports.report import build_report
from evalsuite.output.reports.section import Chart, Passage
from evalsuite.output.reports.summary import summarise
from evalsuite.results.run_folders import COMMENT, REPORT, SUMMARY, find_folder, replace_text
from evalsuite.results.runs import load_run

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from evalsuite.core.declarations import Declarations
    from evalsuite.decisions.measured import Measured
    from evalsuite.output.reports.section import Section
    from evalsuite.results.run_folders import RunFolder
    from evalsuite.results.runs import Run

    MoreSections = Callable[[Run, Verdict], Sequence[Section]]

MARKS = {Status.GOOD: "✅", Status.INCOMPLETE: "⚠️"}
FIRST_SCREEN = {"This run", "Gates", "Benchmarks", "Errors"}
LONGEST_COMMENT = 60_000
"""Characters; GitHub takes 65,536."""

MOST_CASES = 5
"""Failed cases that the comment shows, closed."""

LARGEST_STEP_SUMMARY = 1_000_000
"""Bytes; GitHub takes a MiB for a step."""

MOST_REASONS, LONGEST_REASON = 20, 500
"""Lines, and characters of each, on top of a report; all of them are in `summary.json`."""

MARKER = "<!-- evalsuite verdict "
"""What stands before a verdict's id in Markdown; a comment of HTML, which no forge shows."""

NO_PICTURES = "Pictures need matplotlib: pip install 'evalsuite[plots]', then `evalsuite report` on this run."


def nothing_more(_run: Run, _verdict: Verdict) -> Sequence[Section]:
    """No sections beside the report's own."""
    return ()


@dataclass(frozen=True, slots=True)
class RunReport:
    """What there is to say of a run, before it is written anywhere.

    Attributes:
        run: its records.
        baselines: the runs that it is compared with.
        verdict: what its gates and its baseline come to.
        measured: each benchmark's metrics.
        sections: of the report.
    """

    run: Run
    baselines: Sequence[Run]
    verdict: Verdict
    measured: Mapping[str, Measured]
    sections: Sequence[Section]

    def text(self, pictures: Sequence[str] = ()) -> str:
        """The report as Markdown, with those pictures that were drawn."""
        text = "\n\n".join((self.top, contents(self.sections), render(self.sections, pictures)))
        return f"{text}\n\n{NO_PICTURES}\n" if self.charts and not can_draw() else text + "\n"

    @property
    def top(self) -> str:
        """The first lines of report and comment: the verdict, and its id in a hidden mark for programs."""
        return f"{heading(self.verdict, self.run.info.get('model'))}\n\n{MARKER}{self.verdict.id} -->"

    @property
    def baseline(self) -> Run | None:
        """The run whose answers are shown beside this one's: the baseline that was named first."""
        return next(iter(self.baselines), None)

    @property
    def charts(self) -> list[Chart]:
        """What can be drawn."""
        return [block for section in self.sections for block in section.blocks if isinstance(block, Chart)]


def make_report(run: Run, more: MoreSections = nothing_more) -> RunReport:
    """Judges a run and says what there is to say of it; writes nothing.

    Args:
        run: its settings name the gates and the baseline.
        more: gives the sections that are added before the last.

    Raises:
        RunError: the baseline cannot be read.
    """
    measured, baselines = measure(run), find_baselines(run)
    verdict = judge_run(run, *baselines)
    sections = build_report(run, verdict, measured)
    sections[-1:-1] = more(run, verdict)
    return RunReport(run, baselines, verdict, measured, sections)


def write_report(report: RunReport, target: Path) -> None:
    """Writes report, page, summary and pictures into a folder, which is made where it is missing."""
    target.mkdir(parents=True, exist_ok=True)
    summary = summarise(report.run, report.verdict, report.measured, report.sections)
    replace_text(target / SUMMARY, json.dumps(summary, indent=1, ensure_ascii=False) + "\n")
    replace_text(target / COMMENT, comment(report) + "\n")
    replace_text(target / REPORT, report.text())
    # Last: what takes longest, and may fail in more ways than any number.
    text = report.text(draw_all(report.charts, target))
    replace_text(target / REPORT, text)
    try:
        write_page(report.run, report.verdict, report.measured, report.sections, report.baseline, target)
    except Exception as error:  # noqa: BLE001 - a page to look at never costs the verdict
        why = f"`{PAGE}` could not be written: {type(error).__name__}: {error}"
        replace_text(target / REPORT, f"{text}\n{why}\n")


def write_run(folder: RunFolder, declarations: Declarations, more: MoreSections = nothing_more) -> RunReport:
    """Judges a run that has ended, and writes what there is to say of it into its folder.

    Args:
        folder: of the run.
        declarations: finds the benchmarks that the records name.
        more: gives the sections that are added before the last.

    Raises:
        RunError: the run cannot be read.
    """
    report = make_report(load_run(folder, declarations), more)
    write_report(report, folder.path)
    return report


def find_baselines(run: Run) -> list[Run]:
    """The baselines that the run names, read.

    Raises:
        RunError: there is no such run.
    """
    return [load_run(find_folder(run.folder.path.parent, name)) for name in run.baselines]


def comment(report: RunReport) -> str:
    """The report's first screen and some failed cases, small enough for a comment on a pull request."""
    text = report.top
    for section in report.sections:
        if section.title in FIRST_SCREEN or section.title.startswith("Against "):
            more = render([section], ())
            if len(text) + len(more) > LONGEST_COMMENT:
                return f"{text}\n\nThe rest is in the report of run {report.run.folder.name}."
            text += f"\n\n{more}"
    for title, block in blocks(
        cases_to_show(report.run, report.verdict, MOST_CASES), report.run, report.baseline
    ):
        more = render_passage(Passage(title, block, folded=True, whole=True))
        if len(text) + len(more) <= LONGEST_COMMENT:
            text += f"\n\n{more}"
    return text


def heading(verdict: Verdict, model: str | None) -> str:
    """The report's first lines: verdict, reasons and remarks."""
    lines = [f"# {MARKS.get(verdict.status, '❌')} {escape(model or 'no model')}: {verdict.headline}"]
    reasons = [*verdict.reasons, *verdict.remarks]
    lines += [f"- {_one_line(line)}" for line in reasons[:MOST_REASONS]]
    if len(reasons) > MOST_REASONS:
        lines.append(f"- and {len(reasons) - MOST_REASONS} more")
    return "\n\n".join((lines[0], "\n".join(lines[1:]))) if len(lines) > 1 else lines[0]


def _one_line(text: str) -> str:
    """A reason as a line; a server's error page in it stays text."""
    return escape(both_ends(text, LONGEST_REASON))


def append_step_summary(text: str, short: str) -> str:
    """On GitHub's CI, shows the report on the job's page; pictures stay in the run's folder.

    Args:
        text: the report.
        short: shown in its place where it is larger than a job's page may be.

    Returns:
        What stood in the way, which is nothing to decide a release by; empty where all is well.
    """
    target = os.environ.get("GITHUB_STEP_SUMMARY")
    if not target:
        return ""
    fits = len(text.encode()) <= LARGEST_STEP_SUMMARY
    shown = "\n".join(line for line in (text if fits else short).split("\n") if not line.startswith("!["))
    return _append(target, shown, "the report is not on the job's page")


def append_step_output(verdict: Verdict) -> str:
    """On GitHub's CI, gives later steps the verdict's id as the output `verdict`; returns what stood in the way."""
    target = os.environ.get("GITHUB_OUTPUT")
    return _append(target, f"verdict={verdict.id}", "later steps do not get the verdict") if target else ""


def _append(file: str, text: str, otherwise: str) -> str:
    try:
        with Path(file).open("a", encoding="utf-8") as stream:
            stream.write(text + "\n")
    except OSError as error:
        return f"{otherwise}: {in_words(error)}"
    return ""
