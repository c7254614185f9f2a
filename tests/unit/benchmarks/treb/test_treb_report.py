"""TReB's report: tables, pictures, kinds of models, the leaderboard and its submissions."""

from __future__ import annotations

import math
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalsuite.benchmarks.treb import TREB
from evalsuite.benchmarks.treb.report import (
    LEADERBOARD_SKILLS,
    LEADERBOARD_TITLE,
    average_column,
    average_columns,
    choose_rows,
    find_best_mode,
    make_report,
    make_submission_line,
    tabulate_leaderboard,
)
from evalsuite.core.errors import SettingsError
from evalsuite.core.types import Message, Record, Transcript
from evalsuite.output.reports.section import Chart, Passage, Table
from evalsuite.results.tally import Estimate, Row, RunView, Tally

ALL = {"rouge_l": 0.5, "bleu": 0.25, "judge": 0.75}


def row(subtask: str, skill: str, mode: str, record: int = 1, outcome: Any = "passed", **kept: Any) -> Row:
    source = f"{subtask}|{record}"
    tags = {"subtask": subtask, "skill": skill, "mode": mode, "cluster": source} | kept.pop("tags", {})
    sample = f"{source}|{mode}"
    return Row(f"case[{sample}]", sample, 1, outcome, tags, kept.pop("scores", ALL), **kept)


def view(*rows: Row, label: str = "gpt", judge: str | None = "judge-1") -> RunView:
    return RunView(label, Tally.of(rows), judge)


def tables(*views: RunView) -> dict[str, Table]:
    return {block.title: block for block in make_report(views).blocks if isinstance(block, Table)}


def cells(table: Table, line: int = 0) -> dict[str, Any]:
    return dict(zip([column.title for column in table.columns], table.rows[line], strict=True))


def test_several_runs_stand_by_the_kind_of_their_model() -> None:
    views = [
        view(row("Table Query", "TBO", "pot", scores={"judge": score}), label=label)
        for label, score in (("gpt", 0.2), ("llama", 0.6), ("TableGPT2-7B", 0.9))
    ]
    table = tables(*views)["By kind of model"]
    kinds = {cells(table, line)["Kind"]: cells(table, line) for line in range(2)}
    assert kinds["general"]["TBO PoT"] == pytest.approx(0.4)
    assert (kinds["general"]["Models"], kinds["table-reasoning-optimised"]["TBO PoT"]) == (2, 0.9)
    assert kinds["general"]["TU TCoT"] is None
    assert any(isinstance(block, Chart) and block.name == "treb_by_kind" for block in make_report(views).blocks)
    assert "By kind of model" not in tables(views[0])


def test_a_column_is_the_mean_of_its_subtasks_whatever_their_size() -> None:
    tally = Tally.of(
        [
            row("Table Query", "TBO", "pot", 1, scores={"bleu": 1.0}),
            row("Table Selection", "TBO", "pot", 1, scores={"bleu": 0.0}),
            row("Table Selection", "TBO", "pot", 2, scores={"bleu": 0.0}),
            row("Table Selection", "TBO", "pot", 3, scores={"bleu": 0.3}),
        ]
    )
    assert average_column(tally, "bleu", ("TBO", "PoT")) == pytest.approx((1.0 + 0.1) / 2)
    assert average_column(tally, "bleu", ("TBO", "TCoT")) is None


def test_tcot_is_markdown_and_html_together() -> None:
    tally = Tally.of(
        [
            row("Table Query", "TBO", "tcot_markdown", scores={"bleu": 1.0}),
            row("Table Query", "TBO", "tcot_html", scores={"bleu": 0.5}),
        ]
    )
    assert average_column(tally, "bleu", ("TBO", "TCoT")) == 0.75


def test_errors_are_not_scored() -> None:
    tally = Tally.of(
        [
            row("Table Query", "TBO", "pot", 1, scores={"bleu": 1.0}),
            row("Table Query", "TBO", "pot", 2, outcome="error", scores={"bleu": 0.0}),
        ]
    )
    assert average_column(tally, "bleu", ("TBO", "PoT")) == 1.0


