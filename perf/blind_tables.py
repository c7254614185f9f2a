"""The table score, once per version, on a sealed set of rated tables that no version was fitted to.

    python perf/blind_tables.py

The set's SHA-256 must be `SEAL`. The tables of agreement are printed, and a line is added to `blind_tables.md`; a
version that has a line there is refused. Nothing else may open the set.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import lzma
import sys
import tempfile
from pathlib import Path

from evalsuite.metaeval.agreement import (
    compute_agreements,
    compute_metrics,
    fill_unreadable_scores,
    is_readable,
    read_rated_tables,
    tabulate_agreements,
)
from evalsuite.metrics.tables.table_score import VERSION
from evalsuite.output.reports.markdown import format_plain_cell, render_table
from evalsuite.output.reports.section import Column
from evalsuite.results.tally import Estimate

FOLDER = Path(__file__).parent
SEAL = "ad197bab615443ca8d528b1ac070b4532ef22c9519dd71034e1aee5c9333670e"
LOGGED = ("Pearson", "Spearman", "Kendall within")
OTHERS = ("teds", "grits_content")


def main(folder: Path = FOLDER, seal: str = SEAL) -> int:
    log, packed = folder / "blind_tables.md", (folder / "blind_tables.json.xz").read_bytes()
    if f"\n| {VERSION} |" in log.read_text("utf-8"):
        sys.stderr.write(f"{log.name} has version {VERSION} of the table score; each version is scored once\n")
        return 2
    if (found := hashlib.sha256(packed).hexdigest()) != seal:
        sys.stderr.write(f"blind_tables.json.xz has the hash {found}, not {seal}: it is not the sealed set\n")
        return 2
    with tempfile.TemporaryDirectory() as opened:
        file = Path(opened) / "rated.json"
        file.write_bytes(lzma.decompress(packed))
        everything = read_rated_tables(file)
    read = list(map(is_readable, everything))
    readable = [pair for pair, has in zip(everything, read, strict=True) if has]
    values = compute_metrics(readable)
    lines = compute_agreements(readable, values)
    with_zeros = compute_agreements(everything, fill_unreadable_scores(everything, read, values))
    for title, shown in (("Readable", lines), ("All, unreadable as zeros", with_zeros)):
        print(*map(render_table, tabulate_agreements(shown, title)), sep="\n\n", end="\n\n")
    of = {line.metric: line for line in lines}
    found_values = [*(of["table_score"].agreement[name] for name in LOGGED)]
    found_values += [of[other].behind[name] for other in OTHERS for name in LOGGED]
    cells = [format_plain_cell(Estimate.of(it.value, it.low, it.high), Column("", "number", 3)) for it in found_values]
    with log.open("a", encoding="utf-8") as lines_of_log:
        date = dt.datetime.now(dt.UTC).date()
        lines_of_log.write(f"| {VERSION} | {date} | {len(readable)} | {' | '.join(cells)} |\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
