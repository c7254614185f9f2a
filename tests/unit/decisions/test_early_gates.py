"""Gates decided while a run goes on."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from evalsuite.decisions.early_stops import EarlyDecider, EarlyGate
from evalsuite.decisions.gates import parse_gate
from evalsuite.results.tally import Row

if TYPE_CHECKING:
    from evalsuite.core.types import Outcome

POINT, BOUND = "numbers.right >= 0.5", "numbers.right >= 0.5 @95%"


def row(sample: str, score: float, epoch: int = 1, outcome: Outcome = "passed", **tags: str) -> Row:
    return Row(f"{sample}-e{epoch}", sample, epoch, outcome, tags, {"right": score})


def heard(gate: str, *rows: Row) -> EarlyGate:
    early = EarlyGate(parse_gate(gate), find_range=lambda *_: (0.0, 1.0))
    for one in rows:
        early.add_case("numbers", one)
    return early


def test_right_answers_decide_a_gate_and_wrong_ones_do_too() -> None:
    assert heard(POINT, *(row(str(n), 1.0) for n in range(20))).verdict == "met"
    assert heard(POINT, *(row(str(n), 0.0) for n in range(20))).verdict == "missed"
    assert heard(POINT, *(row(str(n), n % 2) for n in range(20))).verdict == "open"


def test_where_less_is_better_the_verdicts_are_the_other_way_round() -> None:
    gate = "numbers.right <= 0.5"
    assert heard(gate, *(row(str(n), 1.0) for n in range(20))).verdict == "missed"
    assert heard(gate, *(row(str(n), 0.0) for n in range(20))).verdict == "met"


def test_scores_between_0_and_1_decide_a_gate() -> None:
    assert heard(POINT, *(row(str(n), 0.9) for n in range(60))).verdict == "met"


def test_the_epochs_of_few_samples_do_not_decide_about_all_samples() -> None:
    epochs = [row(str(n % 4), 1.0, epoch=n) for n in range(200)]
    assert heard(BOUND, *epochs).verdict == "open"
    # Of these very cases, drawn at random, each says something.
    assert heard(POINT, *epochs).verdict == "met"


def test_a_first_epoch_of_each_sample_counts() -> None:
    epochs = [row(str(n), 1.0, epoch) for n in range(20) for epoch in (1, 2)]
    assert heard(BOUND, *epochs).verdict == "met"


def test_where_samples_share_a_source_a_gate_with_a_confidence_waits() -> None:
    shared = [row(str(n), 1.0, cluster=f"document {n // 2}") for n in range(100)]
    assert heard(BOUND, *shared).verdict == "open"
    assert heard(POINT, *shared).verdict == "met"


@pytest.mark.parametrize("gate", ["numbers.* >= 0.5", "*.right >= 0.5", "numbers[eu].right >= 0.5", "other.right > 0"])
def test_what_a_gate_does_not_name_alone_decides_nothing(gate: str) -> None:
    assert heard(gate, *(row(str(n), 1.0, region="asia") for n in range(50))).verdict == "open"


def test_errors_and_scores_without_bounds_decide_nothing() -> None:
    assert heard(POINT, *(row(str(n), 1.0, outcome="error") for n in range(50))).verdict == "open"
    assert heard(POINT, *(row(str(n), 7.0) for n in range(50))).verdict == "open"


def cases_until_decided(*gates: str) -> int:
    early = EarlyDecider([parse_gate(gate) for gate in gates])
    for n in range(200):
        early.add_case("numbers", row(str(n), 1.0))
        if early.decided:
            return n + 1
    return 200


def test_several_gates_share_the_error_and_so_need_more_cases() -> None:
    assert cases_until_decided(POINT) < cases_until_decided(POINT, *[f"numbers.right >= 0.{n}" for n in range(10, 20)])


def wrong_decision(seed: int) -> bool:
    """A hundred samples with five equal epochs each, half of them right: the gate is met, just."""
    rows = [row(str(n), float(n < 50), epoch) for n in range(100) for epoch in range(5)]
    random.Random(seed).shuffle(rows)
    early = EarlyGate(parse_gate(POINT))
    for one in rows:
        early.add_case("numbers", one)
        if early.verdict != "open":
            return early.verdict == "missed"
    return False


def test_a_gate_that_is_just_met_is_called_missed_in_at_most_a_twentieth_of_all_orders() -> None:
    # 100 orders: were the rate 5%, more than 11 would have a chance of 0.4%.
    assert sum(wrong_decision(seed) for seed in range(100)) <= 11
