"""What the guides tell people to run can be run: every workflow is YAML, every option exists."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from evalsuite.cli import parse_command

DOCS = Path(__file__).parents[2] / "docs"
WORKFLOWS = ("ci/github.yml", "ci/gitlab.yml")
GUIDES = ("ci.md", "scaling.md", "developers.md")


def texts_in(value: Any) -> list[str]:
    """All strings of a parsed workflow."""
    if isinstance(value, dict):
        return [text for one in value.values() for text in texts_in(one)]
    if isinstance(value, list):
        return [text for one in value for text in texts_in(one)]
    return [value] if isinstance(value, str) else []


def lines_of(name: str) -> list[str]:
    text = (DOCS / name).read_text("utf-8")
    if name.endswith(".yml"):
        return [line for one in texts_in(yaml.safe_load(text)) for line in one.splitlines()]
    blocks = re.findall(r"^```bash\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    return [line for block in blocks for line in block.splitlines()]


def commands(name: str, program: str) -> list[list[str]]:
    """The arguments of each call of a program in a guide or workflow."""
    found = []
    for line in lines_of(name):
        # What a forge fills in stands for some value.
        filled = re.sub(r"\$\{\{.*?\}\}|\$\w+", "1", line.strip())
        if filled.startswith(f"{program} "):
            found.append(shlex.split(filled, comments=True)[1:])
    return found


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """The options that pytest has with the plugin."""
    folder = tmp_path_factory.mktemp("suite")
    command = [sys.executable, "-m", "pytest", "-p", "evalsuite.plugin", "--help"]
    shown = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout
    return set(re.findall(r"(?<![\w-])--?[a-z][\w-]*", shown))


@pytest.mark.parametrize("name", [*WORKFLOWS, *GUIDES])
def test_every_option_of_pytest_in_the_guides_exists(name: str, known: set[str]) -> None:
    given = commands(name, "pytest")
    assert given
    options = {re.split("[= ]", word)[0] for words in given for word in words if word.startswith("-")}
    assert options
    assert options <= known


@pytest.mark.parametrize("name", [*WORKFLOWS, "ci.md"])
def test_every_call_of_evalsuite_in_the_guides_can_be_parsed(name: str) -> None:
    given = commands(name, "evalsuite")
    assert given
    for words in given:
        assert parse_command(words).run


def test_the_github_workflow_asks_for_all_shards_and_blocks_by_its_gate() -> None:
    workflow = yaml.safe_load((DOCS / "ci/github.yml").read_text("utf-8"))
    jobs = workflow["jobs"]
    shards = jobs["cases"]["strategy"]["matrix"]["shard"]
    assert shards == list(range(1, workflow["env"]["SHARDS"] + 1))
    assert jobs["gate"]["needs"] == "cases"
    deciding = [step["run"] for step in jobs["gate"]["steps"] if "evalsuite gate merged" in step.get("run", "")]
    assert deciding == ["evalsuite gate merged --baseline=reports/baseline --to=verdict"]
    assert workflow["permissions"]["pull-requests"] == "write"


def test_the_gitlab_pipeline_joins_what_its_parallel_jobs_leave() -> None:
    pipeline = yaml.safe_load((DOCS / "ci/gitlab.yml").read_text("utf-8"))
    assert pipeline["cases"]["parallel"] > 1
    assert "--shard=$CI_NODE_INDEX/$CI_NODE_TOTAL" in pipeline["cases"]["script"][0]
    assert pipeline["gate"]["script"][-1].startswith("evalsuite gate merged")
    assert "allow_failure" not in pipeline["gate"]
