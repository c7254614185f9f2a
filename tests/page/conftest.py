"""Pages of made-up runs, opened from the disk in a real browser."""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import pytest

from evalsuite.core.json_codec import dumps, encode_record
from evalsuite.core.types import Metric, Record, Transcript, Usage
from evalsuite.output.reports.compare import write_comparison
from evalsuite.output.reports.write import write_run_report
from evalsuite.results.run_folders import RunFolder
from evalsuite.results.runs import INSTALLED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path

    from playwright.sync_api import Browser, Page

ARGUMENTS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip
WHERE = "the tests of report.html need Debian's chromium: apt-get install -y chromium"


def chromium() -> str | None:
    return shutil.which("chromium") or shutil.which("chromium-browser")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    skipped = [one for one in terminalreporter.getreports("skipped") if WHERE in str(one.longrepr)]
    if skipped:
        terminalreporter.write_line(f"{len(skipped)} tests were skipped: {WHERE}", yellow=True, bold=True)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    path = chromium()
    if path is None:
        pytest.skip(WHERE)
    from playwright.sync_api import sync_playwright

    # As long as a module: the event loop that it keeps would be in the way of others.
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=path, args=list(ARGUMENTS))
        yield opened
        opened.close()


@pytest.fixture
def tab(browser: Browser) -> Iterator[Page]:
    """A tab that fails the test if a script fails in it, or if anything leaves the page."""
    context = browser.new_context(viewport={"width": 1280, "height": 800}, locale="en-US")
    page = context.new_page()
    trouble: list[str] = []
    page.on("pageerror", lambda error: trouble.append(f"script failed: {error}"))
    page.on("console", lambda line: trouble.append(line.text) if line.type == "error" else None)
    context.on("request", lambda sent: None if is_local(sent.url) else trouble.append(f"request: {sent.url}"))
    yield page
    context.close()
    assert not trouble


def is_local(url: str) -> bool:
    return url.startswith(("file:", "about:", "data:", "blob:"))


def record(sample: str, **fields: Any) -> Record:
    """A case of the benchmark `capitals`."""
    answer = fields.pop("answer", "Paris")
    plain: dict[str, Any] = {
        "case": f"cases/test_capitals.py::test_capitals[{sample}]",
        "benchmark": "capitals",
        "sample": sample,
        "epoch": 1,
        "model": "function:toy",
        "outcome": "passed",
        "scores": {"exact_match": 1.0},
        "input": f"What is the capital of {sample}?",
        "target": "Paris",
        "usage": Usage(1, 20, 3, 0.0001),
        "seconds": 0.5,
        "transcript": Transcript(answer),
    }
    return Record(**(plain | fields))


@pytest.fixture
def make_record() -> Callable[..., Record]:
    return record


@pytest.fixture
def make_run(tmp_path: Path, without_pictures: None) -> Callable[..., RunFolder]:
    """Writes a run's records, and all that is made of them."""

    def make(
        name: str,
        records: Iterable[Record],
        *,
        metrics: Mapping[str, Mapping[str, Metric]] | None = None,
        **settings: Any,
    ) -> RunFolder:
        folder = RunFolder(tmp_path / name)
        folder.path.mkdir()
        lines = "".join(f"{dumps(encode_record(one))}\n" for one in records)
        (folder.path / "records.jsonl").write_text(lines, "utf-8")
        info = {"model": "function:toy", "started": "2026-01-02T03:04:05+00:00", "seconds": 1.0}
        folder.write_info(
            info
            | {"command": "pytest cases/", "settings": settings, "versions": {"python": "3"}}
            | {"metrics": {name: _encoded(own) for name, own in (metrics or {}).items()}}
        )
        write_run_report(folder, INSTALLED)
        return folder

    return make


def _encoded(metrics: Mapping[str, Metric]) -> dict[str, Any]:
    return {name: asdict(metric) for name, metric in metrics.items()}


@pytest.fixture
def compare(tmp_path: Path) -> Callable[..., Path]:
    """Writes the comparison of runs; the page's path."""

    def write(*folders: RunFolder) -> Path:
        write_comparison(folders, tmp_path / "compared", INSTALLED)
        return tmp_path / "compared" / "comparison.html"

    return write


def summary(folder: RunFolder) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder.path / "summary.json").read_text("utf-8"))
    return found


@pytest.fixture
def open_page(tab: Page) -> Callable[..., Page]:
    """Opens a run's page, or another, from the disk."""

    def opened(place: RunFolder | Path, address: str = "") -> Page:
        file = place.path / "report.html" if isinstance(place, RunFolder) else place
        tab.goto(f"{file.as_uri()}{address}")
        if address.startswith("#cases"):
            tab.wait_for_selector("#tallies strong")
        return tab

    return opened
