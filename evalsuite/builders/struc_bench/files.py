"""`evalsuite build struc-bench files`: LaTeX and HTML items from the tables in a folder of files."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from evalsuite.benchmarks.dataset_files import read_text
from evalsuite.benchmarks.struc_bench.items import TableItem, format_of, items_json
from evalsuite.builders.building import BuildProgress, building, bytes_of, ending_cleanly, write
from evalsuite.builders.struc_bench.fragments import filled, why_unfit
from evalsuite.builders.struc_bench.html_fragments import html_fragments
from evalsuite.builders.struc_bench.latex_fragments import latex_fragments
from evalsuite.builders.struc_bench.naming import NAMES, must_tell
from evalsuite.builders.struc_bench.wording import word
from evalsuite.core.counted_nouns import number_of
from evalsuite.core.errors import DatasetError
from evalsuite.metrics.tables import read_tables

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from evalsuite.builders.struc_bench.fragments import Fragment
    from evalsuite.metrics.tables import Format

WHAT = "LaTeX and HTML items from a folder of .tex and .html files"
ABOUT = """\
Every outermost table in the files of the folder and its subfolders becomes an item if it has a cell with text and
scores 1.0 against itself: in HTML a <table> element, in LaTeX a float with its caption (table, sidewaystable, ...) or
a tabular, longtable and the like on its own. The markup stays as it is, except for LaTeX's comments; the text of the
item gives its content by rule, row by row. What is left out is named with the reason."""
SUFFIXES: Mapping[str, Format] = {".html": "html", ".htm": "html", ".tex": "latex"}
CUT: Mapping[Format, Callable[[str], Iterator[Fragment]]] = {"html": html_fragments, "latex": latex_fragments}
INSTRUCTIONS: Mapping[Format, str] = {
    "html": "Write the table that the text below describes, as HTML.",
    "latex": "Write the table that the text below describes, as LaTeX, with its caption if it has one.",
}


@dataclass(slots=True)
class BuiltItems:
    """What a folder gave.

    Attributes:
        items: by format.
        left_out: why a table or a file was not used, by its place.
    """

    items: dict[Format, list[TableItem]] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)


def add_arguments(parser: ArgumentParser) -> None:
    """Adds what `run` needs to know."""
    parser.add_argument(
        "--from",
        dest="folder",
        type=Path,
        required=True,
        metavar="DIR",
        help="folder of .tex and .html files",
    )
    parser.add_argument(
        "--to",
        type=Path,
        required=True,
        metavar="DIR_OR_FILE",
        help="a folder for html_test.json and latex_test.json; or one .json file named after one of the formats, whose "
        "files alone are then read",
    )


def run(args: Namespace) -> int:
    """Builds, and reports what was left out and what was built.

    Raises:
        DatasetError: the folder has no such file, or no table that can be used.
        SettingsError: an output cannot be written, or its name stands for no format.
    """
    targets = target_files(args.to)
    paths = source_files(args.folder, targets)
    with ending_cleanly(), BuildProgress(bytes_of(paths), "B") as progress:
        built = build(paths, args.folder, progress)
    for where, reason in built.left_out.items():
        sys.stderr.write(f"{where} is left out: {reason}\n")
    counted = f"{len(built.left_out):,} {'table or file' if len(built.left_out) == 1 else 'tables or files'} left out"
    if not built.items:
        raise DatasetError(args.folder, "", f"no table that can be used ({counted})", "at least one")
    for written, items in built.items.items():
        with ending_cleanly(), building(targets[written]) as folder:
            write(items_json(items), targets[written], folder)
        sys.stdout.write(f"{number_of(len(items), 'item')} in {targets[written]}\n")
    sys.stdout.write(f"{counted}, {number_of(len(paths), 'file')} read\n")
    return 0


def target_files(target: Path) -> dict[Format, Path]:
    """Where the items of each format go that is wanted.

    Raises:
        SettingsError: the file's name tells neither.
    """
    if target.suffix != ".json":
        return {written: target / NAMES[written] for written in CUT}
    written: Format = "latex" if format_of(target) == "latex" else "html"
    must_tell(target, written)
    return {written: target}


def source_files(folder: Path, wanted: Iterable[Format]) -> list[Path]:
    """The folder's files in the formats that are wanted, by name.

    Raises:
        DatasetError: there are none.
    """
    suffixes = [suffix for suffix, written in SUFFIXES.items() if written in wanted]
    paths = [path for path in sorted(folder.rglob("*")) if path.suffix.lower() in suffixes and path.is_file()]
    if paths:
        return paths
    missing = "no such file in it" if folder.is_dir() else "no such folder"
    raise DatasetError(
        folder, "", missing, f"a folder of {' and '.join(f'*{suffix}' for suffix in suffixes)}"
    )


def build(paths: Iterable[Path], folder: Path, progress: BuildProgress) -> BuiltItems:
    """Makes the items of all files; a file that cannot be read is left out like a table."""
    built = BuiltItems()
    for path in paths:
        name = str(path.relative_to(folder))
        progress.begin(name)
        written = SUFFIXES[path.suffix.lower()]
        try:
            text = read_text(path)
        except DatasetError as error:
            built.left_out[name] = f"found {error.found}, expected {error.expected}"
        else:
            _add(text, name, written, built)
        progress.advance(bytes_of([path]))
    return built


def _add(text: str, name: str, written: Format, built: BuiltItems) -> None:
    fragments = list(CUT[written](text))
    if not fragments:
        built.left_out[name] = "it has no table"
    for fragment in fragments:
        if reason := why_unfit(fragment, written):
            built.left_out[f"{name}, line {fragment.line}"] = reason
        else:
            built.items.setdefault(written, []).append(_item(fragment, written))


def _item(fragment: Fragment, written: Format) -> TableItem:
    tables = filled(read_tables(fragment.markup, written))
    return TableItem(INSTRUCTIONS[written], word(tables), fragment.markup)
