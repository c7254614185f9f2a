"""Head-to-Tail: what does the model know, of the popular and of the rest? See docs/head_to_tail.md."""

from collections.abc import Mapping

from evalsuite import benchmark
from evalsuite.benchmarks.head_to_tail import HEAD_TO_TAIL


@benchmark(HEAD_TO_TAIL)
def test_head_to_tail(scores: Mapping[str, float]) -> None:
    # Of one question no more can be said; what a model has to reach over all of them is a gate's to say.
    assert scores["accuracy"] == 1.0
