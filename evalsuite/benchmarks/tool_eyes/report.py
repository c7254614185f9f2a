"""ToolEyes' section of the report, with the tables and figures of the paper (arXiv 2401.00741).

The section shows capabilities, scores by rule, failures, two episodes, and overall scores by scenario. All other tables
and charts of the section are folded, that is, shown on a click.
"""

import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from evalsuite import stats
from evalsuite.benchmarks.tool_eyes.dataset import CAPABILITIES, OVERALL, RELEASED_MODES, RULES, SCENARIOS
from evalsuite.core.errors import shorten_to_beginning, write_count
from evalsuite.core.types import Transcript
from evalsuite.output.reports.section import (
    Block,
    Cell,
    Chart,
    Column,
    Passage,
    Section,
    Series,
    Table,
    parse_columns,
    split_by_mode,
)
from evalsuite.results.tally import Row, RunView, Tally

_TITLE = "ToolEyes: using tools, from the form of a call to the answer"
_PREFACE = (
    "The overall score is the mean of five capabilities, all in percent: format alignment by rule, the others "
    "with a judge. Brackets hold 95% intervals; a dash means: not measured."
)
_PARTS = (
    *("reality", "match", "tool_selection", "validity", "integrity", "behaviour_planning"),
    *("finished", "quality", "answer_organisation"),
)
_PARTS_NOTE = (
    "Tool selection is reality times match (how well the tool fits the thought), call by call; behaviour planning is "
    "validity times integrity; answer organisation is finished times quality, which is judged in finished episodes "
    "only."
)

# The kinds of faults of turns and calls, in the order in which they are checked.
FAULTS = {
    "keywords": "a keyword is missing or out of order",
    "no_call": "no call where one was expected",
    "empty_action": "no tool named",
    "unparseable": "input that cannot be parsed",
    "redundant": "redundant text after the input",
    "unknown_tool": "a tool that does not exist",
    "unknown_parameter": "a parameter that does not exist",
    "missing_parameter": "a required parameter missing",
    "wrong_type": "a value of the wrong type",
    "escaped_name": "escaped characters in a name",
    "after_finish": "a call after finish in one message",
    "tool_failed": "a right call that failed",
}


def make_report(views: Sequence[RunView]) -> Section:
    """Make the section for one run, or for several runs side by side."""
    lines = split_by_mode(views, name_run=False)
    failures, failures_chart = _tabulate_failures(lines)
    measured = [
        name for name in dict.fromkeys((*CAPABILITIES, *RULES)) if any(line.tally.values(name) for line in lines)
    ]
    labels = list(map(_format_heading, CAPABILITIES))
    series = [
        Series(line.label, [line.tally.mean(metric) for metric in CAPABILITIES])
        for line in lines
        if line.tally.values(OVERALL)
    ]
    shown: list[Block] = [
        _make_preface(views, lines),
        _tabulate_by_scenario("Overall score by scenario", [OVERALL], lines),
        _tabulate_metrics("Five capabilities", (OVERALL, *CAPABILITIES), lines),
        # Figure 5 of the paper; runs without a judge are left out.
        Chart("radar", "tool_eyes_capabilities", "Five capabilities", labels, series, "percent", (0.0, 1.0)),
        _tabulate_rule_scores(lines),
        failures,
        *(table for line in lines for table in _make_episode_tables(line)),
    ]
    folded: list[Table | Chart] = [
        _tabulate_query_counts(lines),
        _tabulate_metrics("Parts of the capabilities", _PARTS, lines, _PARTS_NOTE),
        _tabulate_by_scenario("All scores by scenario", measured, lines),
        _tabulate_anova(lines),
        *_tabulate_turns(lines),
        *_correlate_capabilities(lines),
        failures_chart,
    ]
    return Section(_TITLE, [*shown, *(replace(block, folded=True) for block in folded)])


def _make_preface(views: Sequence[RunView], lines: Sequence[RunView]) -> Passage:
    paragraphs = [_PREFACE]
    for view in views:
        modes = ", ".join(view.tally.groups("mode"))
        judge = f"judged by {view.judge}" if view.judge else "no judge, so only the rule parts are measured"
        paragraphs.append(f"{view.label}: {view.source or 'source not recorded'}; mode {modes or 'none'}; {judge}.")
    return Passage("", "\n\n".join([*paragraphs, *map(_describe_cases, lines)]))