cases = st.lists(
    st.tuples(
        st.sampled_from([("Table Query", "TBO"), ("Table Selection", "TBO"), ("Understanding", "NLU")]),
        st.sampled_from(["tcot_markdown", "tcot_html", "pot", "icot"]),
        st.floats(0, 1),
    ),
    min_size=1,
    max_size=25,
)


@given(cases)
def test_the_overall_is_the_plain_mean_of_the_measured_columns(found: list[Any]) -> None:
    rows = [
        row(name, skill, mode if skill != "NLU" else "tcot", number, scores={"bleu": score})
        for number, ((name, skill), mode, score) in enumerate(found)
    ]
    tally = Tally.of(rows)
    columns = {(each.tags["skill"], {"pot": "PoT", "icot": "ICoT"}.get(each.tags["mode"], "TCoT")) for each in rows}
    means = [average_column(tally, "bleu", column) for column in columns]
    estimate = average_columns(tally, "bleu")
    assert estimate is not None
    assert estimate.value == pytest.approx(math.fsum(mean or 0.0 for mean in means) / len(columns))
    assert estimate.low is None or estimate.low <= estimate.value + 1e-9 <= (estimate.high or 0) + 2e-9


def test_the_interval_of_one_subtask_in_one_mode_is_that_of_a_mean() -> None:
    scores = [0.1, 0.4, 0.4, 0.8]
    tally = Tally.of(row("Table Query", "TBO", "pot", n, scores={"bleu": s}) for n, s in enumerate(scores))
    mean = math.fsum(scores) / 4
    error = math.sqrt(math.fsum((score - mean) ** 2 for score in scores) / 3 / 4)
    estimate = average_columns(tally, "bleu")
    assert estimate is not None
    # 1.959964 is the 97.5% quantile of the standard normal distribution.
    assert estimate.low == pytest.approx(mean - 1.959964 * error, abs=1e-6)
    assert estimate.high == pytest.approx(mean + 1.959964 * error, abs=1e-6)


def test_the_modes_of_one_record_are_no_independent_cases() -> None:
    both = [
        row("Table Query", "TBO", mode, n, scores={"bleu": float(n % 2)})
        for n in range(6)
        for mode in ("tcot_markdown", "tcot_html")
    ]
    twice, once = average_columns(Tally.of(both), "bleu"), average_columns(Tally.of(both[::2]), "bleu")
    assert twice is not None
    assert once is not None
    assert twice.low == pytest.approx(once.low)


def test_no_interval_is_given_where_a_subtask_has_a_single_record() -> None:
    assert average_columns(Tally.of([row("Table Query", "TBO", "pot")]), "bleu") == Estimate(0.25, n=1)


@pytest.mark.parametrize("score", [0.0, 1.0])
def test_where_all_answers_are_alike_the_interval_still_has_a_width(score: float) -> None:
    rows = [
        row(name, skill, "pot", n, scores={"exact_match": score})
        for name, skill in (("Table Query", "TBO"), ("Table Retrieval", "TU"))
        for n in range(20)
    ]
    estimate = average_columns(Tally.of(rows), "exact_match")
    assert estimate is not None
    # 40 records of the same weight: the mean may be ln(40) / 40 away.
    assert estimate.value == score
    assert reach(estimate) == pytest.approx(math.log(40) / 40)
    odd = row("Table Query", "TBO", "pot", 0, scores={"exact_match": 1 - score})
    other = average_columns(Tally.of([odd, *rows[1:]]), "exact_match")
    assert other is not None
    # A different one moves the interval and does not narrow it.
    assert reach(other) > reach(estimate)


def reach(estimate: Estimate) -> float:
    assert estimate.low is not None
    assert estimate.high is not None
    return estimate.high - estimate.low


