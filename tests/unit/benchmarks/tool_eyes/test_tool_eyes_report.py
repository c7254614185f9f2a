"""The report's section: the paper's tables and figures from runs whose numbers are worked by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from scipy.stats import f_oneway, pearsonr

from evalsuite.benchmarks.tool_eyes import TOOL_EYES
from evalsuite.benchmarks.tool_eyes.dataset import CAPABILITIES, load_dataset
from evalsuite.benchmarks.tool_eyes.report import FAULTS, average_by_sample
from evalsuite.benchmarks.tool_eyes.scoring import RuleScores
from evalsuite.core.protocols import Setup
from evalsuite.core.types import Record, Transcript
from evalsuite.output.reports.markdown import render_sections
from evalsuite.output.reports.section import Chart, Passage, Section, Table
from evalsuite.results.tally import Estimate, Row, RunView, Tally

FACTS: dict[str, Any] = {"turns": 2, "ended": "finish", "faults": {}, "executors": {"python": 1, "episode": 1}}


def row(sample: str, scenario: str, scores: dict[str, float], **more: Any) -> Row:
    tags = {"scenario": scenario, "mode": more.pop("mode", "paper")}
    epoch = more.pop("epoch", 1)
    facts = {**FACTS, **more.pop("facts", {})}
    outcome = more.pop("outcome", "passed")
    return Row(f"case[{sample}-{tags['mode']}-{epoch}]", sample, epoch, outcome, tags, scores, facts)


def view(rows: list[Row], **more: Any) -> RunView:
    named = {"label": "model", "source": "shipped queries", **more}
    return RunView(tally=Tally.of(rows), **named)


def report(*views: RunView) -> Section:
    assert TOOL_EYES.report
    return TOOL_EYES.report(views)


def table(section: Section, title: str) -> Table:
    return next(block for block in section.blocks if isinstance(block, Table) and block.title.startswith(title))


def chart(section: Section, name: str) -> Chart:
    return next(block for block in section.blocks if isinstance(block, Chart) and block.name == name)


def value(cell: Any) -> Any:
    return cell.value if isinstance(cell, Estimate) else cell


def rule(format_alignment: float, reality: float = 1.0, finished: float = 1.0) -> dict[str, float]:
    return {"format_alignment": format_alignment, "reality": reality, "finished": finished}


def full(fa: float, ic: float, bp: float, ts: float, ao: float) -> dict[str, float]:
    capabilities = dict(zip(CAPABILITIES, (fa, ic, bp, ts, ao), strict=True))
    return {**rule(fa), **capabilities, "overall": (fa + ic + bp + ts + ao) / 5}


JUDGED = [
    row("a", "TG", full(1.0, 0.8, 0.6, 0.4, 0.7)),
    row("b", "TG", full(0.5, 0.6, 0.5, 0.2, 0.0), facts={"turns": 9, "ended": "turn limit"}),
    row("c", "FT", full(0.9, 0.9, 0.4, 0.5, 0.9)),
    row("d", "FT", full(0.2, 0.1, 0.1, 0.1, 0.3)),
]


def read(case: str) -> Record:
    return Record(case=case, benchmark="tool_eyes", sample="x", epoch=1, model="m", outcome="passed")


def test_scenarios_are_columns_and_runs_are_rows() -> None:
    overall = table(report(view(JUDGED, judge="judge", read=read)), "Overall score by scenario")
    assert [column.title for column in overall.columns] == ["Run", "all", "TG", "FT"]
    ((label, everything, tg, ft),) = overall.rows
    assert label == "model"
    assert value(tg) == pytest.approx((0.7 + 0.36) / 2)
    assert value(ft) == pytest.approx((0.72 + 0.16) / 2)
    assert value(everything) == pytest.approx((0.7 + 0.36 + 0.72 + 0.16) / 4)


def test_the_five_capabilities_stand_in_a_table_and_on_a_radar() -> None:
    section = report(view(JUDGED, judge="judge", read=read))
    (cells,) = table(section, "Five capabilities").rows
    wanted = [1.94 / 4, 2.6 / 4, 2.4 / 4, 1.6 / 4, 1.2 / 4, 1.9 / 4]
    assert [value(cell) for cell in cells[1:]] == pytest.approx(wanted)
    radar = chart(section, "tool_eyes_capabilities")
    assert radar.kind == "radar"
    assert radar.series[0].values == pytest.approx(wanted[1:])
    assert len(radar.labels) == 5


def test_without_a_judge_the_rest_is_not_measured() -> None:
    section = report(view([row("a", "TG", rule(0.5)), row("b", "FT", rule(1.0))], read=read))
    (cells,) = table(section, "Five capabilities").rows
    assert [value(cell) for cell in cells[1:]] == [None, 0.75, None, None, None, None]
    assert [value(cell) for cell in table(section, "Overall score").rows[0][1:]] == [None, None, None]
    assert chart(section, "tool_eyes_capabilities").series == []
    assert not [block for block in section.blocks if isinstance(block, Chart) and block.kind == "heatmap"]
    assert "no judge" in str(section.blocks[0])


def test_welch_s_anova_is_that_of_scipy() -> None:
    rows = table(report(view(JUDGED, judge="judge", read=read)), "Do scenarios differ").rows
    label, score, statistic, pvalue = rows[0]
    expected = f_oneway([0.7, 0.36], [0.72, 0.16], equal_var=False)
    assert (label, score) == ("model", "Overall")
    assert (statistic, pvalue) == pytest.approx((expected.statistic, expected.pvalue))
    assert len(rows) == 6


def test_anova_of_scenarios_that_do_not_vary_is_not_measured() -> None:
    rows = table(report(view([row("a", "TG", rule(1.0)), row("b", "FT", rule(1.0))], read=read)), "Do scen").rows
    assert [cells[2:] for cells in rows] == [[None, None]]


def test_correlations_are_those_of_scipy() -> None:
    rows = table(report(view(JUDGED, judge="judge", read=read)), "Correlation of capabilities: model").rows
    assert rows[0][2] == pytest.approx(pearsonr([1.0, 0.5, 0.9, 0.2], [0.8, 0.6, 0.9, 0.1]).statistic)
    assert [rows[at][at + 1] for at in range(5)] == pytest.approx([1.0] * 5)


def test_repetitions_of_a_sample_count_once() -> None:
    tally = Tally.of([row("a", "TG", rule(1.0)), row("a", "TG", rule(0.0), epoch=2), row("b", "TG", rule(0.3))])
    assert average_by_sample(tally, "format_alignment") == {"a": 0.5, "b": 0.3}


def by_scenario(section: Section, score: str) -> list[Any]:
    rows = table(section, "All scores by scenario").rows
    return next([*cells[2:]] for cells in rows if cells[0] == score)


def test_each_score_has_a_row_by_scenario() -> None:
    section = report(view(JUDGED, judge="judge", read=read))
    assert [value(cell) for cell in by_scenario(section, "Intent comprehension")] == pytest.approx([0.6, 0.7, 0.5])
    assert [value(cell) for cell in by_scenario(section, "Tool selection")] == pytest.approx([0.3, 0.3, 0.3])


def test_a_reader_sees_six_tables_and_one_picture() -> None:
    section = report(view(JUDGED, judge="judge", read=read))
    kinds = [(type(block).__name__, block.folded) for block in section.blocks if not isinstance(block, Passage)]
    counts = {pair: kinds.count(pair) for pair in kinds}
    assert counts == {("Table", False): 6, ("Chart", False): 1, ("Table", True): 6, ("Chart", True): 2}


def test_sub_scores_stand_in_a_table_of_their_own() -> None:
    parts = {"match": 0.5, "validity": 0.9, "integrity": 0.6, "quality": 0.7}
    rows = [
        row("a", "TG", {**full(1.0, 0.8, 0.54, 0.5, 0.7), **parts}),
        # Not finished, so that there is no quality to judge.
        row("b", "FT", {**full(1.0, 0.8, 0.54, 0.3, 0.0), "match": 0.3, "validity": 0.9, "integrity": 0.6}),
    ]
    (cells,) = table(report(view(rows, judge="judge", read=read)), "Parts of the capabilities").rows
    wanted = [1.0, 0.4, 0.4, 0.9, 0.6, 0.54, 1.0, 0.7, 0.35]
    assert [value(cell) for cell in cells[1:]] == pytest.approx(wanted)


def test_episodes_without_a_valid_turn_failed_completely() -> None:
    rows = [row("a", "TG", rule(0.0)), row("b", "TG", rule(0.5)), row("c", "FT", rule(0.0)), row("d", "FT", rule(1.0))]
    assert table(report(view(rows, read=read)), "What the rules say").rows[0][-2] == 0.5


def test_what_was_asked_is_counted_as_in_the_paper_s_first_table() -> None:
    def asked(sample: str, scenario: str, category: str, subcategory: str, tools: int) -> Row:
        base = row(sample, scenario, rule(1.0), facts={"tools": tools})
        return replace(base, tags={**base.tags, "category": category, "subcategory": subcategory})

    rows = [asked("a", "TG", "A", "x", 3), asked("b", "TG", "A", "x", 3), asked("c", "TG", "A", "y", 2)]
    rows += [asked("d", "FT", "B", "x", 4)]
    section = report(view(rows, read=read))
    assert [list(cells) for cells in table(section, "What was asked").rows] == [
        ["Categories", 1, 1, 2],
        ["Subcategories", 2, 1, 3],
        ["Tools", 5, 4, 9],
        ["Queries", 3, 1, 4],
    ]


def test_capabilities_are_correlated_over_three_runs_or_more() -> None:
    means = [(0.9, 0.1), (0.5, 0.4), (0.2, 0.9)]
    views = [
        view([row("a", "TG", full(fa, ic, 0.5, 0.5, 0.5))], label=f"m{number}", judge="judge", read=read)
        for number, (fa, ic) in enumerate(means)
    ]
    heat = chart(report(*views), "tool_eyes_correlation_over_runs")
    assert heat.series[0].values[1] == pytest.approx(pearsonr(*zip(*means, strict=True)).statistic)
    assert heat.series[0].values[2] is None
    with pytest.raises(StopIteration):
        chart(report(*views[:2]), "tool_eyes_correlation_over_runs")


def test_the_released_variant_is_named_where_its_scores_stand() -> None:
    alone = report(view([row("a", "TG", rule(1.0), mode="released")], read=read)).blocks[0]
    assert "which is not as the paper says" in str(alone)
    assert "released code" not in str(report(view([row("a", "TG", rule(1.0))], read=read)).blocks[0])


def test_turns_are_counted_episode_by_episode() -> None:
    section = report(view(JUDGED, judge="judge", read=read))
    (cells,) = table(section, "Episodes by their number of turns").rows
    assert cells == ["model", 0, 3, 0, 0, 0, 0, 0, 0, 1, 1]
    assert chart(section, "tool_eyes_turns").series[0].values == [0, 0.75, 0, 0, 0, 0, 0, 0, 0.25]
    assert value(table(section, "What the rules say").rows[0][-1]) == (2 + 9 + 2 + 2) / 4


def test_failures_are_counted_and_related_to_turns() -> None:
    rows = [
        row("a", "TG", rule(1.0), facts={"turns": 4, "faults": {"redundant": 2, "unknown_tool": 1}}),
        row("b", "TG", rule(1.0), facts={"turns": 6, "faults": {"redundant": 1, "escaped_name": 1}}),
    ]
    section = report(view(rows, read=read))
    assert table(section, "What went wrong").rows == [
        ["redundant text after the input", 3, 0.3],
        ["a tool that does not exist", 1, 0.1],
        ["escaped characters in a name", 1, 0.1],
    ]
    assert chart(section, "tool_eyes_failures").labels == ["redundant", "unknown tool", "escaped name"]


def test_errors_count_nowhere_and_are_named() -> None:
    rows = [row("a", "TG", rule(1.0)), Row("case[b]", "b", 1, "error", {"scenario": "TG", "mode": "paper"}, {})]
    section = report(view(rows, read=read))
    assert table(section, "What the rules say").rows[0][1] == 1
    assert "errors in 1 of 2 cases" in str(section.blocks[0])


def test_the_executors_and_the_player_are_named() -> None:
    facts = {"executors": {"simulated": 3, "simulated user": 1, "episode": 1}, "simulator": "gpt-4"}
    preface = report(view([row("a", "TG", rule(1.0), facts=facts)], read=read)).blocks[0]
    assert isinstance(preface, Passage)
    assert "0 tools offered; calls that were run: 3 simulated, 1 simulated user, played by gpt-4" in preface.text


def test_modes_and_runs_have_rows_of_their_own() -> None:
    two_modes = [row("a", "TG", rule(1.0)), row("a", "TG", rule(0.0), mode="functions")]
    alone = report(view(two_modes, read=read))
    assert [cells[0] for cells in table(alone, "Five capabilities").rows] == ["functions", "paper"]
    beside = report(view(two_modes, read=read), view([row("a", "TG", rule(1.0))], label="other", read=read))
    assert [cells[0] for cells in table(beside, "Five capabilities").rows] == [
        "model, functions",
        "model, paper",
        "other",
    ]
    names = [block.name for block in beside.blocks if isinstance(block, Chart)]
    assert len(names) == len(set(names))


def test_the_worst_and_a_typical_episode_can_be_read(play: Any) -> None:
    samples = load_dataset(Setup("m", modes=("paper",))).samples
    dates = next(sample for sample in samples if sample.metadata["subject"] == "Calculator/Dates")
    finish = 'Thought: done | `x`\nAction: finish\nAction Input: {"answer": "<b>Thursday</b>"}'
    call = 'Thought: I look.\nAction: weekday\nAction Input: {"day": "2024-05-30"}'
    episodes = {
        "good": play(dates, [call, finish]),
        "bad": play(dates, ["It is Thursday. " * 50] * 9),
        "middling": play(dates, ["hm", call, finish]),
    }
    rows = [row(name, "AM", RuleScores()(dates, episode), facts=episode.facts) for name, episode in episodes.items()]

    def fetch(case: str) -> Record:
        name = case.removeprefix("case[").split("-")[0]
        return Record(
            case=case,
            benchmark="tool_eyes",
            sample=name,
            epoch=1,
            model="m",
            outcome="passed",
            input=str(dates.input),
            transcript=episodes[name],
        )

    section = report(view(rows, read=fetch))
    worst, typical = (table(section, title) for title in ("The worst episode", "A typical episode"))
    assert worst.title.endswith("bad")
    assert typical.title.endswith("middling")
    assert worst.rows[0][:2] == ("request", dates.input)
    assert [cells[0] for cells in worst.rows[1:]] == [str(turn) for turn in range(1, 10)]
    assert len(str(worst.rows[1][1])) <= 240
    assert str(worst.rows[1][2]).startswith("Refused: ")
    assert typical.rows[2] == ("2", 'I look. → weekday {"day": "2024-05-30"}', "Thursday")
    assert "<b>" not in render_sections([section], [])


def test_an_empty_run_and_a_run_of_errors_are_still_reported() -> None:
    error = Row("case[b]", "b", 1, "error", {"scenario": "TG", "mode": "paper"}, {})
    for rows in ([], [error]):
        assert render_sections([report(view(rows, read=read))], [])


def test_every_fault_that_an_episode_can_have_is_named_in_the_report(play: Any) -> None:
    samples = load_dataset(Setup("m", modes=("paper",))).samples
    dates = next(sample for sample in samples if sample.metadata["subject"] == "Calculator/Dates")

    def act(name: str, written: str) -> str:
        return f"Thought: t\nAction: {name}\nAction Input: {written}"

    turns = [
        "hm",
        act("", "{}"),
        act("weekday", "{"),
        act("weekday", "{} {}"),
        act("no\\_tool", "{}"),
        act("weekday", '{"days": 1}'),
        act("is_leap_year", '{"year": "x"}'),
        act("weekday", '{"day": "x"}'),
        act("finish", '{"answer": ""}'),
    ]
    found: Transcript = play(dates, turns)
    assert set(found.facts["faults"]) == set(FAULTS) - {"no_call", "after_finish"}


def test_an_interval_of_shares_stays_between_none_and_all() -> None:
    rows = [row("a", "TG", rule(0.9)), row("b", "TG", rule(1.0))]
    cells = by_scenario(report(view(rows, read=read)), "Format alignment")
    estimates = [cell for cell in cells if isinstance(cell, Estimate)]
    assert [(cell.value, cell.high) for cell in estimates] == [(0.95, 1.0), (0.95, 1.0)]
    assert all(cell.low is not None and 0.0 <= cell.low < 0.95 for cell in estimates)


DOUBT = "never shows it the tools"


def test_a_server_that_may_not_show_the_tools_is_spoken_of() -> None:
    rows = [row(name, "TG", rule(0.0), mode="functions", facts={"faults": {"no_call": 2}}) for name in "ab"]
    assert DOUBT in str(report(view(rows, read=read)).blocks[0])


@pytest.mark.parametrize(
    ("mode", "faults"), [("functions", {"no_call": 1}), ("functions", {"unparseable": 2}), ("paper", {"keywords": 2})]
)
def test_a_model_that_called_something_knows_its_tools(mode: str, faults: dict[str, int]) -> None:
    silent = row("a", "TG", rule(0.0), mode=mode, facts={"faults": {"no_call": 2}})
    other = row("b", "TG", rule(0.0), mode=mode, facts={"faults": faults})
    assert DOUBT not in str(report(view([silent, other], read=read)).blocks[0])
