"""`evalsuite paper A B ... --label ...`: the tables of a paper in LaTeX, and an appendix on how they were made."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from evalsuite.commands.arguments import add_reports_folder, own_declarations
from evalsuite.errors import RunError
from evalsuite.exports.latex import escape, latex_table
from evalsuite.json_codec import digest
from evalsuite.reporting.compare import compare_runs, label_runs
from evalsuite.reporting.section import Table
from evalsuite.results.runs import find_folder, load_run

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence

    from evalsuite.results.runs import Run


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the runs, what they are called, and where the files go."""
    add_reports_folder(parser)
    parser.add_argument(
        "names", metavar="RUN", nargs="+", help="two runs or more, the first being the baseline"
    )
    parser.add_argument(
        "--label", action="append", default=[], metavar="NAME", help="one for each run, in order"
    )
    parser.add_argument(
        "--to", type=Path, default=Path("paper"), metavar="DIR", help="folder (default: paper)"
    )
    parser.epilog = "Include tables.tex and appendix.tex in a document that loads the package booktabs."


def run(options: argparse.Namespace) -> int:
    """Writes tables.tex and appendix.tex."""
    runs = [load_run(find_folder(options.reports, name), own_declarations()) for name in options.names]
    if len(runs) < 2:
        raise RunError("a paper's tables compare two runs or more; of one, see `evalsuite export --to latex`")
    labels = options.label or label_runs(runs)
    if len(labels) != len(runs) or len(set(labels)) < len(runs):
        raise RunError(f"{len(runs)} runs need {len(runs)} different labels; got {', '.join(labels)}")
    options.to.mkdir(parents=True, exist_ok=True)
    for name, text in (("tables.tex", _tables(runs, labels)), ("appendix.tex", _appendix(runs, labels))):
        (options.to / name).write_text(text, "utf-8")
        sys.stdout.write(f"{options.to / name}\n")
    return 0


def _tables(runs: Sequence[Run], labels: Sequence[str]) -> str:
    tables = [
        latex_table(block, ": ".join(filter(None, (section.title, block.title))))
        for section in compare_runs(runs, labels)
        for block in section.blocks
        if isinstance(block, Table) and block.rows
    ]
    return "% needs \\usepackage{booktabs}\n" + "\n".join(tables)


def _appendix(runs: Sequence[Run], labels: Sequence[str]) -> str:
    lines = [line for one, label in zip(runs, labels, strict=True) for line in _made_with(one, label)]
    return "\n".join(lines) + "\n"


def _made_with(one: Run, label: str) -> Iterator[str]:
    info = one.info
    yield rf"\paragraph{{{escape(label)}}}"
    started, command = escape(str(info.get("started"))), escape(str(info.get("command")))
    yield rf"Run {escape(one.folder.name)}, begun {started}: \texttt{{{command}}}."
    versions = json.dumps(info.get("versions", {}), sort_keys=True).strip("{}").replace('"', "")
    yield f"Versions: {escape(versions)}."
    for name, bench in one.benchmarks.items():
        asked = sorted(
            (row.fingerprints.get("input", ""), row.fingerprints.get("target", "")) for row in bench.tally
        )
        prompts = sorted(row.fingerprints.get("prompt", "") for row in bench.tally)
        scorers = ", ".join(sorted({row.fingerprints.get("scorers", "unknown") for row in bench.tally}))
        yield (
            f"{escape(name)}: {len(bench.tally)} cases of {escape(bench.source)}; SHA-256 (16 digits) of data "
            f"{digest(asked)}, of prompts {digest(prompts)}, of scorers {escape(scorers)}."
        )
