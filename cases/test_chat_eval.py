"""ChatEval: does the model, as a judge, agree with people? See docs/chat_eval.md."""

from collections.abc import Mapping

from evalsuite import benchmark
from evalsuite.benchmarks.chat_eval import CHAT_EVAL


@benchmark(CHAT_EVAL)
def test_chat_eval(scores: Mapping[str, float]) -> None:
    # One case says whether the judge could be read and, of a comparison, whether people say the same.
    assert scores["parsed"] == 1.0
    assert scores.get("accuracy", 1.0) == 1.0
