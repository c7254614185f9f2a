"""Count what the package asks of a reader, beside what it was on 2026-11-22 and what it is meant to be.

python .ci/figures.py
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "evalsuite"
sys.path.insert(0, str(ROOT / "tests" / "unit"))


class Figure(NamedTuple):
    """A count, what it was when the layers were drawn, and the most that it may be."""

    name: str
    now: float
    before: float
    goal: float


def count_lines(files: list[Path]) -> int:
    """Count the lines of all files."""
    return sum(len(file.read_text("utf-8").splitlines()) for file in files)


def count_words(files: list[Path]) -> int:
    """Count the words of all files, separated by white space."""
    return sum(len(file.read_text("utf-8").split()) for file in files)


def public_names() -> int:
    """Count the names in `evalsuite.__all__`."""
    import evalsuite

    return len(evalsuite.__all__)


def figures() -> list[Figure]:
    """Measure the package and its docs."""
    import test_imports_point_one_way as layers

    from evalsuite.cli import COMMANDS
    from evalsuite.core.settings import OPTIONS

    files = sorted(PACKAGE.rglob("*.py"))
    lines = count_lines(files)
    imports = sum(len(layers.internal_imports(module)) for module in layers.MODULES)
    pages = [page for page in (ROOT / "docs").rglob("*.md") if page.name != "api.md"]
    return [
        Figure("files of the package", len(files), 658, 360),
        Figure("lines of the package", lines, 75_038, 62_000),
        Figure("circles of files", len(layers.circles()), 8, 0),
        Figure("internal imports per 1,000 lines", 1000 * imports / lines, 41, 25),
        Figure("top-level names", public_names(), 99, 20),
        Figure("pytest options", sum(not option.per_project for option in OPTIONS), 50, 35),
        Figure("commands", len(COMMANDS), 25, 14),
        Figure("words of docs without the API", count_words(pages), 39_000, 22_000),
    ]


def main() -> int:
    """Print a row per figure."""
    print(f"{'':34} {'now':>9} {'before':>9} {'goal':>9}")
    for figure in figures():
        print(f"{figure.name:34} {figure.now:>9,.0f} {figure.before:>9,.0f} {figure.goal:>9,.0f}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
