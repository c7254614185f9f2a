"""Names, data and structure of an output, from the comparison behind its score."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalsuite.benchmarks.struc_bench.abilities import CellPair, TableComparison, find_table_differences
from evalsuite.metrics.tables import CellGrid, table_score
from evalsuite.metrics.tables.cells import compare_cells, is_blank
from evalsuite.metrics.tables.content import compare_content

WANTED = CellGrid((("", "Wins", "Points"), ("Gulls", "7", "88"), ("Otters", "4", "81")), name="Team")
CELLS = st.sampled_from(["", "-", "1", "2", "1.0", "x", "X", "y", "\u2713"])
NAMES = st.sampled_from(["", "a", "b", "c", "A", "d e"])
ROWS = st.lists(st.lists(CELLS, min_size=1, max_size=4).map(tuple), max_size=4).map(tuple)
TABLES = st.lists(st.builds(CellGrid, rows=ROWS, name=st.sampled_from(["", "Team", "Player"])), max_size=3)


def table(*rows: str, name: str = "Team") -> CellGrid:
    return CellGrid(tuple(tuple(row.split(",")) for row in rows), name=name)


@st.composite
def named_tables(draw: st.DrawFn) -> CellGrid:
    """Tables whose rows and columns have names that differ."""
    rows, columns = (draw(st.lists(WORDS, min_size=1, max_size=4, unique=True)) for _ in range(2))
    cells = [tuple(draw(CELLS) for _ in columns) for _ in rows]
    return CellGrid((("", *columns), *((row, *data) for row, data in zip(rows, cells, strict=True))))


WORDS = st.text(st.sampled_from("abc"), min_size=1, max_size=4)


def compare(prediction: list[CellGrid], wanted: list[CellGrid]) -> TableComparison:
    return find_table_differences(compare_content(prediction, wanted), wanted)


def structure(prediction: CellGrid, wanted: CellGrid = WANTED) -> dict[str, int]:
    return dict(+compare([prediction], [wanted]).structure)


def test_a_table_and_itself_agree_in_every_cell() -> None:
    found = compare([WANTED], [WANTED])
    assert found.cells == [
        CellPair("7", "7", "same"),
        CellPair("88", "88", "same"),
        CellPair("4", "4", "same"),
        CellPair("81", "81", "same"),
    ]
    assert (found.structure.total(), found.names, found.lost, found.tables) == (0, [], [], 1)


def test_a_missing_row_loses_its_cells() -> None:
    found = compare([table(",Wins,Points", "Otters,4,81")], [WANTED])
    assert +found.structure == Counter({"missing rows": 1})
    assert found.lost == ["7", "88"]
    assert found.cells == [CellPair("4", "4", "same"), CellPair("81", "81", "same")]


def test_a_missing_column_loses_its_cells() -> None:
    found = compare([table(",Points", "Gulls,88", "Otters,81")], [WANTED])
    assert +found.structure == Counter({"missing columns": 1})
    assert found.lost == ["7", "4"]


def test_extra_rows_and_columns_are_counted_and_their_cells_kept_as_said() -> None:
    found = compare([table(",Wins,Points,Fouls", "Gulls,7,88,3", "Otters,4,81,5", "Herons,1,60,2")], [WANTED])
    assert +found.structure == Counter({"extra rows": 1, "extra columns": 1})
    assert found.predicted == ["7", "88", "3", "4", "81", "5", "1", "60", "2"]
    assert [pair.verdict for pair in found.cells] == ["same"] * 4


def test_missing_and_extra_tables_are_counted() -> None:
    other = table(",Points", "Ina,24", name="Player")
    missing, extra = compare([WANTED], [WANTED, other]), compare([WANTED, other], [WANTED])
    assert +missing.structure == Counter({"missing tables": 1})
    assert (missing.lost, missing.tables) == (["24"], 2)
    assert +extra.structure == Counter({"extra tables": 1})
    assert extra.predicted == ["7", "88", "4", "81", "24"]


def test_a_short_row_lacks_cells_and_a_table_of_one_column_has_no_row_names() -> None:
    assert compare([table(",Wins,Points", "Gulls,7", "Otters,4,81")], [WANTED]).cells[1] == CellPair(
        "", "88", "missing"
    )
    single = compare([table("Colour", "red", "blue")], [table("Colour", "red", "green")])
    assert single.cells == [CellPair("red", "red", "same"), CellPair("blue", "green", "differs")]


def test_no_table_at_all_is_a_missing_one() -> None:
    found = compare([], [WANTED])
    assert +found.structure == Counter({"missing tables": 1})
    assert found.lost == found.wanted_cells == ["7", "88", "4", "81"]
    assert compare([], []).tables == 0


@pytest.mark.parametrize(
    ("predicted", "wanted", "verdict"),
    [
        ("50", "50", "same"),
        (" 50", "50 ", "same"),
        ("50", "50.0%", "sign missing"),
        ("50.0", "50", "other form"),
        ("12", "12:00", "other form"),
        ("ann", "Ann", "other form"),
        ("", "-", "other form"),
        ("", "n/a", "sign missing"),
        ("5.1 \u2191", "5.1 \u2193", "differs"),
        ("51", "50", "differs"),
        ("A+", "A-", "differs"),
        ("\u2713", "\u2717", "differs"),
        ("", "50", "missing"),
        ("n/a", "50", "missing"),
        ("50", "", "unwanted"),
        ("0", "-", "unwanted"),
        ("", "", "blank"),
        ("-", "-", "blank"),
    ],
)
def test_a_cell_is_judged_by_value_and_form(predicted: str, wanted: str, verdict: str) -> None:
    assert compare_cells(predicted, wanted) == verdict


def test_every_row_of_a_head_names_the_columns() -> None:
    head = (("", "Wins", "Wins"), ("", "home", "away"), ("Gulls", "7", "5"))
    wanted = CellGrid(head, head_rows=2)
    found = compare([CellGrid(head)], [wanted])
    assert [pair.wanted for pair in found.cells] == ["7", "5"]
    assert found.names == []
    other = CellGrid((head[0], ("", "home", "here"), head[2]))
    assert compare([other], [wanted]).names == [("here", "away")]


@given(TABLES)
def test_tables_compared_with_themselves_have_no_errors(tables: list[CellGrid]) -> None:
    found = compare(tables, tables)
    assert found.structure.total() == 0
    assert (found.names, found.lost) == ([], [])
    assert {pair.verdict for pair in found.cells} <= {"same", "blank"}
    assert found.predicted == found.wanted_cells


@given(TABLES, TABLES)
def test_every_wanted_cell_is_either_compared_or_lost(prediction: list[CellGrid], wanted: list[CellGrid]) -> None:
    found, itself = compare(prediction, wanted), compare(wanted, wanted)
    assert Counter(found.wanted_cells) == Counter(itself.wanted_cells)


@given(CELLS, CELLS)
def test_a_verdict_is_mirrored_when_the_sides_change(one: str, other: str) -> None:
    mirror = {"missing": "unwanted", "unwanted": "missing"}
    verdict = compare_cells(one, other)
    assert compare_cells(other, one) == mirror.get(verdict, verdict)
    assert (verdict in {"missing", "unwanted"}) == (is_blank(one) != is_blank(other))


def test_a_table_in_another_markup_has_the_same_cells() -> None:
    html = "<table><tr><th></th><th>Wins</th></tr><tr><td><b>Gulls</b></td><td>7</td></tr></table>"
    score = table_score("| | Wins |\n|---|---|\n| **Gulls** | 7 |", html, format="html")
    found = find_table_differences(score.match.content, score.match.wanted.tables)
    assert found.cells == [CellPair("7", "7", "same")]
    assert found.names == []
    assert score.content == 1.0
