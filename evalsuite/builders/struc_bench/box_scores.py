"""RotoWire's JSON: a list of games, each with its box score, both teams' lines and a report in tokens.

The corpus: Wiseman, Shieber, Rush, Challenges in Data-to-Document Generation (EMNLP 2017).
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from evalsuite.benchmarks.dataset_files import expect, read_json, take
from evalsuite.builders.struc_bench.box_columns import PLAYER, TEAM
from evalsuite.builders.struc_bench.mentions import about, is_said, narrow, pairs, sentences
from evalsuite.builders.struc_bench.raw_text import Game
from evalsuite.core.errors import DatasetError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from evalsuite.metrics.tables import CellGrid

    Rows = dict[str, dict[str, str]]

SIDES = ("home", "vis")
ABSENT = frozenset({"N/A", ""})
SUFFIXES = frozenset({"Jr.", "Jr", "Sr.", "Sr", "II", "III", "IV"})
PLAYER_KEYS = frozenset(column.key for column in PLAYER)
TEAM_KEYS = frozenset(column.key for column in TEAM)


def read_box_scores(path: Path) -> Iterator[Game]:
    """The games of a file, with tables of what their reports say.

    Raises:
        DatasetError: it is not as published; the message names the game.
    """
    for place, record in enumerate(read_json(path, list)):
        where = f"item {place}"
        yield _game(expect(record, dict, path, where), path, where)


def _game(record: dict[str, Any], path: Path, where: str) -> Game:
    tokens = take(record, "summary", list, path, where)
    for place, token in enumerate(tokens):
        expect(token, str, path, f"{where}, field 'summary', token {place}")
    report = sentences(tokens)
    tables = (_team_table(record, report, path, where), _player_table(record, report, path, where))
    return Game(" ".join(tokens), tuple(table for table in tables if table.rows))


def _team_table(record: dict[str, Any], report: Sequence[str], path: Path, where: str) -> CellGrid:
    lines = {side: _line(record, side, path, where) for side in SIDES}
    cities = [line.get("TEAM-CITY", "") for line in lines.values()]
    rows: Rows = {}
    names: dict[str, list[str]] = {}
    for side, line in lines.items():
        row = line.get("TEAM-NAME") or take(record, f"{side}_name", str, path, where)
        if row in rows:
            raise DatasetError(path, where, f"twice the team {row!r}", "two teams")
        rows[row] = {key: value for key, value in line.items() if key in TEAM_KEYS}
        city = line.get("TEAM-CITY", "")
        names[row] = [row, *row.split()[-1:], *([city] if city and cities.count(city) == 1 else [])]
    mentioned: dict[str, set[str]] = {}
    for row, about_row in about(report, names).items():
        other = next(values for name, values in rows.items() if name != row)
        mentioned[row] = {
            column.key
            for column in TEAM
            if column.key in rows[row] and any(is_said(sentence, rows[row], column) for sentence in about_row)
        }
        if any(_is_score(sentence, rows[row], other) for sentence in about_row):
            mentioned[row].add("TEAM-PTS")
    return narrow("Team", TEAM, rows, mentioned)


def _is_score(sentence: str, one: Mapping[str, str], other: Mapping[str, str]) -> bool:
    points = one.get("TEAM-PTS", ""), other.get("TEAM-PTS", "")
    return not {points, points[::-1]}.isdisjoint(pairs(sentence))


def _line(record: dict[str, Any], side: str, path: Path, where: str) -> dict[str, str]:
    fields = take(record, f"{side}_line", dict, path, where)
    values = {key: _value(value, path, f"{where}, {side}_line, {key!r}") for key, value in fields.items()}
    return {key: value for key, value in values.items() if value not in ABSENT}


def _player_table(record: dict[str, Any], report: Sequence[str], path: Path, where: str) -> CellGrid:
    rows = _players(take(record, "box_score", dict, path, where), path, f"{where}, box_score")
    last_names = {row: _last_name(row) for row in rows}
    shared = Counter(last_names.values())
    names = {row: [row, *([last] if shared[last] == 1 else [])] for row, last in last_names.items()}
    mentioned = {
        row: {
            column.key
            for column in PLAYER
            if column.key in rows[row] and any(is_said(sentence, rows[row], column) for sentence in about_row)
        }
        for row, about_row in about(report, names).items()
    }
    return narrow("Player", PLAYER, rows, mentioned)


def _players(columns: dict[str, Any], path: Path, where: str) -> Rows:
    """The values of every player who played, by full name and key."""
    named = take(columns, "PLAYER_NAME", dict, path, where)
    rows: Rows = {}
    for number, name in named.items():
        player = expect(name, str, path, f"{where}, 'PLAYER_NAME', row {number!r}").strip()
        values = {
            key: _value(_entry(column, number, path, f"{where}, {key!r}"), path, f"{where}, {key!r}")
            for key, column in columns.items()
            if key in PLAYER_KEYS
        }
        if player:
            rows[player] = {key: value for key, value in values.items() if value not in ABSENT}
    return rows


def _entry(column: Any, number: str, path: Path, where: str) -> Any:
    values = expect(column, dict, path, where)
    if number not in values:
        raise DatasetError(path, where, f"no row {number!r}", "a value for every row of 'PLAYER_NAME'")
    return values[number]


def _value(value: Any, path: Path, where: str) -> str:
    """A value as text; whole numbers may stand there as such."""
    return str(value) if type(value) is int else expect(value, str, path, where).strip()


def _last_name(name: str) -> str:
    words = name.split()
    while len(words) > 1 and words[-1] in SUFFIXES:
        words.pop()
    return words[-1]
