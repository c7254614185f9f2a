"""Agreement with people over all samples, and the section that shows it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from evalsuite.benchmarks.chat_eval import CHAT_EVAL
from evalsuite.benchmarks.chat_eval.agreement import compute_kappa, correlate_ratings, estimate_corrected_means
from evalsuite.benchmarks.chat_eval.report import make_report
from evalsuite.output.reports.judges import tabulate_signatures
from evalsuite.output.reports.section import Chart, Passage, Table
from evalsuite.results.tally import Estimate, Row, RunView, Tally
from evalsuite.stats import cohen_kappa, kendall, pearson, spearman
from evalsuite.stats.agreement import kappa_lower_bound


def always_first(prompt: str) -> str:
    if "Score of answer" in prompt:
        return "Score of answer 1: 9\nScore of answer 2: 8"
    return "Verdict: 1" if "Verdict" in prompt else "naturalness: 2\ncoherence: 2\nengagingness: 2\ngroundedness: 1"


def table(section: Any, title: str) -> Table:
    return next(block for block in section.blocks if isinstance(block, Table) and title in block.title)


def pair(at: int, human: str, verdict: str | None) -> Row:
    scores = {"parsed": float(verdict is not None), "accuracy": float(human == verdict)}
    facts: dict[str, Any] = {"human": human, "verdict": verdict, "ballots": []}
    tags = {"task": "pairs", "mode": "single", "category": "generic"}
    return Row(f"p{at:03}", f"p{at:03}", 1, "passed", tags, scores, facts)


def response(at: int, human: float, said: float) -> Row:
    names = ("naturalness", "coherence", "engagingness", "groundedness")
    facts = {"human": dict.fromkeys(names, human), "judged": dict.fromkeys(names, said), "dialogue": at // 2}
    tags = {"task": "dialogues", "mode": "single"}
    return Row(f"d{at:03}", f"d{at:03}", 1, "passed", tags, {"parsed": 1.0}, {**facts, "verdict": None, "ballots": []})


def test_a_judge_that_always_prefers_the_first_answer_has_kappa_zero_and_a_flagged_bias(judged: Any) -> None:
    view = judged(always_first).view
    found = compute_kappa(view.tally)
    assert found is not None
    assert found.value == 0.0
    rows = {row[1]: row for row in table(make_report([view]), "Biases").rows}
    assert rows["prefers the first place"][-1] == "yes"
    share = rows["changes with the order"][2]
    assert isinstance(share, Estimate)
    assert share.value == 1.0


def test_a_judge_that_says_what_people_say_agrees_fully() -> None:
    tally = Tally.of(pair(at, said, said) for at, said in enumerate(["first", "second", "tie"] * 4))
    found = compute_kappa(tally)
    assert found is not None
    assert (found.value, found.high, found.n) == (1.0, 1.0, 12)
    # Twelve comparisons are no proof of a perfect judge.
    assert found.low == pytest.approx(kappa_lower_bound(list(range(3)) * 4, list(range(3)) * 4))
    assert tally.mean("accuracy") == 1.0


def test_no_verdict_counts_as_a_label_that_people_never_give() -> None:
    people = ["first", "second", "first", "tie", "second"]
    judge = ["first", "second", None, "tie", None]
    tally = Tally.of(pair(at, human, said) for at, (human, said) in enumerate(zip(people, judge, strict=True)))
    found = compute_kappa(tally)
    assert found is not None
    assert found.value == pytest.approx(cohen_kappa(people, [said or "none" for said in judge]))


def test_correlations_are_over_all_responses_at_once() -> None:
    people, judge = [1.0, 2.0, 3.0, 1.5, 2.5, 3.0], [1.0, 3.0, 2.0, 1.0, 2.0, 3.0]
    tally = Tally.of(response(at, human, said) for at, (human, said) in enumerate(zip(people, judge, strict=True)))
    for sign, statistic in (("spearman", spearman), ("kendall", kendall), ("pearson", pearson)):
        found = CHAT_EVAL.derived[sign](tally)
        assert found is not None
        assert found.value == pytest.approx(statistic(judge, people).statistic)
        assert found.n == 6
        single = CHAT_EVAL.derived["spearman_coherence"](tally)
        assert single is not None
        assert single.value == pytest.approx(spearman(judge, people).statistic)


def test_systems_are_correlated_by_their_means_and_overall_ratings_by_the_mean_aspect() -> None:
    people, judge, overall = [1, 3, 2, 2, 3, 3], [1, 1, 3, 3, 2, 2], [1.0, 1.5, 5.0, 4.5, 3.0, 2.5]
    rows = [response(at, human, said) for at, (human, said) in enumerate(zip(people, judge, strict=True))]
    for at, row in enumerate(rows):
        row.tags["system"] = "abc"[at // 2]  # type: ignore[index] # a dict
        row.facts["human"]["overall"] = overall[at]
        # Groundedness is from 0 to 1; on [0, 1], all aspects are equal.
        row.facts["judged"]["groundedness"] = (judge[at] - 1) / 2
    tally = Tally.of(rows)
    found = CHAT_EVAL.derived["pearson_overall"](tally)
    assert found is not None
    assert found.value == pytest.approx(pearson(judge, overall).statistic)
    # People's means are 2, 2 and 3, the judge's 1, 3 and 2.
    systems = CHAT_EVAL.derived["pearson_systems"](tally)
    assert systems is not None
    assert systems.value == pytest.approx(0.0)
    assert (systems.low, systems.n) == (None, 3)
    assert CHAT_EVAL.derived["kendall_systems"](Tally.of(rows[:4])) is None
    *_, by_judge = table(make_report([RunView("m", tally)]), "Pearson's r").rows
    assert by_judge[6] == found
    without = Tally.of(response(at, human, 2.0 + at % 2) for at, human in enumerate(people))
    assert CHAT_EVAL.derived["spearman_overall"](without) is None


def test_a_judge_that_gives_everything_the_same_score_has_no_correlation() -> None:
    tally = Tally.of(response(at, at % 3, 2.0) for at in range(6))
    assert correlate_ratings(tally, "spearman") is None


def test_errors_are_no_judgements() -> None:
    wrong = Row("e", "e", 1, "error", {"task": "pairs", "mode": "single"}, {})
    tally = Tally.of([wrong, pair(1, "first", "first"), pair(2, "second", "second")])
    found = compute_kappa(tally)
    assert found is not None
    assert found.n == 2
    assert table(make_report([RunView("m", tally)]), "table 1").rows[-1][-1] == 2


def test_nothing_measured_is_nothing_claimed() -> None:
    assert compute_kappa(Tally()) is None
    assert all(metric(Tally()) is None for metric in CHAT_EVAL.derived.values())
    assert make_report([RunView("m", Tally())]).blocks


def test_the_section_has_the_papers_tables_with_published_rows_and_ours(judged: Any) -> None:
    run = judged(always_first, "single", "paper:one_by_one:3roles", "paper:simultaneous:2roles:1turns")
    section = make_report([run.view])
    titles = [block.title for block in section.blocks]
    for title in (
        "Comparisons (table 1)",
        "Dialogue responses (table 2): Spearman's rho",
        "Dialogue responses (table 2): Kendall's tau-b",
        "Communication strategies (table 4)",
    ):
        assert title in titles
    one = {row[0]: row for row in table(section, "table 1").rows}
    assert one["ChatGPT, panel of 2 roles, 2 turns [1]"][1:] == (0.60, 0.33, None, 80)
    assert one["scripted, single"][-1] == 6
    rho, tau = (table(section, f"table 2): {name}").rows[1] for name in ("Spearman", "Kendall"))
    assert rho[-5] == pytest.approx(0.684, abs=5e-4)
    assert tau[-5] == pytest.approx(0.632, abs=5e-4)
    four = [row[0] for row in table(section, "table 4").rows]
    assert (
        four.index("scripted, paper:one_by_one:3roles") == four.index("ChatGPT, one by one, 3 roles, 2 turns [1]") + 1
    )
    assert (
        four.index("scripted, paper:simultaneous:2roles:1turns")
        == four.index("ChatGPT, simultaneous, 3 roles, 2 turns [1]") + 1
    )


def charts(views: list[RunView]) -> list[Chart]:
    return [block for block in make_report(views).blocks if isinstance(block, Chart)]


def test_accuracy_and_kappa_are_plotted_against_roles_over_several_runs_of_one_model(judged: Any) -> None:
    runs = {roles: judged(always_first, f"paper:one_by_one:{roles}roles:1turns") for roles in (1, 2, 4)}
    views = [replace(run.view, label=f"run {roles}") for roles, run in runs.items()]
    accuracy, agreement = charts(views)
    assert (accuracy.name, agreement.name) == ("chat_eval_accuracy_by_roles", "chat_eval_kappa_by_roles")
    assert accuracy.labels == agreement.labels == ["1", "2", "3", "4", "5"]
    ours, theirs = accuracy.series
    assert ours.name == "scripted, paper:one_by_one, 1 turn"
    assert [isinstance(value, Estimate) for value in ours.values] == [True, True, False, True, False]
    assert list(theirs.values) == [0.538, 0.60, 0.625, 0.625, 0.588]
    assert list(agreement.series[1].values) == [0.27, 0.33, 0.37, 0.38, 0.32]


def test_the_papers_single_agent_is_the_first_point_of_its_panels_and_of_no_other(judged: Any) -> None:
    modes = ("paper:single", "paper:one_by_one:2roles", "paper:simultaneous:2roles", "paper:simultaneous:3roles")
    accuracy, *_ = charts([judged(always_first, *modes).view])
    points = {series.name: [value is not None for value in series.values] for series in accuracy.series[:2]}
    assert points == {
        "scripted, paper:one_by_one, 2 turns": [True, True, False, False, False],
        "scripted, paper:simultaneous, 2 turns": [True, True, True, False, False],
    }


def test_accuracy_is_plotted_against_turns_over_several_modes_of_one_run(judged: Any) -> None:
    modes = [f"paper:simultaneous:2roles:{turns}turns" for turns in (1, 3)]
    accuracy, agreement = charts([judged(always_first, *modes).view])
    assert (accuracy.name, accuracy.labels) == ("chat_eval_accuracy_by_turns", ["1", "2", "3", "4", "5"])
    assert [series.name for series in agreement.series] == [
        "scripted, paper:simultaneous, 2 roles",
        "ChatGPT [1], one_by_one, 2 roles",
    ]


def test_panels_that_differ_in_more_than_roles_or_turns_are_not_joined_by_a_line(judged: Any) -> None:
    modes = ("paper:simultaneous:1roles:1turns", "paper:one_by_one:2roles:2turns")
    assert charts([judged(always_first, *modes).view]) == []


def test_two_runs_of_the_same_panels_have_a_line_each(judged: Any) -> None:
    modes = [f"paper:one_by_one:{roles}roles:1turns" for roles in (1, 2)]
    first = judged(always_first, *modes).view
    chart, _ = charts([first, replace(first, label="again")])
    assert [series.name for series in chart.series][:2] == [
        "scripted, paper:one_by_one, 1 turn",
        "again, paper:one_by_one, 1 turn",
    ]


def test_judgements_that_differ_from_peoples_are_shown_whole(judged: Any) -> None:
    view = judged(always_first, "paper:one_by_one").view
    shown = [block for block in make_report([view]).blocks if isinstance(block, Passage) and block.folded]
    assert len(shown) == 2
    assert "the judge says tie, people say first" in shown[0].title
    assert shown[0].whole
    talked, scored = shown[0].text.count("naturalness: 2"), shown[0].text.count("Score of answer 1: 9")
    assert talked == scored == 2 * 2, "two debaters in two orders"


def test_labels_are_hidden_and_found_again_with_enough_samples() -> None:
    tally = Tally.of(pair(at, "first" if at % 3 else "second", "first") for at in range(80))
    ((_, found),) = estimate_corrected_means([("m", tally)])
    assert (found.labelled, found.naive.value, found.naive.n) == (30, 1.0, 80)
    assert found.truth == pytest.approx(53 / 80)
    assert estimate_corrected_means([("m", Tally.of(pair(at, "first", "first") for at in range(59)))]) == []


def test_each_mode_and_task_has_a_signature_of_its_own(judged: Any) -> None:
    signed = tabulate_signatures([judged(always_first, "single", "paper:one_by_one:2roles:1turns").view])
    assert signed is not None
    kinds = [(row[1], str(row[2]).split(",")[0], str(row[3]).split("|")[:2]) for row in signed.rows]
    assert kinds == [
        (mode, score, [kind, "judge:the model under test"])
        for score in ("accuracy", "naturalness")
        for mode, kind in (("paper:one_by_one:2roles:1turns", "panel"), ("single", "sampled"))
    ]
    assert [row[4] for row in signed.rows] == [6] * 4


def test_two_models_that_are_asked_the_same_judge_under_one_signature(judged: Any) -> None:
    signed = tabulate_signatures([judged(always_first, name=name).view for name in ("a", "b")])
    assert signed is not None
    assert [row[0] for row in signed.rows] == ["a", "a", "b", "b"]
    assert len({row[3] for row in signed.rows}) == 2


def test_the_category_table_has_a_column_for_each_judge(judged: Any) -> None:
    views = [judged(always_first, name=name).view for name in ("a", "b")]
    found = table(make_report(views), "category")
    assert [column.title for column in found.columns] == ["Category", "a, single", "b, single"]
    assert [row[0] for row in found.rows][:2] == ["common-sense", "counterfactual"]


def test_the_modes_of_a_run_are_no_further_evidence_of_a_mean(judged: Any) -> None:
    one = judged(always_first, "single").view.tally.estimate("accuracy")
    two = judged(always_first, "single", "paper:one_by_one:2roles:1turns").view.tally.estimate("accuracy")
    assert two.n == 2 * one.n
    assert two.high - two.low >= 0.9 * (one.high - one.low)
