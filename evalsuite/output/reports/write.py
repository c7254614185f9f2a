"""Write the results of a run into its folder: `report.md`, `report.html`, `summary.json` and charts."""

from __future__ import annotations

import html
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evalsuite.core.errors import describe_exception, shorten_to_ends
from evalsuite.decisions.verdict import Status, Verdict, make_verdict
from evalsuite.output.page.write import PAGE, encode_decision, summarise_benchmarks, write_page
from evalsuite.output.reports.case_block import format_case_blocks, list_cases_to_show
from evalsuite.output.reports.markdown import (
    escape_markdown,
    format_decision_line,
    format_plain_cell,
    render_passage,
    render_section_links,
    render_sections,
)
from evalsuite.output.reports.plots import can_draw_charts, draw_charts
from evalsuite.output.reports.report import build_report
from evalsuite.output.reports.section import Passage, Section, Table, convert_cell, convert_tables, list_charts
from evalsuite.results.run_folders import COMMENT, REPORT, SUMMARY, RunFolder, find_run_folder, replace_file
from evalsuite.results.runs import Run, load_run

if TYPE_CHECKING:
    from evalsuite.core.declarations import Declarations
    from evalsuite.decisions.comparison import BaselineComparison

    MoreSections = Callable[[Run, Verdict], Sequence[Section]]

MARKS = {Status.GOOD: "✅", Status.INCOMPLETE: "⚠️"}
FIRST_SCREEN = {"This run", "Gates", "Benchmarks", "Errors"}
LONGEST_COMMENT = 60_000  # Maximum characters of a comment; GitHub allows 65,536.
MOST_CASES = 5  # Maximum number of failed cases that the comment of a pull request shows, in folded blocks.
LARGEST_STEP_SUMMARY = 1_000_000  # Maximum bytes of a step summary; GitHub allows one MiB.
MOST_REASONS, LONGEST_REASON = 20, 500
"""Maximum lines, and maximum characters per line, at the top of a report; `summary.json` has all reasons."""

MARKER = "<!-- evalsuite verdict "
"""The text before a verdict's id in Markdown; it is an HTML comment, which is not displayed."""

NO_PICTURES = "Pictures need matplotlib: pip install 'evalsuite[plots]', then `evalsuite report` on this run."


@dataclass(frozen=True, slots=True)
class RunReport:
    """A run's report before it is written to files."""

    run: Run  # The run with its records.
    baselines: Sequence[Run]  # The runs that this run was compared with.
    verdict: Verdict  # The run's verdict.
    sections: Sequence[Section]  # The sections of the report.

    def render_text(self, pictures: Sequence[str] = ()) -> str:
        """Render the report as Markdown; show the pictures only of the named charts."""
        text = "\n\n".join(
            (self.heading, render_section_links(self.sections), render_sections(self.sections, pictures))
        )
        return f"{text}\n\n{NO_PICTURES}\n" if list_charts(self.sections) and not can_draw_charts() else text + "\n"

    @property
    def heading(self) -> str:
        """The first lines of report and comment: the verdict, and a hidden mark with the verdict's id for programs."""
        return f"{format_heading(self.verdict, self.run.info.get('model'))}\n\n{MARKER}{self.verdict.id} -->"

    @property
    def baseline(self) -> Run | None:
        """The baseline that the run names first; the report shows its answers beside this run's."""
        return next(iter(self.baselines), None)


def make_report(run: Run, make_sections: MoreSections | None = None) -> RunReport:
    """Decide a run's verdict and make its report, without writing files."""
    baselines = [load_run(find_run_folder(run.folder.path.parent, name)) for name in run.baselines]
    verdict = make_verdict(run, *baselines)
    sections = build_report(run, verdict)
    sections[-1:-1] = make_sections(run, verdict) if make_sections else ()
    return RunReport(run, baselines, verdict, sections)


def write_report(report: RunReport, target: Path) -> None:
    """Write report, page, summary and charts into a folder; create the folder if it is missing."""
    target.mkdir(parents=True, exist_ok=True)
    summary = summarise_run(report)
    replace_file(target / SUMMARY, json.dumps(summary, indent=1, ensure_ascii=False) + "\n")
    replace_file(target / COMMENT, format_comment(report) + "\n")
    replace_file(target / REPORT, report.render_text())
    # Draw charts last, because drawing takes longest and fails most often.
    text = report.render_text(draw_charts(list_charts(report.sections), target))
    replace_file(target / REPORT, text)
    try:
        write_page(report.run, report.verdict, summary["benchmarks"], report.sections, report.baseline, target)
    except Exception as error:  # noqa: BLE001 - a page to look at never costs the verdict
        why = f"`{PAGE}` could not be written: {type(error).__name__}: {error}"
        replace_file(target / REPORT, f"{text}\n{why}\n")


def write_run_report(
    folder: RunFolder, declarations: Declarations, make_sections: MoreSections | None = None
) -> RunReport:
    """Decide the verdict of a finished run, and write the report into the run's folder."""
    report = make_report(load_run(folder, declarations), make_sections)
    write_report(report, folder.path)
    return report


def format_comment(report: RunReport) -> str:
    """Write a pull request's comment: the most important sections and some failed cases, as far as they fit."""
    text = report.heading
    for section in report.sections:
        if section.title in FIRST_SCREEN or section.title.startswith("Against "):
            more = render_sections([section], ())
            if len(text) + len(more) > LONGEST_COMMENT:
                return f"{text}\n\nThe rest is in the report of run {report.run.folder.name}."
            text += f"\n\n{more}"
    cases = list_cases_to_show(report.run, report.verdict, MOST_CASES)
    gated = {decision.gate.metric for decision in report.verdict.decisions}
    for title, block in format_case_blocks(cases, report.run, report.baseline, gated):
        more = render_passage(Passage(title, block, folded=True, whole=True))
        if len(text) + len(more) <= LONGEST_COMMENT:
            text += f"\n\n{more}"
    return text


