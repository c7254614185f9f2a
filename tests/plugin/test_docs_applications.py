"""Every example of docs/applications.md, run as it stands, then replayed without the model."""

from __future__ import annotations

import importlib.util
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.plugin.conftest import Suite

PAGE = Path(__file__).parents[2] / "docs" / "applications.md"
SECTION = re.compile(r"^## ([^\n]+)\n(?:(?!^## ).)*?^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
EXAMPLES = dict(SECTION.findall(PAGE.read_text("utf-8")))
NEEDS = {"pydantic-ai": "pydantic_ai", "openai-agents": "agents", "langgraph": "langgraph"}
APP = """
import json

def echo(messages, tools=None):
    last = messages[-1]
    if tools and last["role"] == "user":
        function = {"name": "weather", "arguments": json.dumps({"city": last["content"]})}
        return {"content": "", "tool_calls": [{"id": "", "function": function}], "finish_reason": "tool_calls"}
    return last["content"]
"""


def test_the_page_has_its_examples() -> None:
    assert len(EXAMPLES) == 7


@pytest.mark.parametrize("heading", EXAMPLES)
def test_an_example_runs_and_is_replayed(suite: Suite, heading: str) -> None:
    package = NEEDS.get(heading)
    if package and importlib.util.find_spec(package) is None:
        pytest.skip(f"needs {heading}, which `uv sync` installs")
    if "language" in heading and shutil.which("node") is None:
        pytest.skip("node is not installed: apt-get install nodejs")
    (suite.path / "test_capitals.py").write_text(EXAMPLES[heading], encoding="utf-8")
    (suite.path / "app.py").write_text(APP, encoding="utf-8")
    options = ("-W", "default") if package else ()
    suite.run("--run", "first", *options, fresh=bool(package)).assert_outcomes(passed=1)
    (suite.path / "app.py").unlink()
    suite.run("--replay", "first", "--run", "again", *options, model=False, fresh=bool(package)).assert_outcomes(
        passed=1
    )
    (made,), (replayed,) = suite.records("first"), suite.records("again")
    assert made["transcript"]["messages"] == replayed["transcript"]["messages"]
