"""`evalsuite build head-to-tail`: its arguments, and the way from a folder of dumps to a file of questions."""

from __future__ import annotations

import sys
from argparse import ArgumentTypeError
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from evalsuite.benchmarks.head_to_tail.dataset import predicates_path, stats_path
from evalsuite.builders.build_progress import BuildProgress, bytes_of
from evalsuite.builders.head_to_tail.dump_reader import locate
from evalsuite.builders.head_to_tail.output import predicates, published
from evalsuite.builders.head_to_tail.selection import choose
from evalsuite.builders.head_to_tail.sources import SOURCES
from evalsuite.builders.head_to_tail.stats_page import stats_page
from evalsuite.builders.head_to_tail.workspace import Workspace
from evalsuite.builders.output_folder import building, ending_cleanly, write
from evalsuite.core.errors import DatasetError

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from evalsuite.builders.head_to_tail.selection import Selection


def add_arguments(parser: ArgumentParser) -> None:
    """Adds what `run` needs to know."""
    parser.add_argument("source", choices=sorted(SOURCES), help="the knowledge source")
    parser.add_argument(
        "--from",
        dest="folder",
        type=Path,
        required=True,
        metavar="DIR",
        help="where its files lie, as downloaded",
    )
    parser.add_argument("--to", type=Path, required=True, metavar="FILE", help="the JSON file to write")
    parser.add_argument(
        "--per-template",
        type=_at_least_one,
        metavar="N",
        help="the most questions of a template in each of head, torso and tail; by default as many as it "
        "takes to come to 1,000 there (3,000 for dbpedia)",
    )
    parser.add_argument(
        "--mix",
        choices=("own", "paper"),
        default="own",
        help="own (by default): what people may well ask; paper: the paper's templates, ISBN, ISSN and DOI "
        "included, and as many questions of each as its scripts make",
    )
    parser.add_argument("--seed", type=int, default=0, help="of the choice among questions; 0 by default")
    parser.add_argument(
        "--templates", type=Path, metavar="FILE", help="question templates a predicate, for dbpedia"
    )


def run(args: Namespace) -> int:
    """Builds, and says what was built.

    Returns:
        0.

    Raises:
        DatasetError: a file of the source is missing, damaged or not what it should be.
        SettingsError: the output cannot be written, or the arguments do not fit the source.
    """
    origin = SOURCES[args.source]
    files = [locate(args.folder, name) for name in origin.files]
    with ending_cleanly(), building(args.to) as folder, BuildProgress(bytes_of(files), "B") as progress:
        with closing(Workspace(folder, progress, args.seed)) as workspace:
            source = origin.read(workspace, args.folder, args.templates)
            of_paper = args.mix == "paper"
            selection = choose(
                source,
                source.paper_templates if of_paper else source.templates,
                per_template=args.per_template or (origin.paper_cap if of_paper else None),
                target=origin.target,
            )
        count = _count(selection, args.folder)
        page = stats_page(args.source, args.seed, selection, source.partitions, source.dropped)
        write(page, stats_path(args.to), folder)
        if source.template_popularity:
            table = predicates(selection, source.template_popularity, source.partitions["predicate"])
            write(table, predicates_path(args.to), folder)
        write(published(selection, source.partitions), args.to, folder)
    sys.stdout.write(f"{count:,} questions in {args.to}, counted in {stats_path(args.to)}\n")
    return 0


def _count(selection: Selection, folder: Path) -> int:
    count = sum(len(asked) for buckets in selection.questions.values() for asked in buckets.values())
    if not count:
        problem = "no template with a question for each of head, torso and tail"
        raise DatasetError(folder, "", problem, "a dump that is large enough to be asked about")
    return count


def _at_least_one(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text)):
        raise ArgumentTypeError(f"{text!r} is not a whole number of at least 1")
    return int(text)
