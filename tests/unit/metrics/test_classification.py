from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalsuite.metrics.classification import (
    compute_area_under_roc,
    compute_calibration_error,
    compute_label_f1,
    compute_macro_f1,
    compute_micro_f1,
    compute_reliability_bins,
)

TARGETS = ["cat", "cat", "cat", "dog", "dog", "emu"]
LABELS = ["cat", "cat", "dog", "dog", "", "cat"]


def test_f1_by_hand() -> None:
    # cat: 2 right, 3 wanted, 3 given; dog: 1 right, 2 wanted, 2 given; emu: never given.
    assert compute_label_f1(TARGETS, LABELS) == {"cat": 4 / 6, "dog": 2 / 4, "emu": 0.0}
    assert compute_macro_f1(TARGETS, LABELS) == pytest.approx((4 / 6 + 2 / 4) / 3)
    # 3 right of 6 targets and 5 named labels.
    assert compute_micro_f1(TARGETS, LABELS) == pytest.approx(6 / 11)


def test_area_under_roc_by_hand() -> None:
    # Of the 2 x 3 pairs 0.8 wins three; 0.4 wins one, ties one, loses one.
    assert compute_area_under_roc([0.8, 0.4, 0.4, 0.1, 0.6], [True, True, False, False, False]) == pytest.approx(
        4.5 / 6
    )


def test_calibration_error_by_hand() -> None:
    confidences, right = [0.95, 0.95, 0.15, 0.15], [1.0, 0.0, 0.0, 0.0]
    assert compute_reliability_bins(confidences, right) == [(0.15, 0.0, 2), (0.95, 0.5, 2)]
    assert compute_calibration_error(confidences, right) == pytest.approx((2 * 0.15 + 2 * 0.45) / 4)


@pytest.mark.parametrize("wrong", [-0.1, 1.1])
def test_a_confidence_is_a_probability(wrong: float) -> None:
    with pytest.raises(ValueError, match="not in"):
        compute_reliability_bins([wrong], [1.0])


labels = st.sampled_from(["a", "b", "c"])


@given(st.lists(st.tuples(labels, labels), min_size=1))
def test_micro_f1_is_accuracy_where_every_answer_names_a_label(pairs: list[tuple[str, str]]) -> None:
    targets, said = zip(*pairs, strict=True)
    accuracy = sum(target == label for target, label in pairs) / len(pairs)
    assert compute_micro_f1(targets, said) == pytest.approx(accuracy)
    assert 0 <= compute_macro_f1(targets, said) <= 1


@given(st.lists(st.tuples(st.integers(0, 5), st.booleans()), min_size=2))
def test_ranking_the_other_way_round_mirrors_the_area(pairs: list[tuple[int, bool]]) -> None:
    scores, marks = zip(*pairs, strict=True)
    if 0 < sum(marks) < len(marks):
        mirrored = compute_area_under_roc([-score for score in scores], marks)
        assert compute_area_under_roc(scores, marks) == pytest.approx(1 - mirrored)
