"""Build LaTeX and HTML items from a folder of files, and print the statistics of files of items."""

import re
import sys
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from statistics import fmean

from evalsuite.benchmarks.struc_bench.items import FORMAT_NAMES, TableItem, encode_items, find_format, read_items
from evalsuite.builders.building import BuildProgress, open_build_folder, sum_file_sizes, write_atomically
from evalsuite.core.errors import DatasetError, ScoringError, SettingsError, write_count
from evalsuite.core.option_values import declare_arguments
from evalsuite.metrics.tables import CellGrid, Format, read_tables, table_score
from evalsuite.metrics.tables.latex_text import TABULARS, LatexSource
from evalsuite.output.reports.section import Cell, Table, parse_columns
from evalsuite.samples.items import read_text

NAMES: dict[Format, str] = {"markdown": "table_test.json", "html": "html_test.json", "latex": "latex_test.json"}


def check_file_name(target: Path, syntax: Format) -> None:
    """Check that a file name shows the format of the items, because the format is later inferred from the name."""
    if target.suffix != ".json" or find_format(target) != syntax:
        raise SettingsError(
            f"--to {target}: the file name must show the format of the items; call it {NAMES[syntax]} or similar"
        )


def infer_format(path: Path) -> Format:
    """Infer the format of a file of items from the file's name."""
    written = find_format(path)
    if written is None:
        raise DatasetError(path, "", "a name that shows no format", f"a name like {', '.join(NAMES.values())}")
    return written


@dataclass(frozen=True, slots=True)
class FoundTable:
    """A table found in a file, as markup."""

    markup: str  # The markup, including the caption.
    start: int  # The position in the file's text at which the markup begins.
    unfit: str = ""  # The defect that the extraction found; empty if none.


def find_defect(found_table: FoundTable, syntax: Format) -> str:
    """Return the reason why a table cannot be an item; empty if the table is suitable."""
    if found_table.unfit:
        return found_table.unfit
    try:
        if not any(any(table.cells) for table in read_tables(found_table.markup, syntax)):
            return "no cell with text can be read"
        score = table_score(found_table.markup, found_table.markup, format=syntax)
    except ScoringError as error:
        return str(error)
    if score.value != 1.0:
        return f"compared with itself, it scores {score.content:.3f} in content and {score.form:.3f} in form, not 1.0"
    return ""


PIECE = re.compile(
    r"""<!--.*?(?:-->|\Z)
    |<(?P<raw>script|style|textarea|title)(?=[\s/>]).*?(?:</(?P=raw)\s*>|\Z)
    |<(?P<end>/?)table(?=[\s/>])(?:"[^"]*"|'[^']*'|[^<>"'])*>?
    """,
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)
"""Matches table tags, and also comments and raw text, in which tags must be ignored."""


def find_html_tables(page: str) -> Iterator[FoundTable]:
    """Yield the outermost tables of a page, in order."""
    depth = begin = 0
    for piece in PIECE.finditer(page):
        if piece["end"] is None:
            continue
        if not piece["end"]:
            if not depth:
                begin = piece.start()
            depth += 1
        elif depth:
            depth -= 1
            if not depth:
                yield FoundTable(page[begin : piece.end()], begin)
    if depth:
        yield FoundTable(page[begin:], begin, "its <table> has no end tag")


TABLES = TABULARS | {"table", "table*", "wraptable", "sidewaystable", "sidewaystable*", "threeparttable"}
VERBATIM = frozenset({"verbatim", "verbatim*", "Verbatim", "lstlisting", "minted", "comment"})
COMMENT = re.compile(r"(\\.)|%[^\n]*(?:\n[ \t]*)?", re.DOTALL)
ELSEWHERE = re.compile(r"\\(?:input|include|csvautotabular|csvreader)\b")
PARAMETER = re.compile(r"(?<!\\)#[1-9]")


def find_latex_tables(source: str) -> Iterator[FoundTable]:
    """Yield the outermost tables of a source, in order; a float with its caption is one table."""
    read, place = LatexSource(source), 0
    while place < len(read.tokens):
        token = read.tokens[place]
        end = read.partner.get(place, place)
        if token.kind == "begin" and token.value in VERBATIM:
            place = end
        elif token.kind == "begin" and token.value in TABLES:
            ends = read.partner.get(end) == place
            markup = source[token.start : read.tokens[end].end if ends else len(source)]
            bare = COMMENT.sub(lambda match: match[1] or "", markup)
            unfit = ""
            if not ends:
                unfit = "its environment has no \\end"
            elif PARAMETER.search(bare):
                unfit = "it is part of a macro's definition"
            elif elsewhere := ELSEWHERE.search(bare):
                unfit = f"its content is in another file ({elsewhere[0]})"
            yield FoundTable(bare, token.start, unfit)
            place = end
        place += 1


ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")


