"""ToolEyes' section: scenarios, capabilities and their parts, turns, failures and two episodes to read.

Tables and figures are those of the paper (arXiv 2401.00741), named in each function.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from evalsuite.benchmarks.tool_eyes.capabilities import CAPABILITIES, OVERALL, RELEASED_MODES, RULES
from evalsuite.benchmarks.tool_eyes.capability_tables import (
    asked,
    by_scenario,
    five_capabilities,
    products,
    radars,
    rules,
    tool_selection,
)
from evalsuite.benchmarks.tool_eyes.episode_counts import failures, failures_chart, turns, turns_chart
from evalsuite.benchmarks.tool_eyes.episode_rows import episodes, named
from evalsuite.benchmarks.tool_eyes.relations import anova, correlations, correlations_over_runs
from evalsuite.benchmarks.tool_eyes.transcript_table import episode_tables
from evalsuite.core.counted_nouns import number_of
from evalsuite.output.reports.section import Passage, Section
from evalsuite.output.reports.table_rows import lines_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evalsuite.output.reports.section import Block
    from evalsuite.output.reports.table_rows import LabelledCases
    from evalsuite.results.tally import RunView, Tally

TITLE = "ToolEyes: using tools, from the form of a call to the answer"
PREFACE = (
    "The overall score is the mean of five capabilities, all in percent: format alignment by rule, the others "
    "with a judge. Brackets hold 95% intervals; a dash means: not measured."
)


def report(views: Sequence[RunView]) -> Section:
    """The section for one run, or for several side by side."""
    lines = [line for view in views for line in lines_of(view, alone=len(views) == 1)]
    blocks: list[Block] = [
        _preface(views, lines),
        asked(lines),
        by_scenario("Overall score by scenario", OVERALL, lines),
        five_capabilities(lines),
        *radars(lines),
        rules(lines),
        tool_selection(lines),
        products(lines),
        *(
            by_scenario(f"{named(metric)} by scenario", metric, lines)
            for metric in dict.fromkeys((*RULES, *CAPABILITIES))
            if any(line.tally.values(metric) for line in lines)
        ),
        anova(lines),
        turns(lines),
        turns_chart(lines),
        *(block for number, line in enumerate(lines, 1) for block in correlations(line, number)),
        *correlations_over_runs(lines),
        failures(lines),
        failures_chart(lines),
        *(table for line in lines for table in episode_tables(line.label, line.tally, line.view.read)),
    ]
    return Section(TITLE, blocks)


def _preface(views: Sequence[RunView], lines: Sequence[LabelledCases]) -> Passage:
    paragraphs = [PREFACE]
    for view in views:
        modes = ", ".join(view.tally.groups("mode"))
        judge = f"judged by {view.judge}" if view.judge else "no judge, so that only the rule parts stand"
        paragraphs.append(
            f"{view.label}: {view.source or 'source not recorded'}; mode {modes or 'none'}; {judge}."
        )
    paragraphs += [
        f"{line.label}: {_who_ran(line.tally)}{_errors(line.tally)}.{_untold(line.tally)}{_variant(line.tally)}"
        for line in lines
    ]
    return Passage("", "\n\n".join(paragraphs))


def _who_ran(tally: Tally) -> str:
    executors: Counter[str] = Counter()
    for row in episodes(tally):
        executors.update(row.facts["executors"])
    simulators = sorted({row.facts["simulator"] for row in episodes(tally) if "simulator" in row.facts})
    ran = ", ".join(f"{count} {kind}" for kind, count in sorted(executors.items()) if kind != "episode")
    played = f", played by {' and '.join(simulators)}" if simulators else ""
    return f"calls that were run: {ran or 'none'}{played}"


def _errors(tally: Tally) -> str:
    lost = sum(row.outcome == "error" for row in tally)
    return f"; errors in {lost} of {number_of(len(tally), 'case')}, which count nowhere" if lost else ""


def _variant(tally: Tally) -> str:
    modes = set(tally.groups("mode"))
    if not modes & set(RELEASED_MODES):
        return ""
    if modes - set(RELEASED_MODES):
        return " Some of its cases are scored as the released code scores, some by the paper's formulas."
    return " Scored as the authors' released code scores, which is not as the paper says (docs/tool_eyes.md)."


def _untold(tally: Tally) -> str:
    """A word of doubt where the native protocol saw no call at all: a server may not show the model its tools."""
    rows = [row.facts for row in episodes(tally.where(mode="functions"))]
    if not rows or any(facts["faults"].get("no_call") != facts["turns"] for facts in rows):
        return ""
    return (
        " In mode functions no message called anything: either the model cannot, or its server never shows it "
        "the tools (the chat template of many small models leaves them out). Mode react needs no such server."
    )