def format_heading(verdict: Verdict, model: str | None) -> str:
    """Write the first lines of the report: verdict, reasons and remarks."""
    lines = [f"# {MARKS.get(verdict.status, '❌')} {escape_markdown(model or 'no model')}: {verdict.headline}"]
    reasons = [*verdict.reasons, *verdict.remarks]
    # If there are few gates, state only each gate's verdict here, because the table of gates gives the reason.
    if len(verdict.decisions) <= MOST_REASONS:
        names = [(each, f"gate {each.gate.text}: ") for each in verdict.decisions]
        short = {name + each.reason: name + each.verdict for each, name in names}
        reasons = list(dict.fromkeys(short.get(line, line) for line in reasons))
    # Shorten every reason to one line, because it may quote a server's whole error page.
    lines += [f"- {escape_markdown(shorten_to_ends(line, LONGEST_REASON))}" for line in reasons[:MOST_REASONS]]
    if len(reasons) > MOST_REASONS:
        lines.append(f"- and {len(reasons) - MOST_REASONS} more")
    return "\n\n".join((lines[0], "\n".join(lines[1:]))) if len(lines) > 1 else lines[0]


def append_to_github_files(text: str, short_text: str, verdict: Verdict) -> list[str]:
    """Show the report, without charts, on the job's page in GitHub's CI; pass the verdict's id on as output `verdict`.

    Returns:
        What could not be written, and why; a failure does not change the verdict.
    """
    fits = len(text.encode()) <= LARGEST_STEP_SUMMARY
    shown = "\n".join(line for line in (text if fits else short_text).split("\n") if not line.startswith("!["))
    failures = []
    for variable, added, consequence in (
        ("GITHUB_STEP_SUMMARY", shown, "the report is not on the job's page"),
        ("GITHUB_OUTPUT", f"verdict={verdict.id}", "later steps do not get the verdict"),
    ):
        try:
            if file := os.environ.get(variable):
                with Path(file).open("a", encoding="utf-8") as stream:
                    stream.write(added + "\n")
        except OSError as error:
            failures.append(f"{consequence}: {describe_exception(error)}")
    return failures


VERSION = 1  # Version of the format of `summary.json`; the format is described in `schemas/summary.json`.


def summarise_run(report: RunReport) -> dict[str, Any]:
    """Convert the run's results to JSON data for `summary.json`."""
    run, verdict = report.run, report.verdict
    return {
        "version": VERSION,
        "run": run.folder.name,
        "status": int(verdict.status),
        "verdict": verdict.headline,
        "verdict_id": verdict.id,
        "reasons": list(verdict.reasons),
        "model": run.info.get("model"),
        "judge": run.info.get("settings", {}).get("judge_model"),
        "shortened": verdict.shortened,
        "remarks": verdict.remarks,
        "baselines": [_summarise_baseline_comparison(against) for against in verdict.against],
        "cases": dict(sorted(verdict.counts.items())),
        "usage": run.info.get("usage"),
        "seconds": run.info.get("seconds"),
        "gates": [{"gate": decision.gate.text, **encode_decision(decision)} for decision in verdict.decisions],
        "benchmarks": {
            name: {"title": run.benchmarks[name].title, "primary": run.benchmarks[name].primary, **summary}
            for name, summary in summarise_benchmarks(run).items()
        },
        "tables": convert_tables(report.sections),
    }


def _summarise_baseline_comparison(comparison: BaselineComparison) -> dict[str, Any]:
    return {
        "baseline": comparison.name,
        "margin": comparison.rules.margin,
        "metrics": [
            {"metric": str(subject), "verdict": verdict, **{k: convert_cell(v) for k, v in one.to_dict().items()}}
            for subject, one, verdict in comparison.found
        ],
        "left_out": {side: list(cases) for side, cases in comparison.left_out.items()},
    }


def make_short_html(report: RunReport, report_path: Path) -> str:
    """Make an HTML fragment of verdict, gates and main tables, without scripts; models' texts are escaped."""
    verdict = report.verdict
    colour = "green" if verdict.status is Status.GOOD else "red"
    lines = [f'<p><strong style="color:{colour}">{html.escape(verdict.headline)}</strong></p>']
    decided = [*map(format_decision_line, verdict.decisions), *verdict.reasons_beyond_gates, *verdict.remarks]
    if decided:
        lines.append(f"<ul>{''.join(f'<li>{html.escape(line)}</li>' for line in decided)}</ul>")
    benches = report.run.benchmarks.items()
    shown = {bench.title or name for name, bench in benches} | {"Errors"}
    for section in report.sections:
        tables = [block for block in section.blocks if isinstance(block, Table) and not block.folded]
        if section.title in shown and tables:
            lines.append(_format_html_table(tables[0]))
    lines.append(f"<p>{html.escape(str(report_path))}</p>")
    return "\n".join(lines)


def _format_html_table(table: Table) -> str:
    head = "".join(f"<th>{html.escape(column.title)}</th>" for column in table.columns)
    rows = [map(format_plain_cell, row, table.columns) for row in table.rows]
    body = "".join(f"<tr>{''.join(f'<td>{html.escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
