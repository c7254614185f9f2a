"""`evalsuite compare history [RUN ...]`: each gated metric over releases, and slow drift from a reference."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from evalsuite.commands.arguments import add_reports_folder, own_declarations
from evalsuite.core.errors import RunError, for_terminal
from evalsuite.core.phrases import number_of
from evalsuite.results.run_folders import INFO, RunFolder, find_folder, interruption
from evalsuite.results.runs import load_run

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterable, Sequence

    from evalsuite.results.runs import Run

T = TypeVar("T")

DRIFTED = 11
"""The exit status where the newest release has fallen behind a reference: a regression's."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the runs, the references and the output folder."""
    parser.epilog = f"The exit status is {DRIFTED} where the newest release has drifted from a reference."
    add_reports_folder(parser)
    parser.add_argument(
        "names",
        metavar="RUN",
        nargs="*",
        help="releases in their order: names or folders (default: all finished runs of the folder, by time)",
    )
    parser.add_argument(
        "--reference",
        action="append",
        default=[],
        metavar="RUN",
        help="run that every later release is held against; may be repeated (default: the first release)",
    )
    parser.add_argument(
        "--to",
        type=Path,
        metavar="DIR",
        help="folder for history.md, page and pictures (default: reports/history)",
    )


def run(options: argparse.Namespace) -> int:
    """Write the history and report what has drifted.

    Raises:
        RunError: there are fewer than two releases, or one cannot be read.
    """
    from evalsuite.decisions.history import trace
    from evalsuite.decisions.verdict import comparison_rules
    from evalsuite.output.page.write import COMPARISON
    from evalsuite.output.reports.compare import write_history
    from evalsuite.output.reports.markdown import in_terminal

    runs = _releases(options)
    references = _references(options, runs)
    courses = trace(runs, references, comparison_rules(runs[-1].info.get("settings", {})))
    target = options.to or options.reports / "history"
    file = write_history(runs, courses, target)
    latest = [line for course in courses for line in course.drifts(latest_only=True)]
    sys.stdout.write(
        f"{in_terminal(file.read_text('utf-8'))}\n\nhistory: {file}\npage:    {target / COMPARISON}\n"
    )
    return DRIFTED if latest else 0


def _releases(options: argparse.Namespace) -> list[Run]:
    declarations = own_declarations()
    if options.names:
        runs = [load_run(find_folder(options.reports, name), declarations) for name in options.names]
        if len(runs) < 2:
            raise RunError(f"a history needs two releases or more; {runs[0].folder.name} alone was named")
        return runs
    runs = _readable(_find_finished(options.reports), lambda folder: load_run(folder, declarations))
    if len(runs) < 2:
        raise RunError(
            f"a history needs two releases or more; {options.reports} holds {number_of(len(runs), 'finished run')}"
        )
    return runs


def _find_finished(reports: Path) -> list[RunFolder]:
    """Find all finished runs that are not shards, oldest first."""
    folders = [RunFolder(path.parent) for path in sorted(reports.glob(f"*/{INFO}"))]
    whole = [
        (info.get("started", ""), folder.name, folder)
        for folder, info in _readable(folders, lambda folder: (folder, folder.info()))
        if interruption(info) is None and not info.get("settings", {}).get("shard")
    ]
    return [folder for *_, folder in sorted(whole, key=lambda release: release[:2])]


def _readable(folders: Iterable[RunFolder], read: Callable[[RunFolder], T]) -> list[T]:
    """Read folders that nobody named; a damaged one is left out with a remark."""
    results = []
    for folder in folders:
        try:
            results.append(read(folder))
        except RunError as error:
            sys.stderr.write(f"{folder.name} is left out: {for_terminal(str(error))}\n")
    return results


def _references(options: argparse.Namespace, runs: Sequence[Run]) -> list[Run]:
    by_path = {each.folder.path.resolve(): each for each in runs}
    folders = [find_folder(options.reports, name) for name in options.reference]
    named = [by_path.get(folder.path.resolve()) or load_run(folder, own_declarations()) for folder in folders]
    return named or [runs[0]]
