"""TReB: does the model answer questions about tables, in words and by programs? See docs/treb.md."""

from collections.abc import Mapping

from evalsuite import benchmark
from evalsuite.benchmarks.treb import TREB


# The shipped samples are a demonstration, in which a small embedded model is to come to an end.
@benchmark(TREB, shipped={"max_tokens": 48, "context": 2048})
def test_treb(scores: Mapping[str, float]) -> None:
    # The sharpest metric that the question has: a rule or a number is met or not; of words, half must be there.
    sharpest = next(name for name in ("instruction_following", "exact_match", "judge", "rouge_l") if name in scores)
    assert scores[sharpest] >= {"judge": 0.6, "rouge_l": 0.5}.get(sharpest, 1.0)
