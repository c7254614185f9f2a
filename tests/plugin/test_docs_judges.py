"""The example of docs/judges.md runs as it stands there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.plugin.conftest import Suite

PAGE = Path(__file__).parents[2] / "docs" / "judges.md"
JUDGE = """
import json

def judge(messages):
    asked = messages[-1]["content"]
    reason = {"reason": "so it is"}
    if '"items"' in asked:
        score = "yes" if '"yes" or "no"' in asked else 5
        return json.dumps({"items": [{"claim": "c", "turn": "1", "score": score, **reason}]})
    if '"answers"' in asked:
        return json.dumps({"answers": [{"criterion": at, "verdict": "yes", **reason} for at in (1, 2)]})
    if '"score"' in asked:
        return json.dumps({"score": 4, **reason})
    return json.dumps({"verdict": "yes", **reason})
"""


def test_a_rubric_of_every_kind_scores_a_case(suite: Suite) -> None:
    (example,) = [
        code
        for code in re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
        if "rubric(" in code
    ]
    (suite.path / "test_capitals.py").unlink()
    suite.pytester.makepyfile(test_explains=example, judges=JUDGE)
    suite.run("--judge-model=function:judges:judge").assert_outcomes(passed=1)
    (record,) = suite.records()
    assert record["scores"] == {
        "plain": 1.0,
        "clear": 4.0,
        "list": 1.0,
        "tree": 2.0,
        "calls": 1.0,
        "faithful": 1.0,
        "relevant": 4.0,
        "factual": 1.0,
        "follows": 1.0,
        "conversation": 5.0,
    }
    assert record["notes"]["plain"] == "so it is"
    assert record["facts"]["plain"]["signature"].startswith("rubric|judge:function:judges:judge|")