def _describe_cases(line: RunView) -> str:
    """Describe the tools, the executors and the errors of cases, and what a reader must know about their modes."""
    tally, modes, released = line.tally, set(line.tally.groups("mode")), set(RELEASED_MODES)
    episodes = _list_complete_episodes(tally)
    executors: Counter[str] = Counter()
    for row in episodes:
        executors.update(row.facts["executors"])
    simulators = sorted({row.facts["simulator"] for row in episodes if "simulator" in row.facts})
    ran = ", ".join(f"{count} {kind}" for kind, count in sorted(executors.items()) if kind != "episode")
    played = f", played by {' and '.join(simulators)}" if simulators else ""
    offered = write_count(sum(_count_tools(tally, name) for name in tally.groups("scenario")), "tool")
    lost = tally.count("error")
    errors = f"; errors in {lost} of {write_count(len(tally), 'case')}, left out" if lost else ""
    text = f"{line.label}: {offered} offered; calls that were run: {ran or 'none'}{played}{errors}."
    native = [row.facts for row in _list_complete_episodes(tally.where(mode="functions"))]
    if native and all(facts["faults"].get("no_call") == facts["turns"] for facts in native):
        text += (
            " In mode functions no message called anything: either the model cannot, or its server never shows it "
            "the tools (the chat template of many small models leaves them out). Mode paper needs no such server."
        )
    if modes & released and modes - released:
        text += " Some cases are scored as the released code scores them, the others by the paper's formulas."
    elif modes & released:
        text += " Scored as the authors' released code scores, which is not as the paper says (docs/tool_eyes.md)."
    return text


def _format_heading(metric: str) -> str:
    return metric.replace("_", " ").capitalize()


def _list_complete_episodes(tally: Tally) -> list[Row]:
    return [row for row in tally if row.outcome != "error" and "turns" in row.facts]


def _list_present_scenarios(lines: Sequence[RunView]) -> list[str]:
    return [name for name in SCENARIOS if any(line.tally.groups("scenario").get(name) for line in lines)]


def _tabulate_by_scenario(title: str, metrics: Sequence[str], lines: Sequence[RunView]) -> Table:
    """Tabulate metrics by scenario (Table 2); the total comes first, because pages may cut off columns."""
    present = _list_present_scenarios(lines)
    columns = parse_columns("Score | Run", ["all", *present])
    rows: list[list[Cell]] = [
        [_format_heading(metric), line.label, *(cases.share(metric) for cases in (line.tally, *by_scenario))]
        for metric in metrics
        for line in lines
        for by_scenario in [[line.tally.where(scenario=name) for name in present]]
    ]
    first = int(metrics == [OVERALL])  # The title names the overall score.
    return Table(title, columns[first:], [row[first:] for row in rows])


def _tabulate_metrics(title: str, metrics: Sequence[str], lines: Sequence[RunView], note: str = "") -> Table:
    """Tabulate metrics over all cases, such as the five capabilities (Figure 5) or tool selection (Table 4)."""
    columns = parse_columns("Run", map(_format_heading, metrics))
    rows: list[list[Cell]] = [[line.label, *(line.tally.share(name) for name in metrics)] for line in lines]
    return Table(title, columns, rows, note)


def _tabulate_query_counts(lines: Sequence[RunView]) -> Table:
    """Tabulate the numbers of subcategories, tools and queries, as in the paper's Table 1."""
    present = _list_present_scenarios(lines)
    everything = [row for line in lines for row in line.tally]
    counts: dict[str, list[int]] = {"Categories": [], "Subcategories": [], "Tools": [], "Queries": []}
    for name in present:
        rows = [row for row in everything if row.tags["scenario"] == name]
        counts["Categories"].append(len({row.tags.get("category") for row in rows}))
        counts["Subcategories"].append(len({row.tags.get("subcategory") for row in rows}))
        counts["Tools"].append(max(_count_tools(line.tally, name) for line in lines))
        counts["Queries"].append(len({row.question[0] for row in rows}))
    columns = parse_columns("", [*present, "all"], "count")
    note = "Tools are those of the subcategories that have an episode; ask_to_user and finish do not count."
    cells: list[list[Cell]] = [[title, *values, sum(values)] for title, values in counts.items()]
    return Table("What was asked", columns, cells, note)


def _count_tools(tally: Tally, scenario: str) -> int:
    """Count the tools of each subcategory with at least one episode in the scenario."""
    by_subject = {
        (row.tags.get("category"), row.tags.get("subcategory")): int(row.facts.get("tools", 0))
        for row in _list_complete_episodes(tally.where(scenario=scenario))
    }
    return sum(by_subject.values())


