"""`evalsuite export bundle RUN`: a run as one file, which `runs verify` checks and anybody can replay offline."""

from __future__ import annotations

import sqlite3
import sys
import zipfile
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from evalsuite.commands.arguments import add_reports_folder
from evalsuite.core.errors import RunError
from evalsuite.results.record_file import JOURNAL, RECORDS
from evalsuite.results.run_folders import INFO, REPORT, SUMMARY, find_folder

if TYPE_CHECKING:
    import argparse

TEXTS = (INFO, RECORDS, SUMMARY, REPORT)
"""What a bundle holds beside the journal."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the run and the file."""
    add_reports_folder(parser)
    parser.add_argument("name", metavar="RUN", help="a run's name or folder, or `last`")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="default: RUN.zip")
    parser.epilog = (
        "`evalsuite runs verify RUN.zip` compares every printed number with the answers inside. To run the cases on "
        "those answers again: unzip it into reports/RUN, then `pytest cases/ --replay RUN`."
    )


def run(options: argparse.Namespace) -> int:
    """Write the bundle."""
    folder = find_folder(options.reports, options.name)
    target = options.output or Path(f"{folder.name}.zip")
    journal = folder.path / JOURNAL
    if not journal.is_file():
        raise RunError(f"{folder.path} has no {JOURNAL}: there is nothing to replay from")
    with TemporaryDirectory() as draft, zipfile.ZipFile(target, "x", zipfile.ZIP_DEFLATED) as bundle:
        # What a session may still be writing to is copied at one instant, its log included.
        with closing(sqlite3.connect(f"{journal.absolute().as_uri()}?mode=ro", uri=True)) as database:
            database.execute("VACUUM INTO ?", [str(Path(draft) / JOURNAL)])
        bundle.write(Path(draft) / JOURNAL, JOURNAL)
        for name in TEXTS:
            if (folder.path / name).is_file():
                bundle.write(folder.path / name, name)
    sys.stdout.write(f"{target}\n")
    return 0


def unpack(bundle: Path, folder: Path) -> None:
    """Unpacks a bundle into a folder: the files that a run has, and nothing else that it may hold.

    Raises:
        RunError: it is not a bundle.
    """
    try:
        with zipfile.ZipFile(bundle) as archive:
            names = set(archive.namelist())
            if not {JOURNAL, INFO} <= names:
                raise RunError(f"{bundle} is not a bundle of a run: it lacks {JOURNAL} or {INFO}")
            for name in (JOURNAL, *TEXTS):
                if name in names:
                    archive.extract(name, folder)
    except zipfile.BadZipFile as error:
        raise RunError(f"{bundle} is not a bundle, or a damaged one: {error}") from error
