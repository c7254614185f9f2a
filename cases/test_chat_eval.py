"""ChatEval: does the model, as a judge, agree with people? See docs/chat_eval.md."""

from collections.abc import Mapping

from evalsuite import benchmark
from evalsuite.benchmarks.chat_eval import CHAT_EVAL


# On the shipped samples a small embedded model judges: a verdict as JSON needs few tokens, and is not asked again.
@benchmark(CHAT_EVAL, shipped={"attempts": 1, "params": {"max_tokens": 96}})
def test_chat_eval(scores: Mapping[str, float]) -> None:
    # One case says whether the judge could be read and, of a comparison, whether people say the same.
    assert scores["parsed"] == 1.0
    assert scores.get("accuracy", 1.0) == 1.0
