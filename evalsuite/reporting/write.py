"""Writes what is made of a run into its folder: `report.md`, `report.html`, `summary.json` and the pictures."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

from evalsuite.decisions.verdict import Status, Verdict, judge_run, measure
from evalsuite.errors import in_words
from evalsuite.page.write import PAGE, write_page
from evalsuite.reporting.markdown import cut, render
from evalsuite.reporting.plots import can_draw, draw_all
from evalsuite.reporting.report import build_report
from evalsuite.reporting.section import Chart
from evalsuite.reporting.summary import summarise
from evalsuite.results.runs import COMMENT, REPORT, SUMMARY, find_folder, load_run, replace_text

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from evalsuite.declarations import Declarations
    from evalsuite.reporting.section import Section
    from evalsuite.results.runs import Run, RunFolder

    MoreSections = Callable[[Run, Verdict], Sequence[Section]]

MARKS = {Status.GOOD: "✅", Status.INCOMPLETE: "⚠️"}
FIRST_SCREEN = {"This run", "Gates", "Benchmarks", "Errors"}
LONGEST_COMMENT = 60_000
"""Characters; GitHub takes 65,536."""

LARGEST_STEP_SUMMARY = 1_000_000
"""Bytes; GitHub takes a MiB for a step."""

MOST_REASONS, LONGEST_REASON = 20, 500
"""Lines, and characters of each, on top of a report; all of them are in `summary.json`."""

NO_PICTURES = "Pictures need matplotlib: pip install 'evalsuite[plots]', then `evalsuite report` on this run."


def nothing_more(_run: Run, _verdict: Verdict) -> Sequence[Section]:
    """No sections beside the report's own."""
    return ()


def write_run(folder: RunFolder, declarations: Declarations, more: MoreSections = nothing_more) -> Verdict:
    """Makes report, summary and pictures of a run's records.

    Args:
        folder: of the run.
        declarations: finds the benchmarks that the records name.
        more: gives the sections that are added before the last.

    Raises:
        RunError: the run cannot be read.
    """
    run = load_run(folder, declarations)
    measured = measure(run)
    baseline = find_baseline(run)
    verdict = judge_run(run, baseline)
    sections = build_report(run, verdict, measured)
    sections[-1:-1] = more(run, verdict)
    charts = [block for section in sections for block in section.blocks if isinstance(block, Chart)]
    pictures = draw_all(charts, folder.path)
    text = heading(verdict, run.info.get("model")) + "\n\n" + render(sections, pictures)
    if charts and not can_draw():
        text += f"\n\n{NO_PICTURES}"
    replace_text(folder.path / REPORT, text + "\n")
    replace_text(folder.path / COMMENT, comment(verdict, run, sections) + "\n")
    summary = summarise(run, verdict, measured, sections)
    replace_text(folder.path / SUMMARY, json.dumps(summary, indent=1, ensure_ascii=False) + "\n")
    try:
        write_page(run, verdict, measured, sections, baseline)
    except Exception as error:  # noqa: BLE001 - a page to look at never costs the verdict
        why = f"`{PAGE}` could not be written: {type(error).__name__}: {error}"
        replace_text(folder.path / REPORT, f"{text}\n\n{why}\n")
    return verdict


def find_baseline(run: Run) -> Run | None:
    """The baseline that the run names, read; None where it names none.

    Raises:
        RunError: there is no such run.
    """
    name = run.info.get("settings", {}).get("baseline")
    return load_run(find_folder(run.folder.path.parent, name)) if name else None


def comment(verdict: Verdict, run: Run, sections: Sequence[Section]) -> str:
    """The report's first screen, small enough for a comment on a pull request: verdict, gates, changes, cost."""
    text = heading(verdict, run.info.get("model"))
    for section in sections:
        if section.title in FIRST_SCREEN or section.title.startswith("Against "):
            more = render([section], ())
            if len(text) + len(more) > LONGEST_COMMENT:
                return f"{text}\n\nThe rest is in the report of run {run.folder.name}."
            text += f"\n\n{more}"
    return text


def heading(verdict: Verdict, model: str | None) -> str:
    """The report's first lines: verdict, reasons and remarks."""
    lines = [f"# {MARKS.get(verdict.status, '❌')} {model or 'no model'}: {verdict.headline}"]
    said = [*verdict.reasons, *verdict.remarks]
    lines += [f"- {_one_line(line)}" for line in said[:MOST_REASONS]]
    if len(said) > MOST_REASONS:
        lines.append(f"- and {len(said) - MOST_REASONS} more")
    return "\n\n".join((lines[0], "\n".join(lines[1:]))) if len(lines) > 1 else lines[0]


def _one_line(text: str) -> str:
    """A reason as a line; a server's error page in it stays text."""
    return " ".join(cut(text, LONGEST_REASON).split()).replace("<", "&lt;")


def append_step_summary(folder: RunFolder) -> str:
    """On GitHub's CI, shows the report on the job's page; pictures stay in the run's folder.

    Returns:
        What stood in the way, which is nothing to decide a release by; empty where all is well.
    """
    target = os.environ.get("GITHUB_STEP_SUMMARY")
    if not target:
        return ""
    text = (folder.path / REPORT).read_text("utf-8")
    if len(text.encode()) > LARGEST_STEP_SUMMARY:
        text = (folder.path / COMMENT).read_text("utf-8")
    shown = "\n".join(line for line in text.split("\n") if not line.startswith("!["))
    try:
        with Path(target).open("a", encoding="utf-8") as stream:
            stream.write(shown + "\n")
    except OSError as error:
        return f"the report is not on the job's page: {in_words(error)}"
    return ""