def test_a_true_overall_near_one_is_covered() -> None:
    random, covered = Random(1), 0
    for _ in range(60):
        rows = [
            row(name, "TBO", "pot", n, scores={"exact_match": float(random.random() < 0.99)})
            for name in ("Table Query", "Table Selection")
            for n in range(20)
        ]
        estimate = average_columns(Tally.of(rows), "exact_match")
        assert estimate is not None
        covered += (estimate.low or 0) <= 0.99 <= (estimate.high or 0)
    # Two in three of these runs have no wrong answer, and a normal interval without a width.
    assert covered >= 57


def test_the_table_of_a_metric_has_the_papers_columns() -> None:
    found = tables(view(row("Table Query", "TBO", "pot"), row("Understanding", "NLU", "tcot")))
    heads = [column.title for column in found["ROUGE-L"].columns]
    assert len(heads) == 18
    assert (heads[0], heads[1], heads[-2], heads[-1]) == ("Run", "NLU TCoT", "ADA ICoT", "Overall")
    shown = cells(found["ROUGE-L"])
    assert (shown["Run"], shown["TBO PoT"], shown["NLU TCoT"], shown["TU PoT"]) == ("gpt", 0.5, 0.5, None)
    assert shown["Overall"].value == 0.5
    assert "NLU TCoT" not in cells(found["Exact match of numbers"])


def test_without_a_judge_its_table_is_not_measured_and_says_so() -> None:
    table = tables(view(row("Table Query", "TBO", "pot", scores={"bleu": 0.5}), judge=None))["Judge"]
    assert set(table.rows[0][1:]) == {None}
    assert "no judge: not measured" in table.note


def test_published_rows_are_shown_only_when_asked_for_and_marked() -> None:
    plain = tables(view(row("Table Query", "TBO", "pot")))
    assert [len(table.rows) for name, table in plain.items() if name in ("ROUGE-L", "Judge")] == [1, 1]
    asked = tables(view(row("Table Query", "TBO", "pot", tags={"published": "shown"})))
    lengths = {name: len(table.rows) for name, table in asked.items()}
    # Of the house's own metrics the judge alone is near enough to the paper's.
    assert (lengths["ROUGE-L"], lengths["Exact match of numbers"], lengths["Judge"]) == (1, 1, 22)
    assert (lengths["ROUGE-L as released"], lengths["Exact match as released"]) == (27, 27)
    first = cells(asked["ROUGE-L as released"], 1)
    assert first["Run"] == "Llama-3.1-8B-Instruct (published)"
    # arXiv 2506.18421, Table 2, first row.
    assert (first["NLU TCoT"], first["ADA ICoT"], first["Overall"]) == (
        pytest.approx(0.2073),
        pytest.approx(0.0777),
        pytest.approx(0.1533),
    )
    assert "arXiv 2506.18421, Table 2" in asked["ROUGE-L as released"].note
    assert "prints no such table" in asked["BLEU as released"].note


def test_several_runs_stand_in_rows_and_in_one_picture() -> None:
    views = [view(row("Table Query", "TBO", "pot"), label=label) for label in ("one", "two")]
    assert [line[0] for line in tables(*views)["ROUGE-L"].rows] == ["one", "two"]
    [chart] = [block for block in make_report(views).blocks if isinstance(block, Chart)]
    assert (chart.kind, [series.name for series in chart.series], len(chart.labels)) == ("radar", ["one", "two"], 16)


def test_one_run_is_drawn_by_skill_and_mode() -> None:
    [chart] = [
        block for block in make_report([view(row("Table Query", "TBO", "pot"))]).blocks if isinstance(block, Chart)
    ]
    assert chart.labels == ["NLU", "TU", "TBO", "TCO", "DA", "ADA"]
    assert {series.name: series.values[2] for series in chart.series} == {"TCoT": None, "PoT": 0.75, "ICoT": None}
    assert "Judge" in chart.title


def test_the_picture_shows_rouge_l_where_no_judge_marked() -> None:
    [chart] = [
        block
        for block in make_report([view(row("Table Query", "TBO", "pot", scores={"rouge_l": 0.5}))]).blocks
        if isinstance(block, Chart)
    ]
    assert "ROUGE-L" in chart.title


