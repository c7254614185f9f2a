"""The report shows A, H and M by judge and rule, by domain and by popularity, for one run or several."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from evalsuite.benchmarks.head_to_tail import HEAD_TO_TAIL
from evalsuite.benchmarks.head_to_tail.dataset import BUCKETS
from evalsuite.output.reports.section import Chart, Passage, Section, Table
from evalsuite.results.tally import Estimate, Row, RunView, Tally

if TYPE_CHECKING:
    from evalsuite.core.types import Outcome

# Of each four cases in a bucket so many are right; one of the others is missing in the tail.
RIGHT = {"head": 3, "torso": 2, "tail": 0}


def row(number: int, bucket: str, *, judge: bool = False, mode: str = "few_shot", outcome: Outcome = "passed") -> Row:
    right, missing = float(number < RIGHT[bucket]), float(bucket == "tail" and number == 3)
    shares = {"accuracy": right, "hallucination": 1.0 - right - missing}
    suffixes = ("", "_em", "_f1", "_rl", *(["_lm"] if judge else []))
    scores = {f"{name}{suffix}": value for suffix in suffixes for name, value in shares.items()}
    domain = "movie" if number % 2 else "open"
    tags = {"domain": domain, "bucket": bucket, "mode": mode}
    sample = f"{domain}-{bucket}-{number}"
    name = f"test[{sample}-{mode}]"
    return Row(name, sample, 1, outcome, tags, {} if outcome == "error" else {"missing": missing, **scores})


def view(label: str = "tiny", **how: Any) -> RunView:
    rows = [row(number, bucket, **how) for bucket in BUCKETS for number in range(4)]
    return RunView(label, Tally.of(rows), judge="gpt-4" if how.get("judge") else None, source="shipped samples")


def section(*views: RunView) -> Section:
    assert HEAD_TO_TAIL.report is not None
    return HEAD_TO_TAIL.report(views)


def table(found: Section, title: str) -> Table:
    return next(block for block in found.blocks if isinstance(block, Table) and block.title == title)


def values(cells: Any) -> list[Any]:
    return [cell.value if isinstance(cell, Estimate) else cell for cell in cells]


def test_the_main_table_has_a_row_for_the_judge_and_each_rule_and_the_rates_add_up() -> None:
    main = table(section(view()), "Right, made up, missing")
    assert [column.title for column in main.columns] == [
        "Right by",
        "Questions",
        "Accuracy",
        "Hallucination",
        "Missing",
    ]
    assert [column.style for column in main.columns[2:]] == ["percent"] * 3
    judge, exact, *soft = (values(cells) for cells in main.rows)
    assert judge == ["judge", 0, None, None, None]
    assert exact == ["exact match", 12, pytest.approx(5 / 12), pytest.approx(6 / 12), pytest.approx(1 / 12)]
    assert [cells[0] for cells in soft] == ["token F1", "ROUGE-L"]


def test_with_a_judge_its_row_is_filled_and_the_preface_names_it() -> None:
    found = section(view(judge=True))
    assert values(table(found, "Right, made up, missing").rows[0])[:2] == ["judge", 12]
    preface = found.blocks[0]
    assert isinstance(preface, Passage)
    assert "the judge gpt-4" in preface.text
    other = section(view()).blocks[0]
    assert isinstance(other, Passage)
    assert "exact match" in other.text
    assert "shipped samples" in other.text


def test_accuracy_is_shown_from_head_to_tail_with_intervals() -> None:
    found = section(view())
    rows = table(found, "By popularity").rows
    assert [values(cells)[:3] for cells in rows] == [["head", 4, 0.75], ["torso", 4, 0.5], ["tail", 4, 0.0]]
    (figure,) = (block for block in found.blocks if isinstance(block, Chart))
    assert (figure.kind, tuple(figure.labels), figure.unit) == ("lines", BUCKETS, "percent")
    assert values(figure.series[0].values) == [0.75, 0.5, 0.0]
    assert all(isinstance(one, Estimate) and one.low is not None for one in figure.series[0].values)
    assert [series.name for series in figure.series[1:]] == ["movie", "open"]


def test_domains_come_in_the_paper_s_order_and_meet_the_buckets_in_one_table() -> None:
    found = section(view())
    assert [cells[0] for cells in table(found, "By domain").rows] == ["movie", "open"]
    meeting = table(found, "Accuracy by domain and popularity")
    assert [values(cells) for cells in meeting.rows] == [["movie", 0.5, 0.5, 0.0], ["open", 1.0, 0.5, 0.0]]


def test_several_runs_stand_one_below_the_other_and_have_a_line_each() -> None:
    found = section(view("small"), view("large", judge=True))
    main = table(found, "Right, made up, missing")
    assert [column.title for column in main.columns][:2] == ["Right by", "Run"]
    assert [list(cells[:2]) for cells in main.rows][:4] == [
        ["judge", "small"],
        ["judge", "large"],
        ["exact match", "small"],
        ["exact match", "large"],
    ]
    (figure,) = (block for block in found.blocks if isinstance(block, Chart))
    assert [series.name for series in figure.series] == ["small", "large"]


def test_the_modes_of_a_run_are_rows_of_their_own() -> None:
    both = RunView("tiny", view(mode="few_shot").tally + view(mode="zero_shot").tally)
    alone = table(section(both), "By popularity")
    assert alone.columns[1].title == "Mode"
    assert [cells[1] for cells in alone.rows] == ["few_shot", "zero_shot"] * 3
    beside = [cells[1] for cells in table(section(both, view("large")), "By popularity").rows[:3]]
    assert beside == ["tiny, few_shot", "tiny, zero_shot", "large"]


def test_the_preface_says_for_each_run_who_decided_where_they_differ() -> None:
    preface = section(view("small"), view("large", judge=True)).blocks[0]
    assert isinstance(preface, Passage)
    assert "Right is what exact match says for small." in preface.text
    assert "Right is what the judge gpt-4 says for large." in preface.text


def test_errors_are_told_and_count_nowhere() -> None:
    lost = RunView("tiny", view().tally + Tally.of([row(9, "head", outcome="error")]))
    found = section(lost)
    preface = found.blocks[0]
    assert isinstance(preface, Passage)
    assert "errors in 1 of 13 cases" in preface.text
    assert table(found, "Right, made up, missing").rows[1][1] == 12


def test_the_interval_of_a_soft_rule_stays_within_a_share() -> None:
    rows = [row(number, "head") for number in range(4)]
    for one, shared in zip(rows, (0.0, 0.0, 0.0, 0.1), strict=True):
        one.scores.update(accuracy_f1=shared, hallucination_f1=1 - shared)  # type: ignore[attr-defined] # a dict
    found = table(section(RunView("tiny", Tally.of(rows))), "Right, made up, missing").rows[2]
    accuracy, hallucination = found[2], found[3]
    assert isinstance(accuracy, Estimate)
    assert isinstance(hallucination, Estimate)
    assert accuracy.low == 0.0
    assert hallucination.high == 1.0


def test_a_run_without_a_single_score_has_dashes_and_no_crash() -> None:
    found = section(RunView("tiny", Tally.of([row(0, "head", outcome="error")])))
    assert values(table(found, "By popularity").rows[0]) == ["head", 0, None, None, None]
