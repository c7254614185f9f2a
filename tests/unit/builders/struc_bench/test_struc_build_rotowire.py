from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from evalsuite.benchmarks.struc_bench.items import read_items
from evalsuite.builders.struc_bench.rotowire import (
    PLAYER,
    TEAM,
    format_tables,
    is_value_mentioned,
    read_number_pairs,
    read_numbers,
)
from evalsuite.metrics.tables import CellGrid, h_score, read_tables, table_score

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from evalsuite.builders.struc_bench.rotowire import BoxColumn

    Call = Callable[..., Any]
    Write = Callable[[str, Any], Path]
    Game = Callable[..., dict[str, Any]]

# By hand from the report in conftest.py.
WANTED = """\
Team:
|  | Percentage of field goals | Losses | Total points | Wins |
| Otters |  | 4 | 98 | 12 |
| Herons | 41 |  | 87 |  |

Player:
|  | Assists | Field goals attempted | Field goals made | Points | Total rebounds |
| Ann Bell | 4 | 19 | 11 | 31 | 7 |
| Cleo Dray |  |  |  | 12 |  |
| Eve Foss Jr. |  |  |  |  | 9 |"""
LINE = (
    "Team: <NEWLINE> | | Wins | <NEWLINE> | Otters | 12 | <NEWLINE> Player: <NEWLINE> | | Points | Assists | Steals | "
    "<NEWLINE> | Ann Bell | 31 | 4 | | <NEWLINE> | Cleo Dray | 12 | | 1 | <NEWLINE> | Eve Foss | | 2 | |"
)
NAMESAKES = "Bell had 2 points . Zoe Bell had 2 points ."
SHORT = "The Otters beat the Herons 98 - 87 ."
COLUMNS = {column.key: column for column in (*TEAM, *PLAYER)}


def test_tables_hold_what_the_report_says_and_nothing_else(
    call: Call, write: Write, game: Game, tmp_path: Path
) -> None:
    target = tmp_path / "new" / "table_test.json"
    assert call("rotowire", "--from", write("games.json", [game()]), "--to", target).status == 0
    (item,) = read_items(target)
    assert item.output == WANTED
    assert item.input == " ".join(game()["summary"])


def test_a_built_item_scores_full_against_itself(call: Call, write: Write, game: Game, tmp_path: Path) -> None:
    call("rotowire", "--from", write("games.json", [game()]), "--to", tmp_path / "table.json")
    (item,) = read_items(tmp_path / "table.json")
    assert table_score(item.output, item.output, format="markdown").value == 1.0
    released = h_score(item.output, item.output, format="markdown")
    # The released similarity is halved by its denominator only where something differs.
    assert released.parts["num_rows_match"] == released.parts["data_difflib_score"] == 1.0


@pytest.mark.parametrize(
    ("key", "values", "sentence", "said"),
    [
        ("PTS", {"PTS": "21"}, "Bell had twenty-one points", True),
        ("PTS", {"PTS": "21"}, "Bell had a 21 - point night", True),
        ("PTS", {"PTS": "21"}, "Bell had a twenty - one point night", True),
        ("PTS", {"PTS": "20"}, "Bell had a twenty - point night", True),
        ("PTS", {"PTS": "20"}, "Bell had a twenty - one point night", False),
        ("PTS", {"PTS": "21"}, "Bell had 21 rebounds", False),
        ("FG3M", {"FG3M": "3"}, "Bell hit two three - pointers", False),
        ("FG3M", {"FG3M": "2"}, "Bell hit two three - pointers", True),
        ("PTS", {"PTS": "3"}, "Bell had 3 points", True),
        ("PTS", {"PTS": "3"}, "Bell scored from the three - point line", False),
        ("PTS", {"PTS": "2"}, "Bell had 21 points", False),
        ("PTS", {"PTS": "2"}, "Bell had 2.5 points", False),
        ("PTS", {}, "Bell had 21 points", False),
        ("FGA", {"FGM": "7", "FGA": "13"}, "Bell ( 7 - 13 FG )", True),
        ("FGA", {"FGM": "7", "FGA": "13"}, "Bell went 7 - for - 13", True),
        ("FGA", {"FGM": "7", "FGA": "13"}, "Bell went 13 - 7", False),
        ("TEAM-LOSSES", {"TEAM-WINS": "3", "TEAM-LOSSES": "0"}, "the Otters ( 3 - 0 )", True),
        ("TEAM-PTS_QTR1", {"TEAM-PTS_QTR1": "30"}, "with 30 points in the first quarter", True),
        ("TEAM-PTS_QTR2", {"TEAM-PTS_QTR2": "30"}, "with 30 points in the first quarter", False),
    ],
)
def test_a_value_is_said_with_a_word_for_it_or_in_a_pair(
    key: str, values: dict[str, str], sentence: str, *, said: bool
) -> None:
    assert is_value_mentioned(sentence, values, COLUMNS[key]) is said


