"""ToolEyes: does the model think, call tools and answer as it should? See docs/tool_eyes.md."""

from collections.abc import Mapping

from evalsuite import benchmark
from evalsuite.benchmarks.tool_eyes import TOOL_EYES


# The shipped queries are a demonstration, in which a small embedded model is to come to an end.
@benchmark(TOOL_EYES, shipped={"queries": 1, "patience": 2, "max_tokens": 128})
def test_tool_eyes(scores: Mapping[str, float]) -> None:
    # An episode is good where it came to an end and every call on the way could be made.
    assert scores["finished"] == 1.0
    assert scores["reality"] == 1.0
