"""The site's pages of options and commands are filled from the package."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from evalsuite.cli import COMMANDS
from evalsuite.core.settings import OPTIONS

ROOT = Path(__file__).parents[2]
SPEC = importlib.util.spec_from_file_location("reference_pages", ROOT / ".ci" / "reference_pages.py")
assert SPEC is not None
assert SPEC.loader is not None
pages = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(pages)


@pytest.fixture(autouse=True)
def _width(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")


def test_the_page_of_options_has_a_row_per_setting() -> None:
    shown = pages.on_page_markdown((ROOT / "docs" / "options.md").read_text("utf-8"))
    rows = [line for line in shown.splitlines() if line.startswith("| `")]
    options = sorted(OPTIONS, key=lambda option: option.per_project)
    assert [row.split("`")[1].partition("=")[0] for row in rows] == [option.shown_name for option in options]
    assert "%%" not in shown


def test_the_page_of_commands_has_a_section_per_form() -> None:
    shown = pages.on_page_markdown((ROOT / "docs" / "commands.md").read_text("utf-8"))
    headings = [line[3:] for line in shown.splitlines() if line.startswith("## ")]
    assert headings == [f"evalsuite {name} {word}".rstrip() for name, forms in COMMANDS.items() for word in forms]
