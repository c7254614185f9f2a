"""The columns of RotoWire's box scores: what they are called in a table, and how a report speaks of them."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BoxColumn:
    """A column.

    Attributes:
        key: its name in the box score.
        title: its name in a table.
        cue: a sentence that gives its value as a single number has one of these words.
        first: key of the column that stands before this one where both are given as a pair: 7 - of - 13.
        second: key of the one that stands after it, likewise.
    """

    key: str
    title: str
    cue: re.Pattern[str]
    first: str = ""
    second: str = ""


FIELD = "field goals?|from the field|shots?|shooting"
THREE = "three(?: - |-| )?pointers?|threes|3 - pt|3pt|3(?: - |-)pointers?|beyond the arc|from deep|long range|treys?"
FREE = "free throws?|charity stripe|from the line|foul line"


def _column(key: str, title: str, cue: str, first: str = "", second: str = "") -> BoxColumn:
    return BoxColumn(key, title, re.compile(rf"\b(?:{cue})\b", re.IGNORECASE), first, second)


TEAM = (
    _column("TEAM-AST", "Number of team assists", "assists?|dimes?"),
    _column("TEAM-FG3_PCT", "Percentage of 3 points", THREE),
    _column("TEAM-FG_PCT", "Percentage of field goals", FIELD),
    _column("TEAM-FT_PCT", "Percentage of free throws", FREE),
    _column("TEAM-LOSSES", "Losses", "loss|losses|lost|defeats?|record", first="TEAM-WINS"),
    _column("TEAM-PTS", "Total points", "points?|scored|scoring"),
    _column("TEAM-PTS_QTR1", "Points in 1st quarter", "(?:first|1st|opening) (?:quarter|period)"),
    _column("TEAM-PTS_QTR2", "Points in 2nd quarter", "(?:second|2nd) (?:quarter|period)"),
    _column("TEAM-PTS_QTR3", "Points in 3rd quarter", "(?:third|3rd) (?:quarter|period)"),
    _column("TEAM-PTS_QTR4", "Points in 4th quarter", "(?:fourth|4th|final) (?:quarter|period)"),
    _column("TEAM-REB", "Rebounds", "rebounds?|rebounding|boards?|glass|outrebounded"),
    _column("TEAM-TOV", "Turnovers", "turnovers?|giveaways?"),
    _column("TEAM-WINS", "Wins", "wins?|won|victory|victories|record", second="TEAM-LOSSES"),
)
PLAYER = (
    _column("AST", "Assists", "assists?|dimes?"),
    _column("BLK", "Blocks", "blocks?|blocked|swats?|rejections?"),
    _column("DREB", "Defensive rebounds", "defensive (?:rebounds?|boards?|glass)"),
    _column("FG3A", "3-pointers attempted", THREE, first="FG3M"),
    _column("FG3M", "3-pointers made", THREE, second="FG3A"),
    _column("FG3_PCT", "3-pointer percentage", "percent from (?:three|deep|beyond)"),
    _column("FGA", "Field goals attempted", FIELD, first="FGM"),
    _column("FGM", "Field goals made", FIELD, second="FGA"),
    _column("FG_PCT", "Field goal percentage", "percent|percentage"),
    _column("FTA", "Free throws attempted", FREE, first="FTM"),
    _column("FTM", "Free throws made", FREE, second="FTA"),
    _column("FT_PCT", "Free throw percentage", "percent from the (?:line|stripe)"),
    _column("MIN", "Minutes played", "minutes?"),
    _column("OREB", "Offensive rebounds", "offensive (?:rebounds?|boards?|glass)"),
    _column("PF", "Personal fouls", "fouls?"),
    _column("PTS", "Points", "points?|scored|scoring"),
    _column("REB", "Total rebounds", "rebounds?|boards?"),
    _column("STL", "Steals", "steals?"),
    _column("TO", "Turnovers", "turnovers?"),
)
"""Named and in the order as text-to-table has them, which the released data come from."""
