"""Ready-made scorers: each compares the answer with the sample's target and gives one score of its name."""

from evalsuite.scorers.targets import (
    TargetScorer,
    bleu,
    contains,
    exact_match,
    numeric_match,
    rouge_l,
    token_f1,
)
from evalsuite.scorers.unit_tests import PassesTests, passes_tests

__all__ = [
    "PassesTests",
    "TargetScorer",
    "bleu",
    "contains",
    "exact_match",
    "numeric_match",
    "passes_tests",
    "rouge_l",
    "token_f1",
]