def test_subtasks_are_listed_with_their_errors() -> None:
    table = tables(
        view(
            row("Table Query", "TBO", "pot"),
            row("Table Query", "TBO", "icot", outcome="error", scores={}),
            row("Instruction Following", "NLU", "tcot", scores={"instruction_following": 1.0}),
        )
    )["By subtask"]
    following, query = cells(table), cells(table, 1)
    assert (following["Subtask"], following["Rules kept"].value, following["BLEU"]) == (
        "Instruction Following",
        1.0,
        None,
    )
    assert (query["Subtask"], query["Cases"], query["Errors"], query["BLEU"].value) == ("Table Query", 2, 1, 0.25)


def test_an_interval_of_a_subtask_stays_within_the_metrics_range() -> None:
    shown = tables(
        view(
            row("Table Query", "TBO", "pot", 1, scores={"rouge_l": 0.0}),
            row("Table Query", "TBO", "pot", 2, scores={"rouge_l": 0.1}),
        )
    )["By subtask"]
    found = cells(shown)["ROUGE-L"]
    assert (found.value, found.low) == (0.05, 0.0)
    assert 0.05 < found.high <= 1.0


def test_programs_are_counted_by_how_they_ended() -> None:
    rows = [
        row("Table Query", "TBO", "pot", number, facts={"program": state, "sandbox": "landlock"})
        for number, state in enumerate(["ok", "ok", "failed", "missing", "printed nothing"])
    ]
    lacking = {"program": "package missing", "package": "seaborn", "sandbox": "bubblewrap"}
    rows += [row("Table Query", "TBO", "icot", 9, facts=lacking)]
    table = tables(view(*rows))["Programs"]
    assert table.rows == [
        ["gpt", "PoT", "landlock", 5, 2, 1, 0, 0, 1, 1],
        ["gpt", "ICoT", "bubblewrap", 1, 0, 0, 1, 0, 0, 0],
    ]
    assert "seaborn (1)" in table.note


def test_answers_cut_off_by_the_limit_on_tokens_are_told() -> None:
    section = make_report(
        [view(row("Table Query", "TBO", "pot", facts={"finish": "length"}), row("Table Query", "TBO", "icot"))]
    )
    [passage] = [block for block in section.blocks if isinstance(block, Passage)]
    assert "in 1 of 2 cases" in passage.text


def test_a_case_whose_worker_died_and_left_no_tags_does_no_harm() -> None:
    lost = Row("case[x]", "x", 1, "error", {}, {})
    assert cells(tables(view(row("Table Query", "TBO", "pot"), lost))["BLEU"])["TBO PoT"] == 0.25


def test_an_empty_run_has_a_report() -> None:
    assert tables(view())["ROUGE-L"].rows == [["gpt", *[None] * 17]]


def test_gates_can_ask_for_the_overalls() -> None:
    tally = view(row("Table Query", "TBO", "pot")).tally
    assert {name: getattr(derive(tally), "value", None) for name, derive in TREB.derived.items()} == {
        "overall_rouge_l": 0.5,
        "overall_bleu": 0.25,
        "overall_judge": 0.75,
        "overall_exact_match": None,
    }


PLACES = {"TU": "Table Retrieval", "TBO": "Table Query", "TCO": "Table General Operations"}
PLACES |= {"DA": "Table Outlier Detection", "ADA": "Multi-step Retrieval"}


def judged_row(subtask: str, mode: str, number: int = 1, judge: float | None = None, **more: Any) -> Row:
    tags = {"subtask": subtask, "skill": "TBO", "mode": mode, "cluster": f"{subtask}|{number}"}
    scores = {} if judge is None else {"judge": judge}
    sample = f"{subtask}|{number}|{mode}"
    outcome = more.pop("outcome", "passed")
    return Row(f"case[{sample}]", sample, more.pop("epoch", 1), outcome, tags | more.pop("tags", {}), scores)


