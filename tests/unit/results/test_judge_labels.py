"""How far judges agree with people, read off the cases that people have labelled."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from evalsuite import stats
from evalsuite.decisions.gates import decide_gates, parse_gate
from evalsuite.decisions.measured import MeasuredBenchmark
from evalsuite.results.built_in import find_built_in_metric
from evalsuite.results.judge_labels import (
    JUDGE_METRICS,
    compute_ac1,
    compute_accuracy,
    compute_alpha,
    compute_kappa,
    compute_rho,
    compute_sensitivity,
    compute_specificity,
    compute_weighted_kappa,
    estimate_corrected_score,
    estimate_rho,
    find_majority_verdict,
)
from evalsuite.results.tally import Row, Tally

if TYPE_CHECKING:
    from collections.abc import Sequence


def row(at: int, judge: float, label: float | None, tags: dict[str, str] | None = None, **more: Any) -> Row:
    people = {} if label is None else {"people": {"right": {"label": label, "passes": 1.0, **more}}}
    facts = {"right": {"ballots": [{}], **people}}
    return Row(f"case {at:04}", f"sample {at}", 1, "passed", tags or {}, {"right": judge}, facts)


def of(pairs: Sequence[tuple[float, float | None]], **more: Any) -> Tally:
    return Tally(tuple(row(at, judge, label, **more) for at, (judge, label) in enumerate(pairs)))


MIXED = [(1.0, 1.0)] * 12 + [(0.0, 0.0)] * 10 + [(1.0, 0.0)] * 2 + [(0.0, 1.0)] * 1 + [(1.0, None)] * 20


def test_accuracy_and_kappa_are_of_the_labelled_verdicts_alone() -> None:
    accuracy, agreement = compute_accuracy(of(MIXED)), compute_kappa(of(MIXED))
    assert accuracy is not None
    assert agreement is not None
    assert (accuracy.value, accuracy.n) == (22 / 25, 25)
    labelled = [pair for pair in MIXED if pair[1] is not None]
    assert agreement.value == stats.cohen_kappa([judge for judge, _ in labelled], [label for _, label in labelled])


def test_scores_and_labels_are_verdicts_by_the_bar_of_their_rubric() -> None:
    tally = Tally((row(0, 4.0, 5.0, passes=4.0), row(1, 3.0, 4.0, passes=4.0)))
    accuracy = compute_accuracy(tally)
    assert accuracy is not None
    assert accuracy.value == 0.5


def test_a_comparison_is_a_verdict_by_itself_ties_included() -> None:
    tally = Tally((row(0, 0.5, 0.5, passes=None, nominal=True), row(1, 1.0, 0.5, passes=None, nominal=True)))
    accuracy = compute_accuracy(tally)
    assert accuracy is not None
    assert accuracy.value == 0.5


def test_without_labels_nothing_is_known_of_the_judge() -> None:
    tally = of([(1.0, None)] * 5)
    assert [measure(tally) for measure in JUDGE_METRICS.values()] == [None] * len(JUDGE_METRICS)


def test_full_agreement_on_few_cases_does_not_show_a_perfect_judge() -> None:
    few = compute_kappa(of([(1.0, 1.0), (0.0, 0.0)] * 4))
    assert few is not None
    assert few.low is not None
    assert few.value == 1.0
    assert few.low < 0.6


def test_two_cases_have_no_interval_and_a_perfect_correlation_of_three_a_wide_one() -> None:
    two, perfect = compute_kappa(of([(1.0, 1.0), (0.0, 0.0)])), estimate_rho([(1.0, 1.0), (2.0, 2.0), (3.0, 3.0)])
    assert two is not None
    assert perfect is not None
    assert two.low is None
    assert perfect.low is not None
    assert (perfect.low < 0.2, perfect.high) == (True, 1.0)


@pytest.mark.parametrize("right", [0.8, 0.97])
@pytest.mark.parametrize("labels", [10, 50])
def test_the_interval_of_kappa_holds_with_few_labels(labels: int, right: float) -> None:
    rng, repetitions, held, given = np.random.default_rng(3), 150, 0, 0
    truth = 2 * right - 1
    for _ in range(repetitions):
        people = (rng.random(labels) < 0.5).astype(float)
        judge = np.where(rng.random(labels) < right, people, 1 - people)
        found = compute_kappa(of(list(zip(judge.tolist(), people.tolist(), strict=True))))
        if found is not None and found.low is not None and found.high is not None:
            given += 1
            held += found.low <= truth <= found.high
    assert held / given >= 0.92


def test_a_gate_may_demand_agreement_with_people_and_its_bound() -> None:
    measured = {"judge": MeasuredBenchmark(of(MIXED), JUDGE_METRICS)}
    gates = [parse_gate(text) for text in ("judge.kappa >= 0.6", "judge.kappa >= 0.6 @95%", "judge.rho > 0.99")]
    assert [one.verdict for one in decide_gates(gates, measured)] == ["met", "missed", "missed"]


def test_sensitivity_is_of_passes_by_people_and_specificity_of_failures() -> None:
    sensitivity, specificity = compute_sensitivity(of(MIXED)), compute_specificity(of(MIXED))
    assert sensitivity is not None
    assert specificity is not None
    assert (sensitivity.value, sensitivity.n) == (12 / 13, 13)
    assert (specificity.value, specificity.n) == (10 / 12, 12)


def test_a_judge_that_always_passes_meets_accuracy_but_not_specificity() -> None:
    measured = {"judge": MeasuredBenchmark(of([(1.0, 1.0)] * 95 + [(1.0, 0.0)] * 5), JUDGE_METRICS)}
    gates = [parse_gate("judge.accuracy >= 0.9"), parse_gate("judge.specificity >= 0.5")]
    assert [one.verdict for one in decide_gates(gates, measured)] == ["met", "missed"]


def test_rare_failures_leave_ac1_near_the_agreement_where_kappa_is_near_zero() -> None:
    tally = of([(1.0, 1.0)] * 96 + [(1.0, 0.0)] * 2 + [(0.0, 1.0)] * 2)
    ac1, agreement = compute_ac1(tally), compute_kappa(tally)
    assert ac1 is not None
    assert agreement is not None
    chance = 2 * 0.98 * 0.02
    assert ac1.value == pytest.approx((0.96 - chance) / (1 - chance))
    assert agreement.value < 0


@pytest.mark.parametrize("right", [0.8, 0.9, 1.0])
@pytest.mark.parametrize(("labels", "passes"), [(20, 0.5), (50, 0.95)])
def test_the_interval_of_ac1_holds_with_few_labels_and_rare_failures(labels: int, passes: float, right: float) -> None:
    rng, repetitions, held = np.random.default_rng(7), 200, 0
    share = (passes + passes * right + (1 - passes) * (1 - right)) / 2
    chance = 2 * share * (1 - share)
    truth = (right - chance) / (1 - chance)
    for _ in range(repetitions):
        people = (rng.random(labels) < passes).astype(float)
        judge = np.where(rng.random(labels) < right, people, 1 - people)
        found = stats.ac1_interval(people, judge, categories=[0.0, 1.0])
        held += found.low <= truth <= found.high
    assert held / repetitions >= 0.94


def test_ordinal_alpha_is_of_scores_and_has_an_interval() -> None:
    pairs = [(float(at % 5), float(min(4, at % 5 + at % 2))) for at in range(40)]
    found = compute_alpha(of(pairs, passes=None))
    assert found is not None
    assert found.low is not None
    assert found.value == stats.krippendorff_alpha(list(zip(*pairs, strict=True)), level="ordinal")
    assert found.low < found.value
    assert compute_alpha(of([(1.0, 0.0)] * 5, passes=None, nominal=True)) is None


def test_a_gate_on_a_judge_that_nobody_has_checked_has_no_data() -> None:
    (decision,) = decide_gates([parse_gate("judge.kappa >= 0.6")], {})
    assert decision.verdict == "no data"
    assert "'human'" in decision.reason


def test_a_judged_mean_is_corrected_by_a_random_part_of_labels() -> None:
    rng = np.random.default_rng(5)
    people = (rng.random(400) < 0.6).astype(float)
    judge = np.where(rng.random(400) < 0.3, 1.0, people)
    found = estimate_corrected_score(
        "right",
        of([(float(j), float(p) if at < 100 else None) for at, (j, p) in enumerate(zip(judge, people, strict=True))]),
    )
    assert found is not None
    assert found.low is not None
    assert found.high is not None
    assert found.low <= 0.6 <= found.high < float(judge.mean())
    assert find_built_in_metric("corrected_right") is not None


def test_epochs_of_the_same_samples_do_not_narrow_a_corrected_mean() -> None:
    once = [row(at, float(at % 4 > 0), float(at % 5 > 0) if at < 60 else None) for at in range(120)]
    again = [replace(one, case=f"{one.case} {epoch}", epoch=epoch) for one in once for epoch in range(1, 6)]
    before, after = (estimate_corrected_score("right", Tally(tuple(rows))) for rows in (once, again))
    assert before is not None
    assert after is not None
    assert (after.value, after.low, after.high) == pytest.approx((before.value, before.low, before.high), abs=1e-3)


@pytest.mark.parametrize("labels", [0, 29])
def test_fewer_than_thirty_labels_correct_nothing(labels: int) -> None:
    assert estimate_corrected_score("right", of([(1.0, 1.0)] * labels + [(1.0, None)] * 100)) is None


def test_a_canary_is_no_random_part_of_the_cases_and_corrects_nothing() -> None:
    canaries = tuple(row(at, 1.0, 1.0, {"canary": "judge"}) for at in range(40))
    assert estimate_corrected_score("right", Tally(canaries) + of([(1.0, None)] * 100)) is None


def test_scores_of_two_names_have_no_correlation_in_common() -> None:
    other = Row(
        "z", "z", 1, "passed", {}, {"clear": 3.0}, {"clear": {"ballots": [{}], "people": {"clear": {"label": 2.0}}}}
    )
    assert compute_rho(of(MIXED)) is not None
    assert compute_rho(Tally((*of(MIXED), other))) is None


def test_the_verdict_of_most_people_counts_and_none_where_they_are_evenly_divided() -> None:
    assert find_majority_verdict([1.0, 1.0, 0.0]) == 1.0
    assert find_majority_verdict([0.0, 1.0, 0.0]) == 0.0
    assert find_majority_verdict([1.0, 0.0]) == 0.5
    tally = Tally((row(0, 1.0, 2 / 3, verdict=1.0), row(1, 1.0, 0.5, verdict=0.5)))
    accuracy = compute_accuracy(tally)
    assert accuracy is not None
    assert (accuracy.value, accuracy.n) == (1.0, 1)


def test_quadratic_weighted_kappa_is_that_of_its_table_of_weights() -> None:
    pairs = [(1.0, 2.0), (3.0, 3.0), (5.0, 4.0), (2.0, 2.0), (4.0, 1.0), (5.0, 5.0)]
    observed = sum((one - other) ** 2 for one, other in pairs) / len(pairs)
    chance = sum((one - other) ** 2 for one, _ in pairs for _, other in pairs) / len(pairs) ** 2
    assert compute_weighted_kappa(pairs) == pytest.approx(1 - observed / chance)
    assert JUDGE_METRICS["weighted_kappa"](of([(3.0, 3.0)] * 5)) is None


def test_a_gate_on_the_accuracy_of_scores_that_are_not_verdicts_is_refused_with_advice() -> None:
    tally = Tally(tuple(row(at, float(at % 5), float(at % 5), passes=None) for at in range(20)))
    measured = {"judge": MeasuredBenchmark(tally, JUDGE_METRICS)}
    accuracy, weighted = decide_gates(
        [parse_gate("judge.accuracy >= 0.9 @95%"), parse_gate("judge.weighted_kappa >= 0.9")], measured
    )
    assert accuracy.verdict == "no data"
    assert "passes=" in accuracy.reason
    assert weighted.verdict == "met"


@pytest.mark.parametrize("metric", ["kappa", "ac1", "rho"])
def test_a_gate_beyond_chance_on_labels_drawn_by_disagreement_is_refused_with_advice(metric: str) -> None:
    tally = Tally(tuple(row(at, float(at % 2), float(at % 3 > 0), weight=1.0 + at % 2) for at in range(60)))
    refused, met = decide_gates(
        [parse_gate(f"judge.{metric} >= 0"), parse_gate("judge.accuracy >= 0")],
        {"judge": MeasuredBenchmark(tally, JUDGE_METRICS)},
    )
    assert (refused.verdict, met.verdict) == ("no data", "met")
    assert "--random" in refused.reason
