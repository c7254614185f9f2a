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

__all__ = ["TargetScorer", "bleu", "contains", "exact_match", "numeric_match", "rouge_l", "token_f1"]
