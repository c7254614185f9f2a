"""docs/api.md is made from the docstrings, and is what would be made of them today."""

from __future__ import annotations

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
