"""The ability map's six formulas, worked by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalsuite.benchmarks.struc_bench.abilities import ABILITIES, find_table_differences, measure_abilities
from evalsuite.metrics.tables import CellGrid
from evalsuite.metrics.tables.content import compare_content

SOURCE = "The Gulls have seven wins and 88 points, the Otters 4 wins and 81 points."
CELLS = st.sampled_from(["", "-", "1", "1.0", "2", "x", "X", "\u2713"])
TABLES = st.lists(
    st.builds(CellGrid, rows=st.lists(st.lists(CELLS, min_size=1, max_size=3).map(tuple), max_size=3).map(tuple)),
    max_size=2,
)
SHARES = st.floats(0, 1)


def table(*rows: str) -> CellGrid:
    return CellGrid(tuple(tuple(row.split(",")) for row in rows))


WANTED = table(",Wins,Points,Lead", "Gulls,7,88,3", "Otters,4,81,")


def shown(
    prediction: list[CellGrid],
    wanted: list[CellGrid] | None = None,
    *,
    source: str = SOURCE,
    form: float = 1.0,
    markup: float = 1.0,
    share: float = 1.0,
) -> dict[str, float]:
    wanted = [WANTED] if wanted is None else wanted
    comparison = find_table_differences(compare_content(prediction, wanted), wanted)
    return measure_abilities(comparison, source=source, form_share=form, markup_share=markup, table_share=share)


def test_each_formula_gives_what_was_worked_out_by_hand() -> None:
    prediction = table(",Wins,Points,Lead", "Gulls,7,81,3.0", "Otters,88,4,99")
    assert shown([prediction], form=0.7, markup=0.6, share=0.8) == pytest.approx(
        {
            "coverage": 5 / 5,  # 7, 88, 3, 4 and 81 all stand somewhere
            "formatting": 0.7,
            "reasoning": 1 / 1,  # 3, the one value that the text does not hold, is right as 3.0
            "comprehension": 2 / 5,  # only 7 and 3.0 stand where they belong
            "pragmatics": (0.6 + 1 / 2 + 0.8) / 3,  # of these 7 is in the wanted form
            "hallucination_control": 5 / 6,  # nobody knows where 99 comes from
        }
    )


def test_what_a_missing_row_takes_along_is_neither_covered_nor_worked_out() -> None:
    found = shown([table(",Wins,Points,Lead", "Otters,4,80,")])
    assert found == pytest.approx(
        {
            "coverage": 1 / 5,
            "formatting": 1.0,
            "reasoning": 0.0,
            "comprehension": 1.0,
            "pragmatics": 1.0,
            "hallucination_control": 1 / 2,
        }
    )


def test_sums_and_differences_among_the_columns_count_as_comprehension() -> None:
    wanted = table(",Points,Against,Lead", "Gulls,88,81,7", "Otters,90,70,20", "Terns,60,66,-6")
    assert shown([wanted], [wanted])["comprehension"] == 1.0
    # Another game, understood: no value is right, but the lead is the difference of the points in each row.
    other = table(",Points,Against,Lead", "Gulls,10,8,2", "Otters,9,5,4", "Terns,3,1,2")
    assert shown([other], [wanted])["comprehension"] == 1 / 2
    one_wrong = table(",Points,Against,Lead", "Gulls,88,81,7", "Otters,90,70,20", "Terns,60,66,6")
    assert shown([one_wrong], [wanted])["comprehension"] == pytest.approx((1 + 2 / 3) / 2)


def test_a_total_row_is_the_sum_of_all_others() -> None:
    wanted = table(",Home,Away", "Gulls,4,9", "Otters,5,13", "Terns,6,1", "Total,15,23")
    missing = table(",Home,Away", "Gulls,4,9", "Otters,5,13", "Terns,6,1")
    assert shown([missing], [wanted])["comprehension"] == pytest.approx((1 + 0) / 2)


def test_a_value_said_twice_covers_one_wanted_value() -> None:
    assert shown([table(",Wins,Points,Lead", "Gulls,7,7,7", "Otters,7,7,7")])["coverage"] == 1 / 5


def test_a_perfect_table_shows_every_ability() -> None:
    assert shown([WANTED]) == dict.fromkeys(ABILITIES, 1.0)


def test_an_answer_without_a_table_shows_none_but_invents_nothing() -> None:
    assert shown([], form=0.0, markup=0.0, share=0.0) == {
        "coverage": 0.0,
        "formatting": 0.0,
        "reasoning": 0.0,
        "comprehension": 0.0,
        "pragmatics": 0.0,
    }


def test_a_text_that_holds_every_value_gives_no_occasion_to_reason() -> None:
    assert "reasoning" not in shown([WANTED], source=f"{SOURCE} They lead by 3.")


def test_where_no_table_was_wanted_formatting_alone_is_measured() -> None:
    assert shown([WANTED], [], form=0.4) == {"formatting": 0.4}


def test_where_no_value_was_wanted_nothing_is_said_of_values() -> None:
    empty = table(",Wins", "Gulls,")
    assert shown([empty], [empty]) == {"formatting": 1.0}
    assert shown([table(",Wins", "Gulls,99")], [empty]) == {"formatting": 1.0, "hallucination_control": 0.0}


@given(TABLES, TABLES, st.text(max_size=40), SHARES, SHARES)
def test_every_ability_is_a_share(
    prediction: list[CellGrid], wanted: list[CellGrid], source: str, form: float, share: float
) -> None:
    found = shown(prediction, wanted, source=source, form=form, share=share)
    assert set(found) <= set(ABILITIES)
    assert all(0.0 <= value <= 1.0 for value in found.values()), found


@given(TABLES, st.text(max_size=40))
def test_a_table_against_itself_lacks_no_ability(tables: list[CellGrid], source: str) -> None:
    assert set(shown(tables, tables, source=source).values()) <= {1.0}
