"""`evalsuite build struc-bench files`: LaTeX and HTML items from the tables in a folder of files."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING

from evalsuite.benchmarks.dataset_files import read_text
from evalsuite.benchmarks.struc_bench.items import TableItem, format_of, items_json
from evalsuite.builders.building import BuildProgress, building, bytes_of, ending_cleanly, write
from evalsuite.core.errors import DatasetError, ScoringError, SettingsError
from evalsuite.core.phrases import number_of
from evalsuite.metrics.tables import read_tables, table_score
from evalsuite.metrics.tables.latex_text import TABULARS, LatexSource

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from evalsuite.metrics.tables import CellGrid, Format


NAMES: dict[Format, str] = {"markdown": "table_test.json", "html": "html_test.json", "latex": "latex_test.json"}


def must_tell(target: Path, written: Format) -> None:
    """Check that a file about to be written will be read in its own format.

    Raises:
        SettingsError: its name stands for another format or none, or is not that of a JSON file.
    """
    if target.suffix != ".json" or format_of(target) != written:
        raise SettingsError(
            f"--to {target}: the name of a file of items stands for its format; call it {NAMES[written]} or similar"
        )


def format_by_name(path: Path) -> Format:
    """Return the format that the name of a file of items stands for.

    Raises:
        DatasetError: it stands for none.
    """
    written = format_of(path)
    if written is None:
        raise DatasetError(path, "", "a name that stands for no format", f"a name like {', '.join(NAMES.values())}")
    return written


@dataclass(frozen=True, slots=True)
class Fragment:
    """A table's markup.

    Attributes:
        markup: all of it, with the caption that belongs to it.
        line: where it begins in its file, from 1.
        unfit: why it cannot be used, where that is plain from the file; else empty.
    """

    markup: str
    line: int
    unfit: str = ""


def why_unfit(fragment: Fragment, written: Format) -> str:
    """Why a table cannot be an item; empty where it can."""
    if fragment.unfit:
        return fragment.unfit
    try:
        if not drop_blank(read_tables(fragment.markup, written)):
            return "no cell with text can be read"
        score = table_score(fragment.markup, fragment.markup, format=written)
    except ScoringError as error:
        return str(error)
    if score.value != 1.0:
        return f"against itself it scores {score.content:.3f} in content and {score.form:.3f} in form"
    return ""


def drop_blank(tables: list[CellGrid]) -> list[CellGrid]:
    """Return the tables that hold any text."""
    return [table for table in tables if any(table.cells)]


PIECE = re.compile(
    r"""<!--.*?(?:-->|\Z)
    |<(?P<raw>script|style|textarea|title)(?=[\s/>]).*?(?:</(?P=raw)\s*>|\Z)
    |<(?P<end>/?)table(?=[\s/>])(?:"[^"]*"|'[^']*'|[^<>"'])*>?
    """,
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)
"""Comments and raw text, which are skipped, and the tags of tables."""


def html_fragments(page: str) -> Iterator[Fragment]:
    """Return the tables of a page that are not within another one, in order."""
    depth = begin = line = counted = 0
    for piece in PIECE.finditer(page):
        if piece["end"] is None:
            continue
        if not piece["end"]:
            if not depth:
                # Lines are counted on from the last table.
                line, counted = line + page.count("\n", counted, piece.start()), piece.start()
                begin = piece.start()
            depth += 1
        elif depth:
            depth -= 1
            if not depth:
                yield Fragment(page[begin : piece.end()], line + 1)
    if depth:
        yield Fragment(page[begin:], line + 1, "its element does not end")


TABLES = TABULARS | {"table", "table*", "wraptable", "sidewaystable", "sidewaystable*", "threeparttable"}
VERBATIM = frozenset({"verbatim", "verbatim*", "Verbatim", "lstlisting", "minted", "comment"})
COMMENT = re.compile(r"(\\.)|%[^\n]*(?:\n[ \t]*)?", re.DOTALL)
ELSEWHERE = re.compile(r"\\(?:input|include|csvautotabular|csvreader)\b")
PARAMETER = re.compile(r"(?<!\\)#[1-9]")


def latex_fragments(source: str) -> Iterator[Fragment]:
    """Return the tables of a source that are not within another one, in order; a float with its caption is one."""
    read = LatexSource(source)
    place = line = counted = 0
    while place < len(read.tokens):
        token = read.tokens[place]
        end = read.partner.get(place, place)
        if token.kind == "begin" and token.value in VERBATIM:
            place = end
        elif token.kind == "begin" and token.value in TABLES:
            # Lines are counted on from the last table.
            line, counted = line + source.count("\n", counted, token.start), token.start
            ends = read.partner.get(end) == place
            stop = read.tokens[end].end if ends else len(source)
            yield _fragment(source[token.start : stop], line + 1, ends=ends)
            place = end
        place += 1


def _fragment(markup: str, line: int, *, ends: bool) -> Fragment:
    bare = COMMENT.sub(lambda match: match[1] or "", markup)
    unfit = ""
    if not ends:
        unfit = "its environment does not end"
    elif PARAMETER.search(bare):
        unfit = "it is part of a macro's definition"
    elif elsewhere := ELSEWHERE.search(bare):
        unfit = f"its content is in another file ({elsewhere[0]})"
    return Fragment(bare, line, unfit)


PLACES = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")


def word(tables: Sequence[CellGrid]) -> str:
    """Describe all tables, one paragraph each: the caption, the names of the columns, and each row.

    Every text of the tables is in it. A row with one text across all columns is given as such; rows like this at the
    top are titles, and the head below them names the columns (of several head rows the texts above one another). Any
    other cell that spans several places counts in each, blank cells are left out, and a column without a name is
    called by its number.
    """
    return "\n\n".join("\n".join(_sentences(table, place, len(tables))) for place, table in enumerate(tables, 1))


def _sentences(table: CellGrid, place: int, count: int) -> Iterator[str]:
    if count > 1:
        yield f"Table {place} of {count}."
    if table.name:
        yield f"The caption: {table.name}"
    rows, head = list(table.rows), table.head_rows
    while len(rows) > 1 and _is_one_text(rows[0]):
        yield _across(rows.pop(0))
        head -= 1
    head = head if 0 < head < len(rows) else 1
    columns = [" ".join(dict.fromkeys(filter(None, names))) for names in zip_longest(*rows[:head], fillvalue="")]
    rows = rows[head:]
    yield f"The columns: {'; '.join(name or '(no name)' for name in columns)}."
    for row in rows:
        yield _across(row) if _is_one_text(row) else _row(row, columns)


def _is_one_text(row: Sequence[str]) -> bool:
    return len(row) > 1 and bool(row[0]) and len(set(row)) == 1


def _across(row: Sequence[str]) -> str:
    return f"Across all columns: {row[0]}"


def _row(row: Sequence[str], columns: Sequence[str]) -> str:
    """`Name: column is value; column is value.`; a row without a name is a row."""
    phrases = [f"{_column_name(columns, place)} is {cell}" for place, cell in enumerate(row[1:], 1) if cell]
    name = (row[0] if row else "") or "(a row with no name)"
    return f"{name}: {'; '.join(phrases)}." if phrases else f"{name}."


def _column_name(columns: Sequence[str], place: int) -> str:
    if place < len(columns) and columns[place]:
        return columns[place]
    return f"the {PLACES[place]} column" if place < len(PLACES) else f"column {place + 1}"


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
    """Add what `run` needs to know."""
    parser.add_argument(
        "--from", dest="folder", type=Path, required=True, metavar="DIR", help="folder of .tex and .html files"
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
    """Find the output file of each wanted format.

    Raises:
        SettingsError: the file's name tells neither.
    """
    if target.suffix != ".json":
        return {written: target / NAMES[written] for written in CUT}
    written: Format = "latex" if format_of(target) == "latex" else "html"
    must_tell(target, written)
    return {written: target}


def source_files(folder: Path, wanted: Iterable[Format]) -> list[Path]:
    """Return the folder's files in the formats that are wanted, by name.

    Raises:
        DatasetError: there are none.
    """
    suffixes = [suffix for suffix, written in SUFFIXES.items() if written in wanted]
    paths = [path for path in sorted(folder.rglob("*")) if path.suffix.lower() in suffixes and path.is_file()]
    if paths:
        return paths
    missing = "no such file in it" if folder.is_dir() else "no such folder"
    raise DatasetError(folder, "", missing, f"a folder of {' and '.join(f'*{suffix}' for suffix in suffixes)}")


def build(paths: Iterable[Path], folder: Path, progress: BuildProgress) -> BuiltItems:
    """Make the items of all files; a file that cannot be read is left out like a table."""
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
    tables = drop_blank(read_tables(fragment.markup, written))
    return TableItem(INSTRUCTIONS[written], word(tables), fragment.markup)
