"""The paper's studies on rows made by hand: each is there when the runs allow it, with the right numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from evalsuite.benchmarks.head_to_tail import HEAD_TO_TAIL
from evalsuite.benchmarks.head_to_tail.dataset import BUCKETS, load_dataset
from evalsuite.benchmarks.head_to_tail.report import (
    compare_modes_with_default,
    compare_rules_with_judge,
    compare_runs_with_first,
    make_study_blocks,
    tabulate_answer_stability,
    tabulate_natural_questions,
    tabulate_predicates,
    tabulate_top_tenth_of_head,
)
from evalsuite.core.errors import DatasetError
from evalsuite.core.protocols import Setup
from evalsuite.core.types import Record, Transcript
from evalsuite.results.tally import Estimate, Row, RunView, Tally

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from evalsuite.output.reports.section import Table

TEN = range(10)


def row(
    number: int, right: float, *, epoch: int = 1, missing: float = 0.0, judge: float | None = None, **tags: str
) -> Row:
    """A question that was answered; by the rules `right`, by a judge, if there is one, `judge`."""
    shown = {"mode": "few_shot", "domain": "movie", "bucket": "head"} | tags
    sample = f"movie-{shown['bucket']}-{number}" + (f"-{shown['mode'].replace(':', '-')}" if "mode" in tags else "")
    by_rule = {f"{name}{rule}": right for name in ("accuracy",) for rule in ("", "_em", "_f1", "_rl")}
    wrong = {f"hallucination{rule}": 1 - right - missing for rule in ("", "_em", "_f1", "_rl")}
    scores = {"missing": missing} | by_rule | wrong
    if judge is not None:
        scores |= {"accuracy_lm": judge, "hallucination_lm": 1 - judge - missing}
    return Row(f"test[{sample}-{shown}-e{epoch}]", sample, epoch, "passed", shown, scores)


def view(rows: Iterable[Row], label: str = "a", answers: Mapping[tuple[str, int], str] | None = None) -> RunView:
    """A run whose records say what was answered, by sample and epoch."""
    tally = Tally.of(rows)
    by_case = {one.case: (one.sample, one.epoch) for one in tally}

    def read(case: str) -> Record:
        answer = (answers or {})[by_case[case]]
        return Record(case, "head_to_tail", *by_case[case], "m", "passed", transcript=Transcript(answer))

    return RunView(label, tally, source="built.json", read=read)


def cells(table: Table | None) -> list[list[object]]:
    assert table is not None
    assert all(len(row) == len(table.columns) for row in table.rows)
    return [[cell.value if isinstance(cell, Estimate) else cell for cell in row] for row in table.rows]


def judged(label: str, rates: Mapping[tuple[str, str], tuple[float, float]]) -> RunView:
    """A run with these accuracies by rule and by judge, in tenths, for domains and buckets."""
    return view(
        (
            row(number, float(number < 10 * rule), judge=float(number < 10 * judge), domain=domain, bucket=bucket)
            for (domain, bucket), (rule, judge) in rates.items()
            for number in TEN
        ),
        label,
    )


def test_rule_and_judge_are_correlated_over_runs_for_each_domain_and_bucket() -> None:
    # Over three runs: in step by rank and nearly so by value; and against each other in one of two ranks.
    runs = [
        judged("a", {("movie", "head"): (0.1, 0.2), ("open", "tail"): (0.1, 0.3)}),
        judged("b", {("movie", "head"): (0.2, 0.4), ("open", "tail"): (0.2, 0.2)}),
        judged("c", {("movie", "head"): (0.4, 0.5), ("open", "tail"): (0.3, 0.4)}),
    ]
    found = cells(compare_rules_with_judge(runs))
    assert [line[:3] for line in found] == [
        [rate, rule, 2] for rate in ("Accuracy", "Hallucination") for rule in ("exact match", "token F1", "ROUGE-L")
    ]
    # By hand: Spearman 1 and 0.5. Pearson of (1, 2, 4) with (2, 4, 5): 13/3 over the root of 14/3 times
    # 14/3, which is 13/14; of (1, 2, 3) with (3, 2, 4): 1 over the root of 2 times 2, which is 0.5.
    assert found[0][3:] == pytest.approx([0.5, 0.75, 0.5, (13 / 14 + 0.5) / 2])


def test_a_combination_in_which_all_runs_are_equal_has_no_correlation() -> None:
    same, other = ("movie", "head"), ("open", "tail")
    runs = [
        judged(name, {same: (0.5, 0.5), other: (rate, rate)}) for name, rate in (("a", 0.1), ("b", 0.2), ("c", 0.3))
    ]
    assert cells(compare_rules_with_judge(runs))[0][2:] == [1, *[pytest.approx(1.0)] * 4]


def test_two_runs_or_runs_without_a_judge_have_no_correlation() -> None:
    one = {("movie", "head"): (0.1, 0.2)}
    assert compare_rules_with_judge([judged("a", one), judged("b", one)]) is None
    assert compare_rules_with_judge([view([row(n, 1.0) for n in TEN], name) for name in "abc"]) is None


def test_the_modes_of_one_run_are_one_model_to_rule_and_judge() -> None:
    rates = {("movie", "head"): (0.1, 0.2)}
    modes = [
        view([row(n, float(n < right), judge=float(n < right), mode=mode) for n in TEN])
        for right, mode in enumerate(("few_shot", "zero_shot", "in_domain"))
    ]
    run = view([one for mode in modes for one in mode.tally])
    assert compare_rules_with_judge([run]) is None
    three = compare_rules_with_judge([run, judged("b", rates), judged("c", rates)])
    assert three is not None
    assert three.note.startswith("Over 3 runs")


def test_answers_that_change_between_epochs_are_counted_whatever_their_case_and_articles() -> None:
    said = {
        0: ("Paris", "the paris!"), 1: ("Paris", "London"), 2: ("1999", "1999"), 3: ("unsure", "Rome"),
    }  # fmt: skip
    rows = [row(n, float(n == 1 and epoch == 1), epoch=epoch) for n in said for epoch in (1, 2)]
    answers = {(f"movie-head-{n}", epoch): said[n][epoch - 1] for n in said for epoch in (1, 2)}
    table = tabulate_answer_stability([view([*rows, row(9, 1.0)], answers=answers)])
    assert cells(table) == [["few_shot", 4, 2, 0.5, 0.25]]
    one_entity = [row(n, 1.0, epoch=epoch, cluster="e") for n in said for epoch in (1, 2)]
    clustered = tabulate_answer_stability([view(one_entity, answers=answers)])
    assert clustered is not None
    assert clustered.rows[0][3] == Estimate(0.5, n=4)
    assert table is not None
    assert isinstance(interval := table.rows[0][3], Estimate)
    # Clopper and Pearson's interval of 2 of 4 at 95%.
    assert (interval.low, interval.high) == pytest.approx((0.0676, 0.9324), abs=1e-4)


def test_a_single_epoch_says_nothing_about_stability() -> None:
    assert tabulate_answer_stability([view([row(n, 1.0) for n in TEN])]) is None


def test_prompts_are_compared_on_the_questions_that_both_asked() -> None:
    rows = [row(n, float(n < 5), mode="few_shot", bucket=bucket) for n in TEN for bucket in ("head", "tail")]
    rows += [row(n, float(n < 7), mode="zero_shot", bucket="head") for n in TEN]
    found = cells(compare_modes_with_default([view(rows)]))
    assert found[0] == ["all", "few_shot", 20, 0.5, 0.5, 0.0, None, None]
    # Seven of the ten that both asked against five of them.
    assert found[1] == ["all", "zero_shot", 10, 0.7, pytest.approx(0.3), 0.0, pytest.approx(0.2), pytest.approx(-0.2)]
    assert found[-1][:3] == ["tail", "zero_shot", 0]
    assert found[-1][3:] == [None] * 5


def test_a_change_of_a_single_question_has_no_interval() -> None:
    rows = [row(0, right, mode=mode) for mode, right in (("few_shot", 0.0), ("zero_shot", 1.0))]
    table = compare_modes_with_default([view(rows)])
    assert table is not None
    assert table.rows[1][-2] == Estimate(1.0, n=1)


def test_questions_about_one_entity_are_one_cluster_of_a_paired_change() -> None:
    rows = [
        row(n, float(n < right), mode=mode, cluster=f"e{n // 5}")
        for mode, right in (("few_shot", 3), ("paper:zero_shot", 6))
        for n in TEN
    ]
    table = compare_modes_with_default([view(rows)])
    assert table is not None
    change = table.rows[1][-2]
    assert isinstance(change, Estimate)
    # Two entities with changes of 0.4 and 0.2: t with one degree of freedom, cut at the greatest change of a share.
    assert (change.value, change.low, change.high) == pytest.approx((0.3, 0.3 - 1.2706, 1.0), abs=1e-3)


def test_a_rate_that_never_changed_has_an_interval_with_a_width() -> None:
    runs = [view([row(n, 1.0) for n in TEN], label) for label in ("base", "tuned")]
    table = compare_runs_with_first(runs, only_shipped=True)
    assert table is not None
    changes = [cell for cell in table.rows[0] if isinstance(cell, Estimate)]
    assert [cell.value for cell in changes] == [0.0] * 3
    assert all(cell.low is not None and cell.high is not None and cell.low < 0 < cell.high for cell in changes)


def test_a_model_is_held_against_the_first_on_the_questions_of_both() -> None:
    base = view([row(n, float(n < 5), bucket=bucket) for n in TEN for bucket in ("head", "tail")], "base")
    tuned = view(
        [row(n, float(n < 3), missing=float(n > 7), mode="few_shot") for n in TEN]
        + [row(n, 1.0, mode="zero_shot") for n in TEN],
        "tuned",
    )
    table = compare_runs_with_first([base, tuned], only_shipped=True)
    # The tail was asked in the first run alone.
    changes = [pytest.approx(-0.2), pytest.approx(0.0), pytest.approx(0.2)]
    assert cells(table) == [["tuned against base", part, *changes] for part in ("all", "head")]
    published = cells(compare_runs_with_first([base, tuned], only_shipped=False))
    assert len(published) == 2 + 4 * 4
    falcon = next(line for line in published if line[0] == "Falcon-Instruct (40B) against Falcon (40B) (published)")
    assert falcon[1] == "all"


def test_models_asked_in_different_modes_are_not_compared() -> None:
    runs = [view([row(n, 1.0, mode=mode) for n in TEN], mode) for mode in ("few_shot", "zero_shot")]
    assert compare_runs_with_first(runs, only_shipped=True) is None


def test_a_single_mode_says_nothing_about_prompts() -> None:
    assert compare_modes_with_default([view([row(n, 1.0, mode="few_shot") for n in TEN])]) is None


def test_the_top_tenth_of_the_head_is_held_against_the_whole_head() -> None:
    rows = [row(n, 1.0, top="10%") for n in range(4)]
    rows += [row(n, float(n < 6)) for n in range(4, 10)]
    rows += [row(n, float(n < 6), domain="open") for n in TEN]
    rows += [row(n, 0.0, bucket="tail") for n in TEN]
    assert cells(tabulate_top_tenth_of_head([view(rows)])) == [
        ["all", 4, 1.0, 0.0, 0.0, pytest.approx(0.4)],
        ["movie", 4, 1.0, 0.0, 0.0, pytest.approx(0.4)],
    ]
    assert tabulate_top_tenth_of_head([view([row(n, 1.0) for n in TEN])]) is None


def test_predicates_are_grouped_by_their_own_popularity() -> None:
    rows = [row(n, float(n < 3), predicate="head predicate") for n in range(4)]
    rows += [row(n + 9, 0.0, missing=1.0, predicate="tail predicate", bucket="tail") for n in range(2)]
    assert cells(tabulate_predicates([view(rows)])) == [
        ["head", 4, 0.75, 0.25, 0.0],
        ["torso", 0, None, None, None],
        ["tail", 2, 0.0, 0.0, 1.0],
    ]
    assert tabulate_predicates([view([row(n, 1.0) for n in TEN])]) is None


def test_several_runs_stand_below_each_other_under_their_names() -> None:
    rows = [row(n, 1.0, predicate="tail predicate") for n in TEN]
    assert [line[0] for line in cells(tabulate_predicates([view(rows), view(rows, "b")]))] == ["a"] * 3 + ["b"] * 3


def test_the_shipped_pack_is_not_held_against_the_paper() -> None:
    rows = [row(n, 1.0) for n in TEN]
    assert make_study_blocks([view(rows)], only_shipped=True) == []
    titles = [block.title for block in make_study_blocks([view(rows)], only_shipped=False)]
    assert titles == ["", "Published results"]


def test_natural_questions_stand_by_domain_beside_the_published_ones() -> None:
    rows = [row(n, float(n < 5), natural="yes" if n < 8 else "no", domain="book") for n in TEN]
    own = cells(tabulate_natural_questions([view(rows)], only_shipped=True))
    assert own == [["a", None, None, 5 / 8, 3 / 8, None, None]]
    beside = cells(tabulate_natural_questions([view(rows)], only_shipped=False))
    assert beside[:2] == [own[0], ["GPT-4 (published)", 0.438, 0.126, 0.391, 0.246, 0.112, 0.098]]
    assert len(beside) == 17
    assert tabulate_natural_questions([view([row(n, 1.0) for n in TEN])], only_shipped=False) is None


def test_the_report_holds_the_studies_that_its_runs_allow() -> None:
    rows = [row(n, float(n < 5), bucket=bucket, top="10%") for n in TEN for bucket in BUCKETS]
    assert HEAD_TO_TAIL.report is not None
    titles = [getattr(block, "title", "") for block in HEAD_TO_TAIL.report([view(rows)]).blocks]
    assert titles[-3:] == ["The top tenth of the head", "", "Published results"]


RECORDS = ", ".join(f'["e{number}", "t", "Q{number}?", "A"]' for number in range(11))
FILE = f'{{"head": [{RECORDS}], "torso": [], "tail": [["e", "<p>", "Q?", "A"]]}}'


def _tags(folder: Path) -> list[dict[str, str]]:
    return [dict(sample.tags) for sample in load_dataset(Setup("m", data=folder)).samples]


def test_questions_built_here_carry_what_lies_beside_them(tmp_path: Path) -> None:
    (tmp_path / "built.json").write_text(FILE)
    (tmp_path / "built.stats.md").write_text("# Counted\n")
    (tmp_path / "built.predicates.tsv").write_text("template\tpopularity\tbucket\n<p>\t3\ttail\n")
    tags = _tags(tmp_path)
    # A tenth of eleven, and no less.
    assert [("top" in tag) for tag in tags] == [True] * 2 + [False] * 10
    assert [tag.get("predicate") for tag in tags] == [None] * 11 + ["tail predicate"]


def test_questions_of_which_no_order_is_known_have_no_top(tmp_path: Path) -> None:
    (tmp_path / "head_to_tail_imdb.json").write_text(FILE)
    assert not any("top" in tag or "predicate" in tag for tag in _tags(tmp_path))


@pytest.mark.parametrize(
    "damaged",
    [
        "template\tbucket\n",
        "template\tpopularity\tbucket\n<p>\ttail\n",
        "template\tpopularity\tbucket\n<p>\t3\tmiddle\n",
    ],
)
def test_a_damaged_companion_is_named_with_its_line(tmp_path: Path, damaged: str) -> None:
    (tmp_path / "built.json").write_text(FILE)
    (tmp_path / "built.predicates.tsv").write_text(damaged)
    with pytest.raises(DatasetError, match=r"built\.predicates\.tsv, line \d"):
        _tags(tmp_path)
