"""Suites of cases in folders of their own, run by real pytest sessions."""

from __future__ import annotations

import html
import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from tests.imported_first import import_all

# The fixtures of tests about releases.
from tests.plugin.forty_numbers import baseline, numbers, parallel  # noqa: F401

if TYPE_CHECKING:
    from pathlib import Path

import_all()

CAPITALS = """
from evalsuite import Sample, benchmark, exact_match, generate

SAMPLES = [
    Sample(id="fr", input="Paris", target="Paris", tags={"region": "eu"}),
    Sample(id="it", input="Rome", target="Rome", tags={"region": "eu"}),
    Sample(id="jp", input="Osaka", target="Tokyo", tags={"region": "asia"}),
]

@benchmark("capitals", SAMPLES, solver=generate(max_tokens=8), scorers=[exact_match()])
def test_capitals(scores):
    assert scores["exact_match"] == 1.0
"""

APP = """
def echo(messages):
    return messages[-1]["content"]
"""


@dataclass
class Suite:
    """A suite of cases.

    Attributes:
        pytester: runs it.
        model: options that name the model.
    """

    pytester: pytest.Pytester
    model: tuple[str, ...] = ("--model=function:app:echo",)

    @property
    def path(self) -> Path:
        return self.pytester.path

    def run(self, *args: str, model: bool = True, fresh: bool = False) -> pytest.RunResult:
        """Runs it; `fresh` in a process of its own, as any with workers."""
        further = ("-ppytest_rerunfailures",) if any("--reruns" in arg for arg in args) else ()
        given = [*further, *(self.model if model else ()), *args]
        workers = any(re.fullmatch(r"-n\s*[1-9]\d*", " ".join(pair)) for pair in zip(("", *given), given, strict=False))
        apart = fresh or workers or any(re.fullmatch(r"-n[1-9]\d*", arg) for arg in given)
        if apart:
            return self.pytester.runpytest_subprocess(*given)
        return self.pytester.runpytest_inprocess(*given)

    def start(self, *args: str, stdout: int = subprocess.DEVNULL) -> Any:
        """Begins a session that goes on beside the test, which ends or awaits it."""
        command = [sys.executable, "-mpytest", *self.model, *args]
        return self.pytester.popen(command, stdout=stdout, stderr=subprocess.DEVNULL)

    def runs(self) -> list[Path]:
        return sorted(self.path.glob("reports/*"), key=lambda folder: folder.stat().st_mtime_ns)

    def records(self, run: str | None = None) -> list[dict[str, Any]]:
        folder = self.path / "reports" / run if run else self.runs()[-1]
        lines = (folder / "records.jsonl").read_text("utf-8").splitlines()
        return sorted((json.loads(line) for line in lines), key=lambda record: record["case"])

    def summary(self) -> dict[str, Any]:
        summary: dict[str, Any] = json.loads((self.runs()[-1] / "summary.json").read_text("utf-8"))
        return summary

    def report(self, run: str | None = None) -> str:
        folder = self.path / "reports" / run if run else self.runs()[-1]
        return (folder / "report.md").read_text("utf-8")

    def rendered(self, run: str | None = None) -> str:
        """The report as its reader sees it, without Markdown's escapes."""
        return html.unescape(re.sub(r"\\(.)", r"\1", self.report(run)))


@pytest.fixture
def suite(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Suite:
    """Three cases about capitals, one of which the echoing model gets wrong."""
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "GITHUB_STEP_SUMMARY"):
        monkeypatch.delenv(name, raising=False)
    # Modules of other tests' suites must not stand in for this one's.
    monkeypatch.syspath_prepend(pytester.path)
    pytester.makeconftest('pytest_plugins = ["evalsuite.plugin"]')
    pytester.makepyfile(test_capitals=CAPITALS, app=APP)
    pytester.makepyprojecttoml("[tool.pytest]\nstrict = true\nfilterwarnings = ['error']\n")
    assert os.getcwd() == str(pytester.path)  # noqa: PTH109 - what pytester promises
    return Suite(pytester)


@pytest.fixture(params=[(), ("-n", "0"), ("-n", "2")], ids=["plain", "n0", "n2"])
def workers(request: pytest.FixtureRequest) -> tuple[str, ...]:
    """Without xdist's option, with none of its workers, and with two."""
    chosen: tuple[str, ...] = request.param
    return chosen
