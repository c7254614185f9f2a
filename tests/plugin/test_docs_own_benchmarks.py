"""Every example of docs/own_benchmarks.md, run as it stands."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.plugin.conftest import Suite

PAGE = Path(__file__).parents[2] / "docs" / "own_benchmarks.md"
SECTION = re.compile(r"^## ([^\n]+)\n(?:(?!^## ).)*?^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
EXAMPLES = dict(SECTION.findall(PAGE.read_text("utf-8")))
APP = """
import json

def echo(messages, tools=None):
    if tools:
        function = {"name": "find", "arguments": json.dumps({"city": "Oslo", "guests": 2})}
        return {"content": "", "tool_calls": [{"id": "", "function": function}]}
    content = messages[-1]["content"]
    return content if isinstance(content, str) else content[0]["text"]
"""


def test_the_page_has_its_examples() -> None:
    assert len(EXAMPLES) == 5


@pytest.mark.parametrize("heading", EXAMPLES)
def test_an_example_runs(suite: Suite, heading: str) -> None:
    (suite.path / "test_capitals.py").write_text(EXAMPLES[heading], encoding="utf-8")
    (suite.path / "app.py").write_text(APP, encoding="utf-8")
    result = suite.run()
    result.assert_outcomes(
        passed=2 if "load_samples" in EXAMPLES[heading] or "macro" in EXAMPLES[heading] else 1
    )
