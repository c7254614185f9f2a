"""When a whole run may stop early, and what the gates of a run are told."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalsuite.decisions.early_stops import EarlyDecider, EarlyGate, compute_final_confidence
from evalsuite.decisions.gates import parse_gate
from evalsuite.results.tally import Row
from evalsuite.stats import share_interval

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evalsuite.core.types import Outcome

RIGHT, PASS_RATE = "numbers.right >= 0.5", "numbers.pass_rate >= 0.5"


def row(number: int, score: float = 1.0, outcome: Outcome = "passed", **tags: str) -> Row:
    return Row(f"s{number}", f"s{number}", 1, outcome, tags, {"right": score})


def run(*gates: str) -> EarlyDecider:
    return EarlyDecider([parse_gate(gate) for gate in gates])


def verdict(gate: str, rows: Sequence[Row]) -> str:
    early = EarlyGate(parse_gate(gate))
    for one in rows:
        early.add_case("numbers", one)
    return early.verdict


def test_a_run_without_gates_or_without_cases_is_never_decided() -> None:
    empty = run()
    empty.add_case("numbers", row(1))
    assert not empty.decided
    assert not run(RIGHT).decided


def test_a_case_that_ran_twice_is_no_second_piece_of_evidence() -> None:
    stop = run(RIGHT)
    for _ in range(100):
        stop.add_case("numbers", row(1))
    assert not stop.decided


def test_cases_that_end_after_the_decision_change_nothing() -> None:
    stop = run(RIGHT)
    for number in range(100):
        stop.add_case("numbers", row(number))
    decided = stop.gates[0].verdict
    for number in range(100, 200):
        stop.add_case("numbers", row(number, 7.0))
    assert (stop.gates[0].verdict, decided) == ("met", "met")


def test_a_run_goes_on_as_long_as_one_gate_is_open() -> None:
    stop = run(RIGHT, "letters.right >= 0.5")
    for number in range(100):
        stop.add_case("numbers", row(number))
    assert [gate.verdict for gate in stop.gates] == ["met", "open"]
    assert not stop.decided
    for number in range(100):
        stop.add_case("letters", row(number, 0.0))
    assert [gate.verdict for gate in stop.gates] == ["met", "missed"]
    assert stop.decided, "a missed gate is a decided one"


def test_the_share_of_passed_cases_leaves_errors_and_skipped_cases_out() -> None:
    passed, failed = ([row(n, outcome=outcome) for n in range(40)] for outcome in ("passed", "failed"))
    no_outcome = [row(n, outcome=outcome) for n in range(200) for outcome in ("error", "skipped")]
    assert verdict(PASS_RATE, passed) == "met"
    assert verdict(PASS_RATE, failed) == "missed"
    assert verdict(PASS_RATE, no_outcome) == "open"
    assert verdict(PASS_RATE, [*no_outcome, *passed]) == "met"


@pytest.mark.parametrize("gate", ["numbers[eu].right >= 0.5", "numbers[region=eu].right >= 0.5"])
def test_a_gate_on_a_tag_hears_its_own_cases_alone(gate: str) -> None:
    own, other = [row(n, 0.0, region="eu") for n in range(40)], [row(n, region="us") for n in range(40)]
    assert verdict(gate, [*other, *own]) == "missed"
    assert verdict(gate, other) == "open"


def test_a_metric_that_no_case_has_decides_nothing() -> None:
    assert verdict("numbers.wrong >= 0.5", [row(n) for n in range(100)]) == "open"


@pytest.mark.parametrize("score", [1.5, -0.1])
def test_a_score_beyond_0_and_1_takes_a_decision_back(score: float) -> None:
    rows = [row(n) for n in range(100)]
    assert verdict(RIGHT, rows) == "met"
    assert verdict(RIGHT, [*rows, row(100, score), *rows]) == "open"


@settings(max_examples=30, deadline=None)
@given(st.lists(st.sampled_from([0.0, 1.0]), max_size=30), st.lists(st.floats(0, 1, exclude_max=True), max_size=10))
def test_a_score_in_between_counts_as_if_the_sequence_had_been_for_such_from_the_start(
    certain: list[float], later: list[float]
) -> None:
    from evalsuite.stats import BoundedSequence

    scores = [*certain, 0.5, *later]
    early = EarlyGate(parse_gate(RIGHT), find_range=lambda *_: (0.0, 1.0))
    plain = BoundedSequence(confidence=0.95)
    for number, score in enumerate(scores):
        early.add_case("numbers", row(number, score))
        plain.add(score)
    above, below = plain.low >= 0.5, plain.high < 0.5
    assert early.verdict == ("met" if above else "missed" if below else "open")


@pytest.mark.parametrize(("gate", "score"), [("numbers.right > 0.99", 1.0), ("numbers.right >= 0.5 @99.9%", 1.0)])
def test_the_stricter_the_gate_the_more_cases_it_takes(gate: str, score: float) -> None:
    def needed(text: str) -> int:
        early = EarlyGate(parse_gate(text))
        for number in range(2000):
            early.add_case("numbers", row(number, score))
            if early.verdict != "open":
                return number
        return 2000

    assert needed(gate) > needed("numbers.right >= 0.5 @95%")


def test_epoch_after_epoch_of_the_same_samples_decides_wrongly_at_most_as_often_as_promised() -> None:
    # A third is always right, a third never, a third now and then: 0.5 in all, which is the gate's own threshold.
    rng, repetitions, wrong = random.Random(5), 300, 0
    chances = [0.0, 0.5, 1.0] * 10
    for _ in range(repetitions):
        gate = EarlyGate(parse_gate("numbers.right > 0.5"))
        for epoch in range(1, 6):
            for number in rng.sample(range(30), 30):
                score = float(rng.random() < chances[number])
                gate.add_case("numbers", replace(row(number, score), epoch=epoch))
                if gate.verdict != "open":
                    break
            if gate.verdict != "open":
                break
        # Here "missed" is right, as 0.5 is not above 0.5, and only "met" is wrong.
        wrong += gate.verdict == "met"
    assert wrong / repetitions <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / repetitions)


def test_a_gate_is_not_decided_early_by_low_scores_of_a_range_beyond_one() -> None:
    zeros = [row(number, 0.0) for number in range(300)]
    declared = {"tenfold": (0.0, 10.0), "half": (0.0, 0.5), "unknown": None}
    found = {}
    for benchmark in declared:
        gate = EarlyGate(parse_gate(f"{benchmark}.right <= 0.2"), find_range=lambda name, _: declared[name])
        for one in zeros:
            gate.add_case(benchmark, one)
        found[benchmark] = gate.verdict
    assert found == {"tenfold": "open", "half": "met", "unknown": "met"}


def test_scores_without_a_declared_range_are_decided_early_only_if_they_are_0_or_1() -> None:
    scores = [(number % 2) * 0.05 for number in range(200)]
    found = {}
    for bounds in (None, (0.0, 1.0)):
        gate = EarlyGate(parse_gate("qa.right <= 0.2"), find_range=lambda *_, bounds=bounds: bounds)
        for number, score in enumerate(scores):
            gate.add_case("qa", row(number, score))
        found[bounds] = gate.verdict
    assert found == {None: "open", (0.0, 1.0): "met"}


def test_more_samples_help_what_hears_them() -> None:
    point, bound, marks = (EarlyGate(parse_gate(f"numbers.right >= 0.5{at}")) for at in ("", " @95%", ""))
    for gate in (point, bound):
        gate.add_case("numbers", row(1))
    marks.add_case("numbers", row(1, 7.0))
    assert [gate.can_use_more_samples for gate in (point, bound, marks)] == [True, True, False]
    assert [gate.can_use_more_epochs for gate in (point, bound, marks)] == [True, False, False]


def test_going_on_while_a_gate_is_open_meets_it_falsely_no_more_often_than_it_says() -> None:
    gate, met, runs = parse_gate("numbers.right >= 0.8 @95%"), 0, 120
    for seed in range(runs):
        rng, stop, values = random.Random(seed), EarlyDecider([gate]), list[float]()
        # Twenty samples, and on while it is open, as far as the money goes.
        while len(values) < 200 and not stop.decided:
            values.append(float(rng.random() < 0.8))
            stop.add_case("numbers", row(len(values), values[-1]))
        if stop.decided:
            met += stop.gates[0].verdict == "met"
        else:
            met += share_interval(values, confidence=compute_final_confidence(0.95)).low >= 0.8
    # 2.5% and three standard errors of 120 runs.
    assert met / runs <= 0.068
