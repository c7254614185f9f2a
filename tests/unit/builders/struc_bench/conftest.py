"""The command as a user calls it, and games in RotoWire's form."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from evalsuite import cli

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

REPORT = (
    "The Otters ( 12 - 4 ) beat the visiting Herons 98 - 87 on Friday . Ann Bell led Dunmore with 31 points on 11 - of "
    "- 19 shooting and seven rebounds . She also had 4 assists . For Port Lea , Cleo Dray scored twelve points , while "
    "Eve Foss Jr. grabbed 9 boards . The Herons shot 41 percent from the field ."
)


def box(*players: tuple[str, dict[str, str]]) -> dict[str, dict[str, str]]:
    keys = sorted({key for _, values in players for key in values})
    columns = {key: {str(row): values.get(key, "N/A") for row, (_, values) in enumerate(players)} for key in keys}
    return {"PLAYER_NAME": {str(row): name for row, (name, _) in enumerate(players)}, **columns}


def make_game(**changes: Any) -> dict[str, Any]:
    """A game of which the report says less than the box score holds."""
    return {
        "home_name": "Otters",
        "vis_name": "Herons",
        "home_line": {
            "TEAM-NAME": "Otters",
            "TEAM-CITY": "Dunmore",
            "TEAM-WINS": "12",
            "TEAM-LOSSES": "4",
            "TEAM-PTS": "98",
            "TEAM-FG_PCT": "44",
            "TEAM-REB": "40",
        },
        "vis_line": {
            "TEAM-NAME": "Herons",
            "TEAM-CITY": "Port Lea",
            "TEAM-WINS": "9",
            "TEAM-LOSSES": "7",
            "TEAM-PTS": "87",
            "TEAM-FG_PCT": "41",
            "TEAM-REB": "38",
        },
        "box_score": box(
            ("Ann Bell", {"PTS": "31", "FGM": "11", "FGA": "19", "REB": "7", "AST": "4", "PF": "2"}),
            ("Cleo Dray", {"PTS": "12", "FGM": "5", "FGA": "9", "REB": "2", "AST": "1", "PF": "3"}),
            ("Eve Foss Jr.", {"PTS": "6", "FGM": "3", "FGA": "8", "REB": "9", "AST": "0", "PF": "1"}),
            ("Gil Hart", {"PTS": "2", "FGM": "1", "FGA": "1", "REB": "0", "AST": "0", "PF": "0"}),
        ),
        "summary": REPORT.split(),
        **changes,
    }


@dataclass
class Outcome:
    """How a command ended: its exit status and what it said."""

    status: int
    out: str
    err: str


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Callable[..., Outcome]:
    """Calls `evalsuite build struc-bench`."""

    def called(*arguments: object) -> Outcome:
        status = cli.main(["build", "struc-bench", *map(str, arguments)])
        return Outcome(status, *capsys.readouterr())

    return called


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str, Any], Path]:
    """Writes a file: bytes, text, or anything else as JSON."""

    def written(name: str, content: Any) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        text = content if isinstance(content, str | bytes) else json.dumps(content)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return written


@pytest.fixture
def game() -> Callable[..., dict[str, Any]]:
    """See `make_game`."""
    return make_game
