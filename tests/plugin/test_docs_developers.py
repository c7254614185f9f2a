"""Every example of docs/developers.md, run as it stands."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.plugin.conftest import Suite

PAGE = Path(__file__).parents[2] / "docs" / "developers.md"
SECTION = re.compile(r"^## ([^\n]+)\n(?:(?!^## ).)*?^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
EXAMPLES = dict(SECTION.findall(PAGE.read_text("utf-8")))
APP = r"""
import json
import re

def echo(messages, tools=None):
    if tools:
        function = {"name": "find", "arguments": json.dumps({"city": "Oslo", "guests": 2})}
        return {"content": "", "tool_calls": [{"id": "", "function": function}]}
    content = messages[-1]["content"]
    if content == "France":
        return "Paris"
    if content == "Japan":
        return "Tokyo"
    if square := re.fullmatch(r"What is (\d+) squared\?", str(content)):
        return str(int(square[1]) ** 2)
    return content if isinstance(content, str) else content[0]["text"]
"""


def test_the_page_has_its_examples() -> None:
    assert len(EXAMPLES) == 7


@pytest.mark.parametrize("heading", EXAMPLES)
def test_an_example_runs(suite: Suite, heading: str) -> None:
    (suite.path / "test_capitals.py").write_text(EXAMPLES[heading], encoding="utf-8")
    (suite.path / "app.py").write_text(APP, encoding="utf-8")
    # One has a hundred thousand samples.
    result = suite.run("--limit=2")
    several = any(name in EXAMPLES[heading] for name in ("load_samples", "macro", "LazySamples"))
    result.assert_outcomes(passed=2 if several else 1)
