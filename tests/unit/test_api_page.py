"""docs/api.md is what the docstrings make today, and every link of the docs leads to a file."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import evalsuite

DOCS = Path(__file__).parents[2] / "docs"


def test_the_page_is_up_to_date() -> None:
    made = subprocess.run([sys.executable, DOCS / "make_api.py", "--check"], check=False)
    assert made.returncode == 0, "the docstrings have changed: run `python docs/make_api.py`"


def test_every_public_name_has_its_entry() -> None:
    headings = {line.removeprefix("### ") for line in (DOCS / "api.md").read_text("utf-8").splitlines()}
    assert set(evalsuite.__all__) - {"__version__"} <= headings
    assert {"evalsuite.metrics.text.exact_match", "evalsuite.stats.spearman"} <= headings


def test_every_link_of_the_docs_leads_to_a_file() -> None:
    dead = [
        f"{page.name}: {target}"
        for page in (*DOCS.glob("*.md"), DOCS.parent / "README.md")
        for target in re.findall(r"\]\((?!https?:|#|mailto:)([^)#\s]+)", page.read_text("utf-8"))
        if not (page.parent / target).exists()
    ]
    assert dead == []