@given(st.integers(0, 999), st.integers(0, 999), st.sampled_from(["-", " - ", " - of - ", " for ", " of "]))
def test_a_pair_is_found_however_it_is_written(one: int, other: int, between: str) -> None:
    assert read_number_pairs(f"went {one}{between}{other} .") == {(str(one), str(other))}


@given(st.text(max_size=60), st.sampled_from([*TEAM, *PLAYER]))
def test_no_sentence_breaks_the_search(sentence: str, column: BoxColumn) -> None:
    assert is_value_mentioned(sentence, {column.key: "no number"}, column) is False
    assert all(number.isdecimal() for number in read_numbers(sentence))


def test_namesakes_are_told_apart_by_their_full_names_only(
    call: Call, write: Write, game: Game, tmp_path: Path
) -> None:
    changed = game()
    changed["box_score"]["PLAYER_NAME"]["3"] = "Zoe Bell"
    changed["summary"] = [*changed["summary"], *NAMESAKES.split()]
    call("rotowire", "--from", write("games.json", [changed]), "--to", tmp_path / "table.json")
    (item,) = read_items(tmp_path / "table.json")
    player = read_tables(item.output, "markdown")[1]
    assert [row[0] for row in player.rows[1:]] == ["Ann Bell", "Cleo Dray", "Eve Foss Jr.", "Zoe Bell"]


def test_every_game_whose_report_fills_a_table_is_an_item(call: Call, write: Write, game: Game, tmp_path: Path) -> None:
    source = write("games.json", [game(summary=SHORT.split()), game()])
    outcome = call("rotowire", "--from", source, "--to", tmp_path / "table.json")
    assert outcome.out.startswith("2 items in")
    assert len(read_items(tmp_path / "table.json")) == 2


def test_a_game_without_a_table_larger_than_three_by_three_is_no_item_where_that_is_asked(
    call: Call, write: Write, game: Game, tmp_path: Path
) -> None:
    short = game(summary=SHORT.split())
    source = write("games.json", [short, game(), short])
    outcome = call("rotowire", "--from", source, "--to", tmp_path / "table.json", "--larger-than-3x3")
    assert outcome.out.startswith("1 item in")
    assert "2 games passed over" in outcome.out
    short_alone = write("short.json", [short])
    outcome = call("rotowire", "--from", short_alone, "--to", tmp_path / "table2.json", "--larger-than-3x3")
    assert outcome.status == 2
    assert "no game with a table larger than 3 x 3" in outcome.err
    assert not (tmp_path / "table2.json").exists()


def test_paired_files_are_read_by_line(call: Call, write: Write, tmp_path: Path) -> None:
    write("source/test.text", "First report .\nSecond report .\n")
    data = write("source/test.data", f"{LINE}\n{LINE}\n")
    for source in (data, data.with_suffix(".text"), data.parent):
        assert call("rotowire", "--from", source, "--to", tmp_path / "table.json").status == 0
        items = read_items(tmp_path / "table.json")
        assert [item.input for item in items] == ["First report .", "Second report ."]
        team, player = read_tables(items[0].output, "markdown")
        assert (team.name, team.rows) == ("Team", (("", "Wins"), ("Otters", "12")))
        assert player.rows[2] == ("Cleo Dray", "12", "", "1")


def _without(record: dict[str, Any], *names: str) -> dict[str, Any]:
    return {key: value for key, value in record.items() if key not in names}


BROKEN: dict[str, tuple[Callable[[Game], Any], str]] = {
    "an object": (lambda game: game(), "the top of the file"),
    "a game that is text": (lambda game: [game(), "game"], "item 1"),
    "no summary": (lambda game: [game(), _without(game(), "summary")], "item 1: found only the fields"),
    "a summary in one piece": (lambda game: [game(summary="The Otters won .")], "item 0, field 'summary'"),
    "a token that is a number": (lambda game: [game(summary=["The", 3])], "field 'summary', element 2: found 3"),
    "no box score": (lambda game: [_without(game(), "box_score")], "item 0"),
    "a column that is a list": (lambda game: [game(box_score={"PLAYER_NAME": {"0": "A"}, "PTS": [1]})], "'PTS'"),
    "a column that is cut": (
        lambda game: [game(box_score={"PLAYER_NAME": {"0": "A", "1": "B"}, "PTS": {"0": "3"}})],
        "'PTS': found no row '1'",
    ),
    "a value that is true": (
        lambda game: [game(box_score={"PLAYER_NAME": {"0": "A"}, "PTS": {"0": True}})],
        "found true, expected a string",
    ),
    "one team twice": (lambda game: [game(vis_line=game()["home_line"])], "the team 'Otters' on both sides"),
}


