"""`evalsuite runs prune`: list old runs and, with --yes, remove them."""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from evalsuite.commands.arguments import add_reports_folder
from evalsuite.commands.runs import newest_first
from evalsuite.output.page.view import all_runs, goes_on

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from evalsuite.results.run_folders import RunFolder


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add how many runs stay, and the word that removes the others."""
    add_reports_folder(parser)
    parser.add_argument(
        "--keep", type=_count, default=10, metavar="N", help="newest runs to keep (default: 10)"
    )
    parser.add_argument(
        "--also", action="append", default=[], metavar="RUN", help="keep this one, too; repeatable"
    )
    parser.add_argument("--yes", action="store_true", help="remove them; without it they are only listed")
    parser.epilog = (
        "A run is removed with the answers that were paid for. A run in progress is never removed, nor is the baseline "
        "of a run that stays."
    )


def run(options: argparse.Namespace) -> int:
    """List or remove all but the newest runs."""
    runs = newest_first(all_runs(options.reports))
    kept = {*options.also, *_baselines(runs[: options.keep])}
    old = [folder for folder in runs[options.keep :] if folder.name not in kept and not goes_on(folder)]
    for folder in old:
        if options.yes:
            shutil.rmtree(folder.path)
        sys.stdout.write(f"{'removed' if options.yes else 'would remove'} {folder.path}\n")
    if old and not options.yes:
        sys.stdout.write("nothing is removed yet: add --yes\n")
    elif not old:
        sys.stdout.write("nothing to remove\n")
    return 0


def _baselines(runs: Iterable[RunFolder]) -> Iterator[str]:
    """Name the runs that these were compared with, because later ones will be compared with them, too."""
    for folder in runs:
        for name in folder.info().get("settings", {}).get("baseline") or ():
            # It may have been named by its folder, or by a file in it.
            yield from (part for part in Path(name).parts[-2:])


def _count(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"a number of runs from 0; got {text!r}")
    return int(text)
