"""Claude Code, Codex and Gemini CLI, where they are installed: the run's model answers, their tools run here."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.plugin.conftest import Suite

MODEL = """
import json

SHELLS = ("Bash", "exec_command", "run_shell_command")

async def answer(messages, tools=()):
    results = [message["content"] for message in messages if message["role"] == "tool"]
    if results:
        return f"The file says: {results[-1]}"
    function = next(tool["function"] for tool in tools if tool["function"]["name"] in SHELLS)
    wanted = function["parameters"].get("required", ())
    arguments = {name: "cat word.txt" for name in wanted if name in ("command", "cmd")}
    arguments |= {"description": "Read the file"} if "description" in wanted else {}
    call = {"name": function["name"], "arguments": json.dumps(arguments)}
    return {"content": "", "tool_calls": [{"id": "call_1", "type": "function", "function": call}]}
"""

CASES = """
from evalsuite import Sample, benchmark, contains
from evalsuite.solvers import application

SAMPLES = [Sample(id="word", input="Which word is in word.txt?", target="marmalade")]
HOME = {{"HOME": "{home}", "CODEX_HOME": "{home}", "GEMINI_CLI_TRUST_WORKSPACE": "true"}}

@benchmark("agent", SAMPLES, solver=application({command!r}, env=HOME, timeout=120), scorers=[contains()])
def test_agent(scores, transcript):
    assert scores["contains"] == 1.0
    assert len([event for event in transcript.events if event["kind"] == "call"]) == 1
    assert transcript.facts["left_out"]
"""

PROVIDER = "model_providers.evalsuite"
AGENTS = {
    "claude": ["claude", "-p", "{input}", "--allowedTools", "Bash"],
    "codex": [
        *("codex", "exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"),
        *("-c", "web_search=disabled", "-c", "features.multi_agent=false"),
        *("-c", "model_provider=evalsuite", "-c", f"{PROVIDER}.name=evalsuite"),
        *("-c", f"{PROVIDER}.base_url={{base_url}}", "-c", f"{PROVIDER}.env_key=OPENAI_API_KEY"),
        *("-m", "gpt-4", "{input}"),
    ],
    "gemini": ["gemini", "-p", "{input}", "--yolo", "-m", "gemini-2.5-pro"],
}


@pytest.mark.parametrize("name", AGENTS)
def test_an_agent_of_the_command_line_is_answered_by_the_runs_model(suite: Suite, name: str) -> None:
    if shutil.which(name) is None:
        pytest.skip(f"{name} is not installed")
    home = suite.path / "home"
    (home / ".gemini").mkdir(parents=True)
    (home / ".gemini" / "settings.json").write_text('{"security": {"auth": {"selectedType": "gemini-api-key"}}}')
    (suite.path / "word.txt").write_text("marmalade")
    (suite.path / "scripted_agent.py").write_text(MODEL)
    (suite.path / "test_capitals.py").write_text(CASES.format(home=home, command=AGENTS[name]))
    suite.model = ("--model=function:scripted_agent:answer",)
    suite.run().assert_outcomes(passed=1)