def _tabulate_rule_scores(lines: Sequence[RunView]) -> Table:
    columns = parse_columns("Run | Episodes: count", map(_format_heading, RULES))
    columns += parse_columns("Failed completely: percent | Turns per episode: number 2")
    rows: list[list[Cell]] = []
    for line in lines:
        episodes = _list_complete_episodes(line.tally)
        taken = [row.facts["turns"] for row in episodes]
        mean = sum(taken) / len(taken) if taken else None
        failed = sum(row.scores.get("format_alignment") == 0 for row in episodes) / len(taken) if taken else None
        rows.append([line.label, len(taken), *(line.tally.share(rule) for rule in RULES), failed, mean])
    note = (
        "Format alignment: turns of the demanded form. Reality: calls that name a documented tool, only its "
        "parameters and all required ones. Finished: episodes that called finish within the limit of turns. Failed "
        "completely: episodes without a turn of the demanded form."
    )
    return Table("What the rules say", columns, rows, note)


def _tabulate_turns(lines: Sequence[RunView]) -> tuple[Table, Chart]:
    """Show the distribution of turns per episode, as a table and as the paper's Figure 4."""
    longest = max((row.facts["turns"] for line in lines for row in _list_complete_episodes(line.tally)), default=0)
    numbers = range(1, longest + 1)
    rows: list[list[Cell]] = []
    series = []
    for line in lines:
        episodes = _list_complete_episodes(line.tally)
        taken = Counter(row.facts["turns"] for row in episodes)
        unfinished = sum(row.facts["ended"] != "finish" for row in episodes)
        rows.append([line.label, *(taken[number] for number in numbers), unfinished])
        series.append(Series(line.label, [taken[number] / len(episodes) if episodes else None for number in numbers]))
    labels = [str(number) for number in numbers]
    columns = parse_columns("Run", [*labels, "Unfinished"], "count")
    title = "Turns per episode"
    chart = Chart("bars", "tool_eyes_turns", title, labels, series, "percent", (0.0, 1.0), "turns", "episodes")
    return Table("Episodes by their number of turns", columns, rows), chart


def _tabulate_failures(lines: Sequence[RunView]) -> tuple[Table, Chart]:
    """Show how often each kind of failure occurred, as a table and as the paper's Figure 7."""
    columns = [Column("What went wrong")]
    counts: list[dict[str, tuple[int, float | None]]] = []
    for line in lines:
        columns += [Column(line.label, "count"), Column("% of turns", "percent")]
        episodes = _list_complete_episodes(line.tally)
        turns = sum(row.facts["turns"] for row in episodes)
        found: Counter[str] = Counter()
        for row in episodes:
            found.update(row.facts["faults"])
        counts.append({fault: (found[fault], found[fault] / turns if turns else None) for fault in FAULTS})
    present = [fault for fault in FAULTS if any(run[fault][0] for run in counts)]
    rows: list[list[Cell]] = [[FAULTS[fault], *(cell for run in counts for cell in run[fault])] for fault in present]
    note = "Counts of turns or calls; a call may be counted more than once."
    labels = [fault.replace("_", " ") for fault in present]
    series = [Series(line.label, [run[fault][1] for fault in present]) for line, run in zip(lines, counts, strict=True)]
    title = "What went wrong"
    chart = Chart("bars", "tool_eyes_failures", title, labels, series, "percent", y_title="of turns")
    return Table(title, columns, rows, note), chart


def average_by_sample(tally: Tally, metric: str) -> dict[str, float]:
    """Average a metric over the epochs of each sample."""
    scores: dict[str, list[float]] = {}
    for row in tally.scored(metric):
        scores.setdefault(row.sample, []).append(row.scores[metric])
    return {sample: sum(values) / len(values) for sample, values in scores.items()}


def _tabulate_anova(lines: Sequence[RunView]) -> Table:
    """Test whether scenarios differ, as in the paper's Table 3."""
    rows: list[list[Cell]] = []
    for line in lines:
        for metric in (OVERALL, *CAPABILITIES):
            groups = [list(average_by_sample(line.tally.where(scenario=name), metric).values()) for name in SCENARIOS]
            present = [group for group in groups if group]
            if len(present) > 1:
                test = stats.welch_anova(*present)
                rows.append([line.label, _format_heading(metric), _drop_nan(test.statistic), _drop_nan(test.pvalue)])
    note = (
        "Welch's analysis of variance over the scenarios; a small p means that the model is not equally good "
        "in all of them. A dash: a scenario has fewer than two samples, or all its scores are equal."
    )
    columns = parse_columns("Run | Score | F: number 2 | p: number 4")
    return Table("Do scenarios differ?", columns, rows, note)