def describe_tables(tables: Sequence[CellGrid]) -> str:
    """Write the content of tables in sentences, one paragraph per table: the caption, the columns, and each row.

    Rows at the top with one text across all columns are titles. The head rows below the titles name the columns; the
    texts of several head rows are joined. A cell that spans several positions, except a title, is repeated in each
    position. Blank cells are left out. A column without a name is called by its number.
    """
    return "\n\n".join("\n".join(_describe_table(table, place, len(tables))) for place, table in enumerate(tables, 1))


def _describe_table(table: CellGrid, number: int, total: int) -> Iterator[str]:
    if total > 1:
        yield f"Table {number} of {total}."
    if table.name:
        yield f"The caption: {table.name}"
    rows, head = list(table.rows), table.head_rows
    while len(rows) > 1 and _is_heading_row(rows[0]):
        yield f"Across all columns: {rows.pop(0)[0]}"
        head -= 1
    head = head if 0 < head < len(rows) else 1
    columns = [" ".join(dict.fromkeys(filter(None, names))) for names in zip_longest(*rows[:head], fillvalue="")]
    rows = rows[head:]
    yield f"The columns: {'; '.join(name or '(no name)' for name in columns)}."
    for row in rows:
        yield f"Across all columns: {row[0]}" if _is_heading_row(row) else _describe_row(row, columns)


def _is_heading_row(row: Sequence[str]) -> bool:
    return len(row) > 1 and bool(row[0]) and len(set(row)) == 1


def _describe_row(row: Sequence[str], columns: Sequence[str]) -> str:
    """Write `Name: column is value; column is value.`; a row may lack a name."""
    phrases = []
    for place, cell in enumerate(row[1:], 1):
        if cell:
            number = f"the {ORDINALS[place]} column" if place < len(ORDINALS) else f"column {place + 1}"
            phrases.append(f"{columns[place] if place < len(columns) and columns[place] else number} is {cell}")
    name = (row[0] if row else "") or "(a row with no name)"
    return f"{name}: {'; '.join(phrases)}." if phrases else f"{name}."


SUFFIXES: Mapping[str, Format] = {".html": "html", ".htm": "html", ".tex": "latex"}
CUT: dict[Format, Callable[[str], Iterator[FoundTable]]] = {"html": find_html_tables, "latex": find_latex_tables}
INSTRUCTIONS: Mapping[Format, str] = {
    "html": "Write the table that the text below describes, as HTML.",
    "latex": "Write the table that the text below describes, as LaTeX, with its caption if it has one.",
}


@declare_arguments(
    """
    folder=--from DIR  folder of .tex and .html files
    --to PATH          a folder for html_test.json and latex_test.json; or one .json file named after a format,
        which then is the only format built

    Every outermost table in the files of the folder and its subfolders becomes an item if it has a cell with text and
    scores 1.0 against itself. Tables are <table> elements in HTML; in LaTeX they are floats with their captions (table,
    sidewaystable, ...) or a tabular, longtable and the like on its own. The markup stays as it is, except for LaTeX's
    comments. The item's text describes the table by rule, row by row. Tables and files that are left out are named with
    the reason.
    """,
    required=("folder", "to"),
    to=Path,
)
def run_files(args: Namespace) -> int:
    """Build the items; report their number, and the tables and files that were left out."""
    targets = {syntax: args.to / NAMES[syntax] for syntax in CUT}
    if args.to.suffix == ".json":  # Build only the format in the file's name.
        wanted: Format = "latex" if find_format(args.to) == "latex" else "html"
        check_file_name(args.to, wanted)
        targets = {wanted: args.to}
    suffixes = [suffix for suffix, syntax in SUFFIXES.items() if syntax in targets]
    paths = [path for path in sorted(args.folder.rglob("*")) if path.suffix.lower() in suffixes and path.is_file()]
    if not paths:
        missing = "no such file in it" if args.folder.is_dir() else "no such folder"
        raise DatasetError(args.folder, "", missing, f"a folder of {' and '.join(f'*{suffix}' for suffix in suffixes)}")
    with BuildProgress(sum_file_sizes(paths), "B") as progress:
        items_by_format, left_out = _build_items(paths, args.folder, progress)
    for where, reason in left_out.items():
        sys.stderr.write(f"{where} is left out: {reason}\n")
    counted = f"{len(left_out):,} {'table or file' if len(left_out) == 1 else 'tables or files'} left out"
    if not items_by_format:
        raise DatasetError(args.folder, "", f"no table that can be used ({counted})", "at least one")
    for written, items in items_by_format.items():
        with open_build_folder(targets[written]) as folder:
            write_atomically(encode_items(items), targets[written], folder)
        sys.stdout.write(f"{write_count(len(items), 'item')} in {targets[written]}\n")
    sys.stdout.write(f"{counted}, {write_count(len(paths), 'file')} read\n")
    return 0


