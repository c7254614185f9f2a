"""Makes the pictures of the docs from a real run: the embedded model, a pseudo terminal, headless chromium.

    uv run --with pyte python docs/pictures/make.py

It asks docs/ci/cases at temperature 1, holds the answers against reports/baseline, and takes about a minute on a
quiet machine.
"""

from __future__ import annotations

import html
import shutil
import sys
from pathlib import Path
from typing import Any

import pexpect
import pyte
from playwright.sync_api import Page, sync_playwright

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
COLUMNS, LINES = 104, 27
NAME = "warmer"
OPTIONS = (
    "docs/ci/cases", "--model=local:smollm2", "--model-param=temperature=1", "--model-param=seed=1",
    f"--run={NAME}", "--baseline=reports/baseline", "--gate=capitals.contains >= 0.6",
)  # fmt: skip
QUIET = (
    "--no-header",
    "-pno:hypothesispytest",
    "-pno:anyio",
    "-pno:langsmith_plugin",
    "-pno:rerunfailures",
    "-pno:cacheprovider",
)
"""What is about this environment and not the subject."""

COLOURS = {
    "default": "#d7dae0", "black": "#5c6370", "red": "#e38d83", "green": "#7cc09c", "brown": "#d9ae5c",
    "blue": "#86b1de", "magenta": "#d296b7", "cyan": "#7fc7cf", "white": "#ffffff",
}  # fmt: skip
STYLE = """
body { margin: 0; background: #16181b; display: inline-block; }
pre { margin: 0; padding: 18px 22px; font: 14px/1.45 "DejaVu Sans Mono", monospace; color: #d7dae0; }
"""
ARGUMENTS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking")


def run() -> tuple[str, str]:
    """Runs the cases; what the terminal shows in their midst and at the end, as HTML."""
    screen = pyte.HistoryScreen(COLUMNS, LINES, history=200, ratio=1)
    stream = pyte.Stream(screen)
    child = pexpect.spawn(
        sys.executable,
        ["-m", "pytest", *OPTIONS, *QUIET],
        cwd=str(ROOT),
        encoding="utf-8",
        timeout=1200,
        dimensions=(LINES, COLUMNS),
    )
    midst = ""
    while True:
        try:
            stream.feed(child.read_nonblocking(4096, timeout=1200))
        except pexpect.EOF:
            break
        if not midst and any(" left" in line and "evalsuite 2" in line for line in screen.display):
            midst = drawn(screen)
    return midst, drawn(screen)


def drawn(screen: Any) -> str:
    """The screen as HTML, without empty lines below."""
    rows = ["".join(cell(screen.buffer[y][x]) for x in range(COLUMNS)) for y in range(LINES)]
    while rows and not rows[-1].strip():
        rows.pop()
    text = "\n".join(row.rstrip() for row in rows)
    return f"<!doctype html><meta charset=utf-8><style>{STYLE}</style><pre>{text}</pre>"


def cell(character: Any) -> str:
    """One cell of the screen."""
    if character.fg == "default" and not character.bold:
        return html.escape(character.data)
    weight = ";font-weight:700" if character.bold else ""
    return f'<span style="color:{COLOURS.get(character.fg, character.fg)}{weight}">{html.escape(character.data)}</span>'


def picture_of_terminal(tab: Page, text: str, name: str) -> None:
    """A picture of what a terminal showed."""
    tab.set_content(text)
    tab.locator("body").screenshot(path=HERE / f"{name}.png")


def pictures_of_page(tab: Page, page: Path) -> None:
    """The first screen, and the list of cases with one of them open."""
    tab.goto(page.as_uri())
    tab.wait_for_selector("#part-facts")
    top = tab.locator("#part-benchmarks").bounding_box() or {}
    tab.screenshot(path=HERE / "report.png", clip={"x": 0, "y": 0, "width": 1180, "height": top["y"] + 130})
    tab.goto(f"{page.as_uri()}#cases?changed=lost")
    tab.wait_for_selector(".line.row")
    tab.locator(".line.row").nth(1).click()
    tab.wait_for_selector(".case-body")
    tab.screenshot(path=HERE / "cases.png")


def main() -> None:
    """Runs, and takes the pictures."""
    folder = ROOT / "reports" / NAME
    shutil.rmtree(folder, ignore_errors=True)
    midst, end = run()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=list(ARGUMENTS))
        tab = browser.new_page(viewport={"width": 1180, "height": 760}, locale="en-GB")
        picture_of_terminal(tab, midst, "live")
        picture_of_terminal(tab, end, "terminal")
        pictures_of_page(tab, folder / "report.html")
        browser.close()
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
