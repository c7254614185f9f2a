"""`evalsuite report page [RUN ...]`: show runs in the browser, and follows one in progress."""

from __future__ import annotations

import sys
import time
import webbrowser
from typing import TYPE_CHECKING

from evalsuite.commands.arguments import add_reports_folder, own_declarations
from evalsuite.core.errors import RunError
from evalsuite.core.phrases import number_of
from evalsuite.results.run_folders import find_folder

if TYPE_CHECKING:
    import argparse

    from evalsuite.results.run_folders import RunFolder

BETWEEN_LOOKS = 2.0
"""Seconds between two looks at a run in progress."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the runs, and whether a browser is opened."""
    add_reports_folder(parser)
    parser.add_argument(
        "names",
        metavar="RUN",
        nargs="*",
        help="names or folders, or `last`: one shows its page, several an index of them (default: an index of all)",
    )
    parser.add_argument(
        "--no-open", action="store_true", help="write the page and say where; open no browser"
    )


def run(options: argparse.Namespace) -> int:
    """Write the page or the index, opens it, and follows a run in progress.

    Raises:
        RunError: the run does not exist, or no run exists.
    """
    from evalsuite.output.page.view import all_runs, goes_on, page_of, write_index

    folders = [find_folder(options.reports, name) for name in options.names] or all_runs(options.reports)
    if not folders:
        raise RunError(f"no run in {options.reports}; `pytest cases/` leaves them there")
    going_on = [folder for folder in folders if goes_on(folder)]
    if len(options.names) == 1:
        _make_page(folders[0], live=bool(going_on))
        address = page_of(folders[0])
    else:
        address = write_index(folders, options.reports).absolute().as_uri()
    sys.stdout.write(f"{address}\n")
    sys.stdout.flush()
    if not options.no_open:
        webbrowser.open(address)
    if len(going_on) == 1:
        _follow(going_on[0])
    return 0


def _make_page(folder: RunFolder, *, live: bool) -> None:
    from evalsuite.output.page.view import write_live_page
    from evalsuite.output.page.write import PAGE
    from evalsuite.output.reports.write import write_run

    if live:
        write_live_page(folder, own_declarations())
    elif not (folder.path / PAGE).is_file():
        write_run(folder, own_declarations())


def _follow(folder: RunFolder) -> None:
    from evalsuite.output.page.view import follow

    def tell(cases: int) -> None:
        sys.stdout.write(
            f"{folder.name}: {number_of(cases, 'case')} so far; its page follows until it ends (Ctrl-C stops)\n"
        )
        sys.stdout.flush()

    try:
        follow(folder, own_declarations(), tell, lambda: time.sleep(BETWEEN_LOOKS))
    except KeyboardInterrupt:
        sys.stdout.write("\n")
