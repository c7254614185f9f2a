"""The whole table of faults: what each costs, over many attempts.

    python perf/faults [--short] [--only PART]

The parts are faults of a server, of the journal's file, of single system calls (the n-th write, fsync, send and
receive of a run, for every n), kills and signals, and damaged files of a run. `--short` tries each less often.
Ends with status 1 where a row has anything wrong or crashed, or loses what it must not.
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

import damaged_files
import journal_faults
import kills
import server_faults
import system_calls
from row import HEAD

if TYPE_CHECKING:
    from collections.abc import Iterator

    from row import Row

PARTS = {
    "server": server_faults.rows,
    "journal": journal_faults.rows,
    "calls": system_calls.rows,
    "kills": kills.rows,
    "files": damaged_files.rows,
}
"""By name: what makes the rows, given whether it is to be short."""


def table(parts: list[str], *, short: bool) -> Iterator[Row]:
    """All rows."""
    for name in parts:
        yield from PARTS[name](short=short)


def main() -> int:
    """Prints the table, row by row."""
    parser = argparse.ArgumentParser(prog="python perf/faults", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--short", action="store_true", help="a minute instead of many")
    parser.add_argument("--only", choices=PARTS, action="append", help="this part; may be repeated")
    options = parser.parse_args()
    print(HEAD)
    harmed = []
    for row in table(options.only or list(PARTS), short=options.short):
        print(row, flush=True)
        if not row.harmless:
            harmed.append(row.fault)
    for fault in harmed:
        print(f"not harmless: {fault}", file=sys.stderr)
    return int(bool(harmed))


if __name__ == "__main__":
    sys.exit(main())
