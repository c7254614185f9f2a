"""Build raw-text items from basketball games' box scores and reports: `evalsuite build struc-bench rotowire`."""

from __future__ import annotations

import re
import sys
from argparse import Namespace
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from evalsuite.benchmarks.struc_bench.items import TableItem, encode_items
from evalsuite.builders.building import BuildProgress, open_build_folder, sum_file_sizes, write_atomically
from evalsuite.builders.struc_bench.files import check_file_name
from evalsuite.core.errors import DatasetError, write_count
from evalsuite.core.option_values import declare_arguments
from evalsuite.metrics.numbers import NUMBER_WORDS, ONES
from evalsuite.metrics.tables import CellGrid, read_tables
from evalsuite.metrics.tables.plain_data import format_rows_as_markup
from evalsuite.samples.items import SourceItem, read_json_records, read_text

if TYPE_CHECKING:
    Rows = dict[str, dict[str, str]]

LARGER_THAN = 3  # The paper uses only tables with more than 3 rows and 3 columns, header row and name column included.


Game = tuple[str, Sequence[CellGrid]]
"""A game's report, and its tables `Team` and `Player`; a table without values is left out."""


def format_tables(tables: Iterable[CellGrid]) -> str:
    """Write tables as raw text, separated by blank lines."""
    return "\n\n".join(
        format_rows_as_markup([[" ".join(cell.split()) for cell in row] for row in table.rows], "markdown", table.name)
        for table in tables
    )


@dataclass(frozen=True, slots=True)
class BoxColumn:
    """A column of a box score."""

    key: str  # The column's name in the box score.
    title: str  # The column's name in a table.
    cue: str  # A regular expression for the words by which reports mention this column.
    pairs: tuple[tuple[str, str], ...] = ()  # Keys of two values that reports mention as a pair: 7 - of - 13.


FIELD = "field goals?|from the field|shots?|shooting"
THREE = "three(?: - |-| )?pointers?|threes|3 - pt|3pt|3(?: - |-)pointers?|beyond the arc|from deep|long range|treys?"
FREE = "free throws?|charity stripe|from the line|foul line"
WON_LOST, THREES = (("TEAM-WINS", "TEAM-LOSSES"),), (("FG3M", "FG3A"),)
FIELD_GOALS, FREE_THROWS = (("FGM", "FGA"),), (("FTM", "FTA"),)
RESULT = (("TEAM-PTS", "OTHER-PTS"), ("OTHER-PTS", "TEAM-PTS"))  # OTHER-PTS: the other team's points.

TEAM = (
    BoxColumn("TEAM-AST", "Number of team assists", "assists?|dimes?"),
    BoxColumn("TEAM-FG3_PCT", "Percentage of 3 points", THREE),
    BoxColumn("TEAM-FG_PCT", "Percentage of field goals", FIELD),
    BoxColumn("TEAM-FT_PCT", "Percentage of free throws", FREE),
    BoxColumn("TEAM-LOSSES", "Losses", "loss|losses|lost|defeats?|record", WON_LOST),
    BoxColumn("TEAM-PTS", "Total points", "points?|scored|scoring", RESULT),
    BoxColumn("TEAM-PTS_QTR1", "Points in 1st quarter", "(?:first|1st|opening) (?:quarter|period)"),
    BoxColumn("TEAM-PTS_QTR2", "Points in 2nd quarter", "(?:second|2nd) (?:quarter|period)"),
    BoxColumn("TEAM-PTS_QTR3", "Points in 3rd quarter", "(?:third|3rd) (?:quarter|period)"),
    BoxColumn("TEAM-PTS_QTR4", "Points in 4th quarter", "(?:fourth|4th|final) (?:quarter|period)"),
    BoxColumn("TEAM-REB", "Rebounds", "rebounds?|rebounding|boards?|glass|outrebounded"),
    BoxColumn("TEAM-TOV", "Turnovers", "turnovers?|giveaways?"),
    BoxColumn("TEAM-WINS", "Wins", "wins?|won|victory|victories|record", WON_LOST),
)
PLAYER = (
    BoxColumn("AST", "Assists", "assists?|dimes?"),
    BoxColumn("BLK", "Blocks", "blocks?|blocked|swats?|rejections?"),
    BoxColumn("DREB", "Defensive rebounds", "defensive (?:rebounds?|boards?|glass)"),
    BoxColumn("FG3A", "3-pointers attempted", THREE, THREES),
    BoxColumn("FG3M", "3-pointers made", THREE, THREES),
    BoxColumn("FG3_PCT", "3-pointer percentage", "percent from (?:three|deep|beyond)"),
    BoxColumn("FGA", "Field goals attempted", FIELD, FIELD_GOALS),
    BoxColumn("FGM", "Field goals made", FIELD, FIELD_GOALS),
    BoxColumn("FG_PCT", "Field goal percentage", "percent|percentage"),
    BoxColumn("FTA", "Free throws attempted", FREE, FREE_THROWS),
    BoxColumn("FTM", "Free throws made", FREE, FREE_THROWS),
    BoxColumn("FT_PCT", "Free throw percentage", "percent from the (?:line|stripe)"),
    BoxColumn("MIN", "Minutes played", "minutes?"),
    BoxColumn("OREB", "Offensive rebounds", "offensive (?:rebounds?|boards?|glass)"),
    BoxColumn("PF", "Personal fouls", "fouls?"),
    BoxColumn("PTS", "Points", "points?|scored|scoring"),
    BoxColumn("REB", "Total rebounds", "rebounds?|boards?"),
    BoxColumn("STL", "Steals", "steals?"),
    BoxColumn("TO", "Turnovers", "turnovers?"),
)
"""The columns have the names and the order of text-to-table, the source of the released data."""


