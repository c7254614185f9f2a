"""The ready-made scorers compare an answer with its sample's target."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from evalsuite.core.errors import ScoringError
from evalsuite.core.types import Sample, Target, Transcript
from evalsuite.scorers import answers as scorers

Factory = Callable[[], scorers.TargetScorer]
FACTORIES: tuple[Factory, ...] = (
    scorers.exact_match,
    scorers.contains,
    scorers.token_f1,
    scorers.rouge_l,
    scorers.bleu,
    scorers.numeric_match,
)
each_factory = pytest.mark.parametrize("factory", FACTORIES, ids=lambda factory: factory().name)


def sample(target: Target) -> Sample:
    return Sample(id="one", input="?", target=target)


@each_factory
def test_a_scorer_gives_one_score_named_like_its_factory(factory: Factory) -> None:
    assert factory()(sample("42"), Transcript("42")) == {factory().name: 1.0}


@each_factory
def test_a_wrong_answer_scores_zero_and_any_of_several_targets_will_do(factory: Factory) -> None:
    scorer = factory()
    assert scorer(sample("42"), Transcript("17"))[scorer.name] == 0.0
    assert scorer(sample(["1", 42]), Transcript("42"))[scorer.name] == 1.0  # type: ignore[list-item] # numbers in files


@each_factory
@pytest.mark.parametrize("target", [None, [], ()])
def test_a_sample_without_target_is_an_error_that_names_it(factory: Factory, target: Target) -> None:
    with pytest.raises(ScoringError, match="'one' has no target"):
        factory()(sample(target), Transcript("42"))


@each_factory
def test_a_scorer_can_travel_to_another_process(factory: Factory) -> None:
    travelled = pickle.loads(pickle.dumps(factory()))
    assert travelled(sample("42"), Transcript("42")) == {factory().name: 1.0}


@pytest.mark.parametrize(
    ("target", "answer"), [(Decimal("1.50"), "1.50"), (date(2026, 11, 29), "2026-11-29"), (np.int64(42), "42")]
)
@pytest.mark.parametrize("factory", [scorers.exact_match, scorers.contains, scorers.token_f1, scorers.rouge_l])
def test_a_target_may_be_a_value_as_columns_of_parquet_and_pandas_have_it(
    factory: Factory, target: Any, answer: str
) -> None:
    assert factory()(sample(target), Transcript(answer)) == {factory().name: 1.0}
