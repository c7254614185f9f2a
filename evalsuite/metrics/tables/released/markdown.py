"""Released definition, raw text: a Team and a Player table, cut out by searching for their names."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from evalsuite.metrics.tables.similarity import levenshtein_similarity, matching_ratio

if TYPE_CHECKING:
    from collections.abc import Sequence

CONTENT = ("data_levenshtein_score", "data_difflib_score")
FORMAT = ("num_rows_match", "num_cols_match", "columns_levenshtein_score", "columns_difflib_score")
LINE_END = re.compile(r"\n|<NEWLINE>|<newline>")
NOT_FOUND = -1


@dataclass(frozen=True, slots=True)
class RawTable:
    """Rows of stripped cells, the column names first."""

    rows: Sequence[Sequence[str]]

    @property
    def columns(self) -> Sequence[str]:
        """The first row."""
        return self.rows[0] if self.rows else ()

    @property
    def data(self) -> list[str]:
        """The cells of the other rows, one after the other."""
        return [cell for row in self.rows[1:] for cell in row]

    @property
    def width(self) -> int:
        """The number of cells in the widest row."""
        return max(map(len, self.rows), default=0)


def parts(prediction: str, reference: str) -> dict[str, float]:
    """All parts, each the mean over the two tables."""
    scored = [
        _table_parts(read_table(predicted), read_table(wanted))
        for predicted, wanted in zip(cut_tables(prediction), cut_tables(reference), strict=True)
    ]
    return {name: sum(table[name] for table in scored) / len(scored) for name in (*FORMAT, *CONTENT)}


def cut_tables(text: str) -> tuple[str, str]:
    """The texts of the Team and the Player table.

    Places are searched in the lower-case text but cut from the text as it is; where lower-casing changes
    the length (İ), the places are off. What is not found has the place -1 and is used like any other: a
    search from there sees the last character only, a slice that ends there lacks it.
    """
    lower = text.lower()
    team = lower.find("team")
    player = _find_from(lower, team, "player")
    team_starts, team_ends = _find_from(lower, team, "|"), text[:player].rfind("|")
    player_starts, player_ends = _find_from(lower, player, "|"), text.rfind("|")
    return text[team_starts : team_ends + 1], text[player_starts : player_ends + 1]


def _find_from(text: str, start: int, wanted: str) -> int:
    # No name longer than a character can be found in the last one, and a bar found there has this place.
    return NOT_FOUND if start == NOT_FOUND else text.find(wanted, start)


def read_table(text: str) -> RawTable:
    """Splits a table's text into rows and cells, without separator rows and empty outer columns."""
    rows = [[cell.strip() for cell in line.split("|")] for line in LINE_END.split(text)]
    rows = [row for row in rows if "".join(row).strip("-=")]
    if not any(row[0] for row in rows):
        rows = [row[1:] for row in rows]
    if not any(row[-1] for row in rows):
        rows = [row[:-1] for row in rows]
    return RawTable(rows)


def _table_parts(prediction: RawTable, reference: RawTable) -> dict[str, float]:
    return {
        "num_rows_match": float(len(prediction.rows) == len(reference.rows)),
        "num_cols_match": float(prediction.width == reference.width),
        "columns_levenshtein_score": levenshtein_similarity(prediction.columns, reference.columns),
        "columns_difflib_score": matching_ratio(prediction.columns, reference.columns),
        "data_levenshtein_score": levenshtein_similarity(prediction.data, reference.data),
        "data_difflib_score": matching_ratio(prediction.data, reference.data),
    }