ENDS = frozenset({".", "!", "?"})
NUMBER = re.compile(r"(?<![\d.,])\d+(?!\d|[.,]\d)")
SINGLE_WORDS = "|".join(word for word in NUMBER_WORDS if "-" not in word)
# RotoWire's reports are tokenized, so hyphens are separate tokens: twenty - one.
WORDS = re.compile(rf"\b({SINGLE_WORDS})(?:(?<=ty)\s?-\s?({'|'.join(ONES)}))?\b")
THREE_POINTER = re.compile(r"\b(?:three|3)\s?(?:-\s?point|pointer)")  # The shot "three-pointer"; its 3 is not a count.
PAIR = re.compile(
    r"(?<![\d.,])(?P<one>\d+)\s*(?:-\s*(?:(?:of|for)\s*-?)?|of|for|out of)\s*(?=(?P<other>\d+)(?!\d|[.,]\d))"
)


def _group_sentences_by_row(every_sentence: Sequence[str], names: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """Group sentences by the rows that they name; a sentence without a name has the rows of the previous sentence."""
    by_row: dict[str, list[str]] = {row: [] for row in names}
    subjects: list[str] = []
    for sentence in every_sentence:
        # Compare names with whole tokens, with or without spaces around hyphens.
        padded = f" {sentence} "
        subjects = [
            row
            for row, called in names.items()
            if any(f" {name} " in padded or f" {name.replace('-', ' - ')} " in padded for name in called)
        ] or subjects
        for row in subjects:
            by_row[row].append(sentence)
    return by_row


def is_value_mentioned(sentence: str, values: Mapping[str, str], column: BoxColumn) -> bool:
    """Tell whether a sentence about a row (a team or a player) states the row's value in a column."""
    value = values.get(column.key, "")
    if value in read_numbers(sentence) and re.search(rf"\b(?:{column.cue})\b", sentence, re.IGNORECASE):
        return True
    pairs = {(values.get(first, ""), values.get(second, "")) for first, second in column.pairs}
    return not pairs.isdisjoint(read_number_pairs(sentence))


# Cache the numbers, because each sentence is compared with every row and column.
@lru_cache(maxsize=256)
def read_numbers(sentence: str) -> frozenset[str]:
    """Return all whole numbers of a sentence as digits, including number words up to 99."""
    counted = THREE_POINTER.sub(" ", sentence.lower())
    words = (int(NUMBER_WORDS[one]) + int(NUMBER_WORDS.get(other, 0)) for one, other in WORDS.findall(counted))
    return frozenset(map(str, (*map(int, NUMBER.findall(counted)), *words)))


@lru_cache(maxsize=256)
def read_number_pairs(sentence: str) -> frozenset[tuple[str, str]]:
    """Return all pairs of numbers in a sentence, such as 7 - 13, 7 - of - 13, 7 for 13."""
    return frozenset((pair["one"], pair["other"]) for pair in PAIR.finditer(sentence))


def _make_table(
    name: str, columns: Sequence[BoxColumn], rows: Rows, names: Mapping[str, Sequence[str]], report: Sequence[str]
) -> CellGrid:
    """Make a table of the values that the report mentions, leaving out empty rows and columns.

    `rows` maps row names to values by column key, and `names` maps row names to the names that reports use.
    """
    mentioned = {
        row: {
            column.key
            for column in columns
            if column.key in rows[row] and any(is_value_mentioned(each, rows[row], column) for each in sentences)
        }
        for row, sentences in _group_sentences_by_row(report, names).items()
    }
    kept = [column for column in columns if any(column.key in keys for keys in mentioned.values())]
    cells = [
        (row, *(values[column.key] if column.key in mentioned[row] else "" for column in kept))
        for row, values in rows.items()
        if mentioned[row]
    ]
    return CellGrid((("", *(column.title for column in kept)), *cells) if cells else (), name=name)


SIDES = ("home", "vis")
ABSENT = frozenset({"N/A", ""})
SUFFIXES = frozenset({"Jr.", "Jr", "Sr.", "Sr", "II", "III", "IV"})
PLAYER_KEYS = frozenset(column.key for column in PLAYER)


def _read_json_games(path: Path) -> Iterator[Game]:
    """Yield the games of a JSON file; their tables contain only values that the report mentions."""
    for item in read_json_records(path, "item", first_number=0):
        tokens = item.read_list("summary", str)
        # Split the report into sentences and remove the punctuation that ends them.
        report = [" ".join(sentence) for ends, sentence in groupby(tokens, key=ENDS.__contains__) if not ends]
        tables = (_make_team_table(item, report), _make_player_table(item, report))
        yield " ".join(tokens), [table for table in tables if table.rows]


def _make_team_table(item: SourceItem, report: Sequence[str]) -> CellGrid:
    lines = {side: _format_values(item.read_item(f"{side}_line")) for side in SIDES}
    cities = [line.get("TEAM-CITY", "") for line in lines.values()]
    rows: Rows = {}
    names: dict[str, list[str]] = {}
    for (side, line), other in zip(lines.items(), reversed(lines.values()), strict=True):
        row = line.get("TEAM-NAME") or item.read(f"{side}_name", str)
        if row in rows:
            raise item.make_error(f"the team {row!r} on both sides", "two teams")
        rows[row] = line | {"OTHER-PTS": other.get("TEAM-PTS", "")}
        city = line.get("TEAM-CITY", "")
        names[row] = [row, *row.split()[-1:], *([city] if city and cities.count(city) == 1 else [])]
    return _make_table("Team", TEAM, rows, names, report)


def _format_values(line: SourceItem) -> dict[str, str]:
    """Return a line's values as texts; leave out absent values, and convert whole JSON numbers."""
    values = {
        key: str(value) if type(value) is int else line.read(key, str).strip() for key, value in line.fields.items()
    }
    return {key: value for key, value in values.items() if value not in ABSENT}


def _make_player_table(item: SourceItem, report: Sequence[str]) -> CellGrid:
    box_score = item.read_item("box_score")
    named = box_score.read_item("PLAYER_NAME")
    figures = {key: box_score.read(key, dict) for key in PLAYER_KEYS & box_score.fields.keys()}
    rows: Rows = {}
    for number in named.fields:
        player = named.read(number, str).strip()
        if lacking := sorted(key for key, column in figures.items() if number not in column):
            raise box_score.make_error(f"no row {number!r}", "a value for every row of 'PLAYER_NAME'", lacking[0])
        row = {key: column[number] for key, column in figures.items()}
        values = _format_values(replace(box_score, fields=row))
        if player:
            rows[player] = values
    last_names = {row: next((word for word in row.split()[::-1] if word not in SUFFIXES), row) for row in rows}
    shared = Counter(last_names.values())
    names = {row: [row, *([last] if shared[last] == 1 else [])] for row, last in last_names.items()}
    return _make_table("Player", PLAYER, rows, names, report)


NAMES = ("Team", "Player")


def _read_text_games(table_file: Path) -> Iterator[Game]:
    """Yield games from two files: one with the tables, and a `.text` file of the same name with the reports."""
    reports = table_file.with_suffix(".text")
    texts, tables = _read_lines(reports), _read_lines(table_file)
    if len(texts) != len(tables):
        raise DatasetError(table_file, "", f"{len(tables)} lines", f"{len(texts)}, one for each in {reports.name}")
    for number, (text, line) in enumerate(zip(texts, tables, strict=True), 1):
        if not text.strip():
            raise DatasetError(reports, f"line {number}", "nothing", "a report")
        found = list(_read_team_and_player_tables(line, table_file, f"line {number}"))
        yield text.replace("<NEWLINE>", "\n").strip(), found


def _read_lines(path: Path) -> list[str]:
    lines = read_text(path).split("\n")
    return lines[:-1] if not lines[-1].strip() else lines


def _read_team_and_player_tables(line: str, path: Path, where: str) -> Iterator[CellGrid]:
    tables = read_tables(line, "markdown")
    # A line without tables is valid if it has the names of both tables: the report mentions no value.
    if not tables and not all(f"{name}:" in line for name in NAMES):
        raise DatasetError(path, where, "no table", "Team: and Player: tables, rows between <NEWLINE>")
    for table in tables:
        name = next((name for name in NAMES if name.lower() == table.name.lower()), None)
        if name is None:
            raise DatasetError(path, where, f"a table named {table.name!r}", "Team or Player")
        for place, row in enumerate(table.rows, 1):
            if len(row) != len(table.columns):
                expected = f"{len(table.columns)} as in its first row"
                raise DatasetError(path, f"{where}, table {name}, row {place}", f"{len(row)} cells", expected)
        yield replace(table, name=name)


INSTRUCTION = (
    "Make tables of the basketball report below: a table Team with a row for each team and a table Player with a "
    "row for each player, as far as the report gives their figures. Leave a cell empty where it says nothing."
)
A_TABLE = "a table that holds anything"
A_LARGE_TABLE = "a table larger than 3 x 3"
EXPECTED = "RotoWire's *.json, or pairs of *.text and *.data"


@declare_arguments(
    f"""
    source=--from PATH  {EXPECTED}, or a folder
    --to FILE           the JSON file to write, such as table_test.json
    large_only=--larger-than-3x3  keep only games with a table of more than 3 rows and 3 columns

    Reads RotoWire's JSON (box_score, home_line, vis_line, summary) or the paired .text and .data files of
    text-to-table. A table keeps the rows and columns of a box score in which the report mentions a value; other cells
    are blank. The tables in .data files are reduced already. Every game whose report mentions a value of a table
    becomes an item. With --larger-than-3x3, only games with a table of more than 3 rows and 3 columns become items;
    rows and columns of names count.
    """,
    required=("source", "to"),
    source=Path,
)
def run_rotowire(args: Namespace) -> int:
    """Build the items, and report their number."""
    check_file_name(args.to, "markdown")
    files = _list_source_files(args.source)
    wanted, larger_than = (A_LARGE_TABLE, LARGER_THAN) if args.large_only else (A_TABLE, 0)
    items, passed_over = list[TableItem](), 0
    with open_build_folder(args.to) as folder, BuildProgress(sum_file_sizes(files), "B") as progress:
        for path in files:
            progress.begin_stage(path.name)
            for text, tables in _read_text_games(path) if path.suffix == ".data" else _read_json_games(path):
                if any(any(table.cells) and min(len(table.rows), table.width) > larger_than for table in tables):
                    items.append(TableItem(INSTRUCTION, text, format_tables(tables)))
                else:
                    passed_over += 1
            progress.advance(path.stat().st_size)
        if not items:
            raise DatasetError(args.source, "", f"no game with {wanted}", "at least one")
        write_atomically(encode_items(items), args.to, folder)
    sys.stdout.write(
        f"{write_count(len(items), 'item')} in {args.to}; "
        f"{write_count(passed_over, 'game')} passed over for lack of {wanted}\n"
    )
    return 0


def _list_source_files(source: Path) -> list[Path]:
    """List the files to read; of a pair of files (tables and reports), list only the file with the tables."""
    if not source.is_dir():
        return [source.with_suffix(".data") if source.suffix == ".text" else source]
    paths = {path.with_suffix(".data") if path.suffix == ".text" else path for path in source.iterdir()}
    if files := sorted(path for path in paths if path.suffix in {".json", ".data"}):
        return files
    raise DatasetError(source, "", "no such file", EXPECTED)
