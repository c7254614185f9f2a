"""`evalsuite compare cases A B`: the cases that two runs answered differently, those that flipped first."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from evalsuite.commands.arguments import add_reports_folder
from evalsuite.core.errors import for_terminal
from evalsuite.core.phrases import number_of
from evalsuite.output.reports.case_block import baseline_line, case_block
from evalsuite.results.run_folders import find_folder
from evalsuite.results.runs import load_run

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from evalsuite.results.runs import Run
    from evalsuite.results.tally import Row


@dataclass(frozen=True, slots=True)
class Change:
    """One case that came out differently.

    Attributes:
        case: its id.
        before: its outcome in the first run.
        after: its outcome in the second.
        by: the greatest difference of a score, second minus first; 0.0 where only the outcome changed.
    """

    case: str
    before: str
    after: str
    by: float


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the two runs."""
    add_reports_folder(parser)
    parser.add_argument("first", metavar="A", help="a run's name or folder, or `last`")
    parser.add_argument("second", metavar="B", help="another, as for A")
    parser.add_argument("--answers", action="store_true", help="show question and answers of each, too")
    parser.add_argument("--most", type=int, default=50, metavar="N", help="cases to list (default: 50)")


def run(options: argparse.Namespace) -> int:
    """Print the differences; intervals and tests are the business of `evalsuite compare`."""
    before, after = (load_run(find_folder(options.reports, name)) for name in (options.first, options.second))
    changes = find_changes(before, after)
    for change in changes[: options.most]:
        sys.stdout.write(
            for_terminal(f"{change.before:>7} -> {change.after:<7} {change.by:+.4f}  {change.case}") + "\n"
        )
        if options.answers:
            block = case_block(after.read(change.case))
            sys.stdout.write(f"{block}\n{baseline_line(before.read(change.case))}\n\n")
    for line in _closing(before, after, changes, options.most):
        sys.stdout.write(f"{line}\n")
    return 0


def find_changes(before: Run, after: Run) -> list[Change]:
    """Find cases of both runs with another outcome or other scores: flipped ones first, then by size of the change."""
    rows = {row.case: row for row in before.all_rows()}
    pairs = [(rows[row.case], row) for row in after.all_rows() if row.case in rows]
    changes = [Change(old.case, old.outcome, new.outcome, _by(old, new)) for old, new in pairs]
    real = [change for change in changes if change.by or change.before != change.after]
    return sorted(real, key=lambda change: (change.before == change.after, -abs(change.by), change.case))


def _by(old: Row, new: Row) -> float:
    differences = [new.scores[name] - old.scores[name] for name in new.scores if name in old.scores]
    return max(differences, key=abs, default=0.0)


def _closing(before: Run, after: Run, changes: list[Change], most: int) -> Iterator[str]:
    if len(changes) > most:
        yield f"... and {len(changes) - most} more"
    both = len(before.offsets.keys() & after.offsets.keys())
    flipped = sum(change.before != change.after for change in changes)
    rescored = len(changes) - flipped
    yield f"{number_of(both, 'case')} in both runs: {flipped} with another outcome, {rescored} with other scores alone"
    for run, other in ((before, after), (after, before)):
        if alone := len(run.offsets.keys() - other.offsets.keys()):
            yield f"{number_of(alone, 'case')} in {run.folder.name} alone"
