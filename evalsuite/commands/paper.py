"""`evalsuite export paper A B ... --label ...`: a paper's tables, figures and appendix for LaTeX."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from evalsuite.commands.arguments import add_reports_folder, own_declarations
from evalsuite.core.errors import RunError
from evalsuite.output.paper import write_paper
from evalsuite.output.reports.compare import label_runs
from evalsuite.output.reports.plots import can_draw
from evalsuite.results.run_folders import find_folder
from evalsuite.results.runs import load_run

if TYPE_CHECKING:
    import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the runs, what they are called, and where the files go."""
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
    parser.epilog = (
        "Include tables.tex, figures.tex and appendix.tex in a document that loads the packages booktabs and graphicx. "
        "Scripts beyond Latin need lualatex or xelatex with a font that has them."
    )


def run(options: argparse.Namespace) -> int:
    """Write tables.tex, figures.tex with its figures, and appendix.tex.

    Raises:
        RunError: there is only one run, or the labels do not fit the runs.
    """
    runs = [load_run(find_folder(options.reports, name), own_declarations()) for name in options.names]
    if len(runs) < 2:
        raise RunError("a paper's tables compare two runs or more; of one, see `evalsuite export --to latex`")
    labels = options.label or label_runs(runs)
    if len(labels) != len(runs) or len(set(labels)) < len(runs):
        raise RunError(f"{len(runs)} runs need {len(runs)} different labels; got {', '.join(labels)}")
    for file in write_paper(runs, labels, options.to):
        sys.stdout.write(f"{file}\n")
    if not can_draw():
        sys.stdout.write("no figures: they need matplotlib (pip install 'evalsuite[plots]')\n")
    return 0
