"""ToolEyes' section: scenarios, five capabilities, turns, failures and two episodes to read.

Tables and figures are those of the paper (arXiv 2401.00741), named in each function.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from evalsuite.benchmarks.tool_eyes.capabilities import CAPABILITIES, OVERALL, RULES
from evalsuite.benchmarks.tool_eyes.episode_counts import failures, failures_chart, turns, turns_chart
from evalsuite.benchmarks.tool_eyes.episode_rows import episodes, named
from evalsuite.benchmarks.tool_eyes.paper_results import SCENARIOS
from evalsuite.benchmarks.tool_eyes.relations import anova, correlations
from evalsuite.benchmarks.tool_eyes.transcript_table import episode_tables
from evalsuite.reporting.section import Chart, Column, Passage, Section, Series, Table
from evalsuite.reporting.table_rows import lines_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evalsuite.reporting.section import Block, Cell
    from evalsuite.reporting.table_rows import LabelledCases
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
        _by_scenario("Overall score by scenario", OVERALL, lines),
        _capabilities(lines),
        _radar(lines),
        _rules(lines),
        *(_by_scenario(f"{named(rule)} by scenario", rule, lines) for rule in RULES),
        anova(lines),
        turns(lines),
        turns_chart(lines),
        *(block for number, line in enumerate(lines, 1) for block in correlations(line, number)),
        failures(lines),
        failures_chart(lines),
        *(table for line in lines for table in episode_tables(line.label, line.tally, line.view.read)),
    ]
    return Section(TITLE, blocks)


def _preface(views: Sequence[RunView], lines: Sequence[LabelledCases]) -> Passage:
    said = [PREFACE]
    for view in views:
        modes = ", ".join(view.tally.groups("mode"))
        judge = f"judged by {view.judge}" if view.judge else "no judge, so that only the rule parts stand"
        said.append(f"{view.label}: {view.source or 'source not recorded'}; mode {modes or 'none'}; {judge}.")
    said += [
        f"{line.label}: {_who_ran(line.tally)}{_errors(line.tally)}.{_untold(line.tally)}" for line in lines
    ]
    return Passage("", "\n\n".join(said))


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
    return f"; {lost} of {len(tally)} cases are errors and count nowhere" if lost else ""


def _untold(tally: Tally) -> str:
    """A word of doubt where the native protocol saw no call at all: a server may not show the model its tools."""
    asked = [row.facts for row in episodes(tally.where(mode="functions"))]
    if not asked or any(facts["faults"].get("no_call") != facts["turns"] for facts in asked):
        return ""
    return (
        " In mode functions no message called anything: either the model cannot, or its server never shows it "
        "the tools (the chat template of many small models leaves them out). Mode react needs no such server."
    )


def _by_scenario(title: str, metric: str, lines: Sequence[LabelledCases]) -> Table:
    """Table 2 of the paper, for any metric."""
    present = [name for name in SCENARIOS if any(line.tally.groups("scenario").get(name) for line in lines)]
    columns = [Column("Run"), *(Column(name, "percent") for name in (*present, "all"))]
    rows: list[list[Cell]] = [
        [
            line.label,
            *(line.tally.where(scenario=name).share(metric) for name in present),
            line.tally.share(metric),
        ]
        for line in lines
    ]
    return Table(title, columns, rows)


def _capabilities(lines: Sequence[LabelledCases]) -> Table:
    columns = [Column("Run"), *(Column(named(name), "percent") for name in (*CAPABILITIES, OVERALL))]
    rows: list[list[Cell]] = [
        [line.label, *(line.tally.share(name) for name in (*CAPABILITIES, OVERALL))] for line in lines
    ]
    return Table("Five capabilities", columns, rows)


def _radar(lines: Sequence[LabelledCases]) -> Chart:
    """Figure 5 of the paper; without a judge there is only one spoke to draw, and so no figure."""
    judged = [line for line in lines if line.tally.values(OVERALL)]
    series = [Series(line.label, [line.tally.mean(name) for name in CAPABILITIES]) for line in judged]
    labels = [named(name) for name in CAPABILITIES]
    return Chart(
        "radar", "tool_eyes_capabilities", "Five capabilities", labels, series, "percent", (0.0, 1.0)
    )


def _rules(lines: Sequence[LabelledCases]) -> Table:
    columns = [
        Column("Run"),
        Column("Episodes", "count"),
        *(Column(named(rule), "percent") for rule in RULES),
        Column("Turns an episode", "number", 2),
    ]
    rows: list[list[Cell]] = []
    for line in lines:
        taken = [row.facts["turns"] for row in episodes(line.tally)]
        mean = sum(taken) / len(taken) if taken else None
        rows.append([line.label, len(taken), *(line.tally.share(rule) for rule in RULES), mean])
    note = (
        "Format alignment: turns of the demanded form. Reality: calls that name a documented tool, only its "
        "parameters and all required ones. Finished: episodes that called finish within the limit of turns."
    )
    return Table("What the rules say", columns, rows, note)
