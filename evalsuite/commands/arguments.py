"""Arguments that several commands take."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from evalsuite.core.declarations import Declarations
from evalsuite.core.errors import SettingsError

if TYPE_CHECKING:
    import argparse


def add_reports_folder(parser: argparse.ArgumentParser) -> None:
    """Add `--reports`, the folder in which runs are looked for."""
    parser.add_argument(
        "--reports",
        type=Path,
        default=Path("reports"),
        metavar="DIR",
        help="folder of the runs (default: reports)",
    )


def own_declarations() -> Declarations:
    """Find benchmarks of installed packages, and those of test files below the current directory."""
    return Declarations(Path.cwd())


def demand_suite(*paths: str) -> None:
    """Check that suites are there, given as for pytest: a file or folder, perhaps with the id of a case.

    Raises:
        SettingsError: one is not.
    """
    for path in paths:
        if not Path(path.partition("::")[0]).exists():
            raise SettingsError(f"{path}: no such file or folder")