def test_a_subtask_counts_in_its_best_mode_and_a_skill_is_the_mean_of_its_subtasks() -> None:
    tally = Tally.of(
        [
            judged_row("Table Query", "tcot_markdown", judge=0.2),
            judged_row("Table Query", "tcot_html", judge=0.6),
            judged_row("Table Query", "pot", judge=0.5),
            judged_row("Table Selection", "pot", judge=0.1),
            judged_row("Table Selection", "icot", judge=0.9),
        ]
    )
    # Both formats of TCoT together are one mode.
    assert find_best_mode(tally, "Table Query") == (0.5, "PoT")
    (table,) = tabulate_leaderboard([RunView("gpt", tally)], published=False)
    shown = cells(table)
    assert (shown["TBO"], shown["DA"], shown["Overall"]) == (pytest.approx((0.5 + 0.9) / 2), None, None)
    assert shown["Best modes"] == "TCoT 0, PoT 1, ICoT 1"


def test_overall_is_the_mean_of_five_skills_and_a_dash_where_one_is_missing() -> None:
    rows = [judged_row(subtask, "pot", judge=0.1 * place) for place, subtask in enumerate(PLACES.values(), 1)]
    (table,) = tabulate_leaderboard([RunView("gpt", Tally.of(rows))], published=False)
    assert table.rows[0][1:7] == pytest.approx([0.1, 0.2, 0.3, 0.4, 0.5, 0.3])
    (table,) = tabulate_leaderboard([RunView("gpt", Tally.of(rows[1:]))], published=False)
    assert (table.rows[0][1], table.rows[0][6]) == (None, None)


def test_without_a_judge_there_is_no_leaderboard() -> None:
    assert (
        list(tabulate_leaderboard([RunView("gpt", Tally.of([judged_row("Table Query", "pot")]))], published=True)) == []
    )


def test_published_rows_have_their_date_and_stand_only_where_they_are_wanted() -> None:
    shown = judged_row("Table Query", "pot", judge=1.0, tags={"published": "shown"})
    blocks = make_report([RunView("gpt", Tally.of([shown]))]).blocks
    tables = {block.title: block for block in blocks if isinstance(block, Table)}
    published = {str(line[0]): line for line in tables[LEADERBOARD_TITLE].rows[1:]}
    assert published["QwQ-32B (published 2025-09-01)"][1:7] == pytest.approx(
        [0.8322, 0.8198, 0.83275, 0.83275, 0.58595, 0.7815]
    )
    assert len(published) == 34
    assert len(LEADERBOARD_SKILLS) == 5
    # The house's own metrics are not the paper's.
    assert len(tables["ROUGE-L"].rows) == 1


def test_a_submission_has_one_answer_a_question_in_the_preferred_mode() -> None:
    tally = Tally.of(
        [
            judged_row("Table Query", "pot"),
            judged_row("Table Query", "icot"),
            judged_row("Table Query", "icot", epoch=2),
            judged_row("Table Summary", "tcot_markdown"),
        ]
    )
    modes = [line.tags["mode"] for line in choose_rows(tally, ["icot", "tcot_markdown"])]
    assert modes == ["icot", "tcot_markdown"]
    with pytest.raises(SettingsError, match="answers in several modes"):
        choose_rows(tally, [])
    with pytest.raises(SettingsError, match="--mode tcot_html: no question"):
        choose_rows(tally, ["tcot_html"])


def test_a_line_of_a_submission_has_the_fields_that_the_authors_take() -> None:
    said = (Message("user", "How many?"), Message("assistant", "It is 42."))
    record = Record(
        case="case[x]",
        benchmark="treb",
        sample="Table_Query|a|1#2|pot",
        epoch=1,
        model="gpt",
        outcome="passed",
        tags={"cluster": "Table_Query|a|1"},
        input="How many?",
        transcript=Transcript("42", said, "Let me see."),
    )
    assert make_submission_line(record, "Own-7B") == {
        "id": "Table_Query|a|1",
        "model_name": "Own-7B",
        "question": "How many?",
        "generation": "<think>\nLet me see.\n</think>\n\nIt is 42.",
        "pred_answer": "42",
    }
