"""Every example of docs/tools.md that needs no files of others, run as it stands."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.plugin.conftest import Suite

PAGE = (Path(__file__).parents[2] / "docs" / "tools.md").read_text("utf-8")
EXAMPLES = {
    name: code
    for code in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    for name in re.findall(r"def test_(\w+)\(", code)
}
AGENT = """
import json

def agent(messages, tools=()):
    said = [message["content"] for message in messages[1:]]
    if messages[0]["content"] == "You sell tickets.":
        function = {"name": "book", "arguments": json.dumps({"city": "Oslo"})}
        call = {"content": "", "tool_calls": [{"id": "1", "type": "function", "function": function}]}
        return call if messages[-1]["role"] == "user" else "Booked."
    tool, arguments = ("finish", {"answer": "2"}) if len(said) > 1 else ("exchange_rate", {"source": "USD"})
    return f"Thought: so.\\nAction: {tool}\\nAction Input: {json.dumps(arguments)}"

def customer(messages):
    return "###END###" if any(message["role"] == "assistant" for message in messages) else "To Oslo, please."
"""


def test_every_example_is_run_by_a_test_of_this_file_but_that_over_published_files() -> None:
    assert list(EXAMPLES) == ["money", "shop", "bfcl"]
    assert PAGE.count("```python") == len(EXAMPLES)


def test_each_example_runs_by_itself(suite: Suite) -> None:
    (suite.path / "test_capitals.py").unlink()
    names = ("money", "shop")
    suite.pytester.makepyfile(tool_agent=AGENT, **{f"test_{name}": EXAMPLES[name] for name in names})
    suite.model = ("--model=function:tool_agent:agent",)
    suite.run("--user-model=function:tool_agent:customer").assert_outcomes(passed=2)
    events = [event for record in suite.records() for event in record["transcript"]["events"]]
    observed = {event["tool"]: event["observation"] for event in events if event.get("tool")}
    assert observed | {"finish": ""} == {"exchange_rate": "0.5", "book": "done", "finish": ""}
