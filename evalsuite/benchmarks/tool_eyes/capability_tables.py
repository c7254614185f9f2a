"""What was measured, as tables and radars: the paper's Tables 1, 2 and 4 and its Figure 5."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalsuite.benchmarks.tool_eyes.capabilities import CAPABILITIES, OVERALL, RULES
from evalsuite.benchmarks.tool_eyes.episode_rows import episodes, named
from evalsuite.benchmarks.tool_eyes.published_files import SCENARIOS
from evalsuite.output.reports.section import Chart, Column, Series, Table

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from evalsuite.output.reports.section import Cell
    from evalsuite.output.reports.table_rows import LabelledCases
    from evalsuite.results.tally import Tally

SELECTION = ("reality", "match", "tool_selection")
PRODUCTS = ("validity", "integrity", "behaviour_planning", "finished", "quality", "answer_organisation")


def scenarios_of(lines: Sequence[LabelledCases]) -> list[str]:
    """The scenarios that the runs have cases of, in the paper's order."""
    return [name for name in SCENARIOS if any(line.tally.groups("scenario").get(name) for line in lines)]


def asked(lines: Sequence[LabelledCases]) -> Table:
    """Table 1 of the paper for what these runs asked; tools without `ask_to_user` and `finish`."""
    present = scenarios_of(lines)
    rows: list[list[Cell]] = []
    everything = [row for line in lines for row in line.tally]
    for title, tag in (("Categories", "category"), ("Subcategories", "subcategory")):
        counts = [
            len({row.tags.get(tag) for row in everything if row.tags["scenario"] == name}) for name in present
        ]
        rows.append([title, *counts, sum(counts)])
    tools = [_tools(lines, name) for name in present]
    rows.append(["Tools", *tools, sum(tools)])
    queries = [
        len({row.question[0] for row in everything if row.tags["scenario"] == name}) for name in present
    ]
    rows.append(["Queries", *queries, sum(queries)])
    columns = [Column(""), *(Column(name, "count") for name in (*present, "all"))]
    note = "Tools are those of the subcategories that have an episode; ask_to_user and finish do not count."
    return Table("What was asked", columns, rows, note)


def _tools(lines: Sequence[LabelledCases], scenario: str) -> int:
    by_subject = {
        (row.tags.get("category"), row.tags.get("subcategory")): int(row.facts.get("tools", 0))
        for line in lines
        for row in episodes(line.tally.where(scenario=scenario))
    }
    return sum(by_subject.values())


def by_scenario(title: str, metric: str, lines: Sequence[LabelledCases]) -> Table:
    """Table 2 of the paper, for any metric."""
    present = scenarios_of(lines)
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


def metrics_table(
    title: str, metrics: Sequence[str], lines: Sequence[LabelledCases], note: str = ""
) -> Table:
    """Metrics over all cases, a column each."""
    columns = [Column("Run"), *(Column(named(name), "percent") for name in metrics)]
    rows: list[list[Cell]] = [[line.label, *(line.tally.share(name) for name in metrics)] for line in lines]
    return Table(title, columns, rows, note)


def five_capabilities(lines: Sequence[LabelledCases]) -> Table:
    """The numbers of Figure 5."""
    return metrics_table("Five capabilities", (*CAPABILITIES, OVERALL), lines)


def tool_selection(lines: Sequence[LabelledCases]) -> Table:
    """Table 4 of the paper: the two sides of tool selection."""
    note = (
        "Reality: calls that name a documented tool, only its parameters and all required ones. Match: how well the "
        "tool fits the thought before it, over all valid turns. Tool selection is their product, call by call."
    )
    return metrics_table("Tool selection: reality and match", SELECTION, lines, note)


def products(lines: Sequence[LabelledCases]) -> Table:
    """What behaviour planning and answer organisation are made of."""
    note = (
        "Behaviour planning is validity times integrity; answer organisation is finished times quality, which is "
        "judged in finished episodes only."
    )
    return metrics_table("Parts of behaviour planning and answer organisation", PRODUCTS, lines, note)


def radars(lines: Sequence[LabelledCases]) -> Iterator[Chart]:
    """Figure 5 of the paper over all scenarios; and for each scenario, as the released code draws it.

    Without a judge there is only one spoke to draw, and so no figure.
    """
    judged = [line for line in lines if line.tally.values(OVERALL)]
    everywhere = [(line.label, line.tally) for line in judged]
    yield _radar("tool_eyes_capabilities", "Five capabilities", everywhere)
    for name in scenarios_of(judged):
        tallies = [(line.label, line.tally.where(scenario=name)) for line in judged]
        title = f"Five capabilities in {name}: {SCENARIOS[name]}"
        yield _radar(f"tool_eyes_capabilities_{name}", title, tallies)


def _radar(name: str, title: str, tallies: Sequence[tuple[str, Tally]]) -> Chart:
    series = [Series(label, [tally.mean(metric) for metric in CAPABILITIES]) for label, tally in tallies]
    labels = [named(metric) for metric in CAPABILITIES]
    return Chart("radar", name, title, labels, series, "percent", (0.0, 1.0))


def rules(lines: Sequence[LabelledCases]) -> Table:
    """What needs no judge."""
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