def _correlate_capabilities(lines: Sequence[RunView]) -> Iterator[Table | Chart]:
    """Correlate the capabilities over samples and, with at least three judged runs, over models (Figure 6)."""
    for line in lines:
        values = {name: average_by_sample(line.tally, name) for name in CAPABILITIES if line.tally.values(name)}
        if len(values) > 1:
            note = "Pearson's r over the samples. A dash: fewer than three samples, or all scores are equal."
            yield _correlate_pairs(values, "", f"Correlation of capabilities: {line.label}", note)[0]
    judged = [line for line in lines if line.tally.values(OVERALL)]
    if len(judged) >= 3:
        means = {
            name: {line.label: mean for line in judged if (mean := line.tally.mean(name)) is not None}
            for name in CAPABILITIES
        }
        title = "Correlation of capabilities over runs"
        note = f"Pearson's r over the means of {len(judged)} runs. A dash: all means are equal."
        yield from _correlate_pairs(means, "tool_eyes_correlation_over_runs", title, note)


def _correlate_pairs(
    values: Mapping[str, Mapping[str, float]], chart_name: str, title: str, note: str
) -> tuple[Table, Chart]:
    """Correlate each pair of metrics over samples or over runs; return a table and a chart."""
    labels = [_format_heading(name) for name in values]
    rows = [[_correlate_shared_units(one, other) for other in values.values()] for one in values.values()]
    columns = parse_columns("", labels, "number 2")
    table = Table(title, columns, [[label, *row] for label, row in zip(labels, rows, strict=True)], note)
    series = list(map(Series, labels, rows))
    return table, Chart("heatmap", chart_name, title, labels, series, limits=(-1.0, 1.0))


def _correlate_shared_units(first: Mapping[str, float], second: Mapping[str, float]) -> float | None:
    """Return Pearson's r over the samples or runs for which both metrics have a value; None if undefined."""
    shared = [unit for unit in first if unit in second]
    return _drop_nan(stats.pearson([first[unit] for unit in shared], [second[unit] for unit in shared]).statistic)


def _drop_nan(value: float) -> float | None:
    """Return the value, or None if it is NaN."""
    return None if math.isnan(value) else value


def _make_episode_tables(line: RunView) -> Iterator[Table]:
    """Show the worst episode; if there are several episodes, also show a typical one.

    The worst episode has the lowest overall score (without a judge, the lowest format alignment). The typical episode
    has the median score. Episodes with equal scores are sorted in the order of the cases.
    """
    metric = OVERALL if line.tally.values(OVERALL) else "format_alignment"
    ranked = sorted(line.tally.scored(metric), key=lambda row: row.scores[metric])
    if not ranked:
        return
    chosen = {"The worst episode": ranked[0]}
    if len(ranked) > 1:
        chosen["A typical episode"] = ranked[len(ranked) // 2]
    columns = parse_columns("Turn | What the model said | What came of it")
    for title, row in chosen.items():
        record = line.read(row.case)
        rows = [("request", _shorten_to_one_line(record.input), "")]
        if record.transcript:
            rows += _make_turn_rows(record.transcript)
        yield Table(f"{title}, {line.label}: {row.sample}", columns, rows)


def _make_turn_rows(transcript: Transcript) -> Iterator[tuple[str, str, str]]:
    """Yield each turn's number, the model's message, and the calls' results or the reason for refusing the turn."""
    turns = [event for event in transcript.events if event["kind"] == "turn"]
    texts = [message.content for message in transcript.messages if message.role == "assistant"][-len(turns) :]
    for turn, text in zip(turns, texts, strict=True):
        if turn["fault"] is not None:
            said, came = text or json.dumps(turn["native_calls"], ensure_ascii=False), f"Refused: {turn['words']}"
        else:
            calls = [event for event in transcript.events if event["kind"] == "call" and event["turn"] == turn["turn"]]
            written = "; ".join(f"{call['tool']} {json.dumps(call['arguments'], ensure_ascii=False)}" for call in calls)
            said, came = f"{turn['thought']} \u2192 {written}", "; ".join(call["observation"] for call in calls)
        yield str(turn["turn"]), _shorten_to_one_line(said), _shorten_to_one_line(came)


def _shorten_to_one_line(text: str) -> str:
    return shorten_to_beginning(" ".join(text.split()), 240)