@pytest.mark.parametrize("what", BROKEN)
def test_a_game_of_another_shape_is_one_message(
    what: str, call: Call, write: Write, game: Game, tmp_path: Path
) -> None:
    make, expected = BROKEN[what]
    outcome = call("rotowire", "--from", write("games.json", make(game)), "--to", tmp_path / "table.json")
    assert outcome.status == 2
    assert "games.json, " in outcome.err
    assert expected in outcome.err
    assert outcome.err.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["games.json"]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (json.dumps([{"summary": []}])[:-4].encode(), "found the end of the text"),
        (b'["\xe9"]', "the byte 0xe9, expected UTF-8 text"),
    ],
    ids=["truncated", "Latin-1"],
)
def test_a_damaged_file_is_one_message(content: bytes, expected: str, call: Call, write: Write, tmp_path: Path) -> None:
    outcome = call("rotowire", "--from", write("games.json", content), "--to", tmp_path / "table.json")
    assert outcome.status == 2
    assert expected in outcome.err
    assert "games.json" in outcome.err


@pytest.mark.parametrize(
    ("text", "data", "expected"),
    [
        ("A .\nB .\n", f"{LINE}\n", "test.data: found 1 lines, expected 2"),
        ("A .\n", "nothing here\n", "test.data, line 1: found no table"),
        ("\nA .\n", f"{LINE}\n{LINE}\n", "test.text, line 1: found nothing"),
        ("A .\n", f"{LINE[:-6]}\n", "line 1, table Player, row 4: found 2 cells, expected 4"),
        ("A .\n", LINE.replace("Team:", "Teams:"), "found a table named 'Teams', expected Team or Player"),
    ],
)
def test_paired_files_of_another_shape_are_one_message(
    text: str, data: str, expected: str, call: Call, write: Write, tmp_path: Path
) -> None:
    write("source/test.text", text)
    source = write("source/test.data", data)
    outcome = call("rotowire", "--from", source, "--to", tmp_path / "table.json")
    assert outcome.status == 2
    assert expected in outcome.err


def test_a_report_whose_tables_hold_nothing_is_passed_over(call: Call, write: Write, tmp_path: Path) -> None:
    write("source/test.text", "A .\nB .\n")
    source = write("source/test.data", f"Team: <NEWLINE> Player: <NEWLINE> |  |\n{LINE}\n")
    outcome = call("rotowire", "--from", source, "--to", tmp_path / "table.json")
    assert outcome.status == 0
    assert "1 game passed over for lack of a table that holds anything" in outcome.out


def test_missing_sources_are_named(call: Call, write: Write, tmp_path: Path) -> None:
    alone = write("alone/x.data", LINE)
    (tmp_path / "empty").mkdir()
    for source, expected in (
        (tmp_path / "no.json", "no.json: no such file"),
        (alone, "x.text: no such file"),
        (tmp_path / "empty", "empty: no such file, expected RotoWire"),
    ):
        outcome = call("rotowire", "--from", source, "--to", tmp_path / "table.json")
        assert outcome.status == 2
        assert expected in outcome.err


@pytest.mark.parametrize("name", ["games.json", "html_test.json", "table.txt"])
def test_an_output_whose_name_would_not_be_read_as_raw_text_is_refused(
    name: str, call: Call, write: Write, game: Game, tmp_path: Path
) -> None:
    outcome = call("rotowire", "--from", write("g.json", [game()]), "--to", tmp_path / name)
    assert outcome.status == 2
    assert "call it table_test.json" in outcome.err


def test_an_output_that_is_a_folder_is_one_message(call: Call, write: Write, game: Game, tmp_path: Path) -> None:
    (tmp_path / "table.json").mkdir()
    outcome = call("rotowire", "--from", write("g.json", [game()]), "--to", tmp_path / "table.json")
    assert outcome.status == 2
    assert "it is a folder" in outcome.err


def test_half_a_surrogate_pair_in_a_report_is_one_message(call: Call, write: Write, game: Game, tmp_path: Path) -> None:
    source = write("g.json", [game(summary=[*game()["summary"], "\ud83d"])])
    outcome = call("rotowire", "--from", source, "--to", tmp_path / "table.json")
    assert outcome.status == 2
    assert "g.json: found half of a surrogate pair" in outcome.err
    assert not (tmp_path / "table.json").exists()


NAME = st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1, max_size=8).filter(
    lambda name: not set(name) & set("\\`~<>#*_:+-=")
)


@given(st.lists(st.lists(NAME, min_size=3, max_size=3), min_size=2, max_size=4))
@example([["0", "0", "0"], ["0", "0", "│"]])
def test_written_tables_are_read_as_they_were(rows: list[list[str]]) -> None:
    table = CellGrid(tuple(map(tuple, rows)), name="Team")
    (read,) = read_tables(format_tables([table]), "markdown")
    assert [[*row] for row in read.rows] == [[*row] for row in _tidy(table).rows]


def _tidy(table: CellGrid) -> CellGrid:
    import unicodedata

    rows = tuple(tuple(unicodedata.normalize("NFC", cell) for cell in row) for row in table.rows)
    return CellGrid(rows, name=table.name)
