"""People's labels in the metadata of samples."""

from __future__ import annotations

from typing import Any

import pytest

from evalsuite.core.errors import ScoringError
from evalsuite.core.types import Sample
from evalsuite.judges.judgements import check_labels, make_people_facts


@pytest.mark.parametrize(
    ("human", "label"),
    [("yes", 1.0), (" Second ", 0.0), ("tie", 0.5), ("0.25", 0.25), (3, 3.0), (True, 1.0), ({"kind": "no"}, 0.0)],
)
def test_a_label_is_a_number_or_a_word_that_means_one(human: Any, label: float) -> None:
    sample = Sample("a", "?", metadata={"human": human})
    check_labels(sample)
    assert make_people_facts(sample, ["kind"], nominal=True) == {"people": {"kind": {"label": label, "nominal": True}}}


@pytest.mark.parametrize("human", [None, {}, "perhaps", "nan", float("inf"), [1], {"kind": None}])
def test_what_is_no_label_is_refused_with_the_sample(human: Any) -> None:
    with pytest.raises(ScoringError, match="sample a has"):
        check_labels(Sample("a", "?", metadata={"human": human}))


@pytest.mark.parametrize("human", ["first", " Second ", "tie"])
def test_the_label_of_a_comparison_is_not_a_label_of_a_single_answer(human: str) -> None:
    assert make_people_facts(Sample("a", "?", metadata={"human": human}), ["kind"], scale=(1.0, 5.0)) == {}


def test_a_label_off_the_judges_scale_is_refused() -> None:
    with pytest.raises(ScoringError, match=r"label 7 under 'human' .* from 1 to 5"):
        make_people_facts(Sample("a", "?", metadata={"human": 7}), ["kind"], scale=(1.0, 5.0))


@pytest.mark.parametrize("human", ["yes", "No", True, {"kind": "tie"}])
def test_a_word_is_not_a_mark_on_a_scale_beyond_1(human: Any) -> None:
    sample = Sample("a", "?", metadata={"human": human})
    with pytest.raises(ScoringError, match=r"kind has a scale from 0 to 10: give a number on it, or a mapping"):
        make_people_facts(sample, ["kind"], scale=(0.0, 10.0))
    assert make_people_facts(sample, ["kind"], scale=(-1.0, 1.0))["people"]["kind"]["scale"] == [-1.0, 1.0]
