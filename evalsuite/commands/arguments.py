"""Arguments that several commands take."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse


def add_reports_folder(parser: argparse.ArgumentParser) -> None:
    """Adds `--reports`, the folder in which runs are looked for."""
    parser.add_argument(
        "--reports",
        type=Path,
        default=Path("reports"),
        metavar="DIR",
        help="folder of the runs (default: reports)",
    )