def _build_items(
    paths: Iterable[Path], folder: Path, progress: BuildProgress
) -> tuple[dict[Format, list[TableItem]], dict[str, str]]:
    """Make items by format; also map each unused file or table (`a.tex, line 3`) to the reason why it is unused."""
    items_by_format: dict[Format, list[TableItem]] = {}
    left_out: dict[str, str] = {}
    for path in paths:
        name = str(path.relative_to(folder))
        progress.begin_stage(name)
        syntax = SUFFIXES[path.suffix.lower()]
        try:
            text = read_text(path)
            found_tables = list(CUT[syntax](text))
            if not found_tables:
                left_out[name] = "it has no table"
        except DatasetError as error:
            found_tables, left_out[name] = [], f"found {error.found}, expected {error.expected}"
        for found_table in found_tables:
            if reason := find_defect(found_table, syntax):
                line = text.count("\n", 0, found_table.start) + 1
                left_out[f"{name}, line {line}"] = reason
            else:
                tables = [table for table in read_tables(found_table.markup, syntax) if any(table.cells)]
                item = TableItem(INSTRUCTIONS[syntax], describe_tables(tables), found_table.markup)
                items_by_format.setdefault(syntax, []).append(item)
        progress.advance(sum_file_sizes([path]))
    return items_by_format, left_out


SPLIT = re.compile("train|test", re.IGNORECASE)
HEADS = "Files | Format | Train: count | Test: count | Tables: count | Rows: number 2 | Columns: number 2"
NOTE = "Rows and columns: means over all tables of the items, including rows and columns of names."


def make_statistics_row(syntax: Format, test: Sequence[TableItem], train: Sequence[TableItem] = ()) -> list[Cell]:
    """Return the format, numbers of items and tables, and mean rows and columns per table (None without tables)."""
    tables = [table for item in (*test, *train) for table in read_tables(item.output, syntax)]
    sizes = zip(*((len(table.rows), table.width) for table in tables), strict=True)
    means: list[Cell] = [fmean(counts) for counts in sizes] or [None, None]
    return [FORMAT_NAMES[syntax], len(train), len(test), len(tables), *means]


@declare_arguments(
    """
    files=FILE+  files of items, named after their format: table_test.json, html_test.json, latex_test.json

    Prints the paper's Table 1 for files of items: one row for each set of files whose names differ only in `train` and
    `test`, with one column of counts for each of the two. Rows and columns are means over all tables of the set, so an
    item with a Team and a Player table counts twice. Rows and columns of names count, and so does a row or column that
    a cell spans.
    """
)
def run_statistics(args: Namespace) -> int:
    """Print the statistics as a table."""
    from evalsuite.output.reports.markdown import convert_for_terminal, render_table

    names = [path.name for path in args.files]
    # Group the files by data set: file names of one data set differ only in the words `train` and `test`.
    sets: dict[tuple[Path, str], list[Path]] = {}
    for path in args.files:
        sets.setdefault((path.parent, SPLIT.sub("", path.name)), []).append(path)
    rows: list[list[Cell]] = []
    for paths in sets.values():
        splits: dict[bool, list[TableItem]] = {True: [], False: []}
        for path in paths:
            splits["train" in path.stem.lower()] += read_items(path)
        title = ", ".join(path.name if names.count(path.name) == 1 else str(path) for path in paths)
        rows.append([title, *make_statistics_row(infer_format(paths[0]), splits[False], splits[True])])
    table = render_table(Table("", parse_columns(HEADS), rows, NOTE))
    sys.stdout.write(f"{convert_for_terminal(table) if sys.stdout.isatty() else table}\n")
    return 0
