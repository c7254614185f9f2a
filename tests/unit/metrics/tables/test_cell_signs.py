"""Signs of cells: arrows, stars, units, scripts and the parentheses of accounts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalsuite.metrics.tables import table_score
from evalsuite.metrics.tables.cells import INCOMPLETE, compare_cells, measure_cell_similarity

SIGNED = st.text(st.sampled_from("0123456789.,()%$*\u2191\u2193#_^-\u20ac x"), max_size=10)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("5.1 \u2191", "5.1 \u2193"),
        ("0.04***", "0.04*"),
        ("$50", "\u20ac50"),
        ("12%", "12\u2030"),
        ("x_1", "x^1"),
        ("Cases #", "Cases %"),
        ("\u00a55", "\u20a95"),
        ("4 \u2605", "4 \u2606"),
        ("3 \u2660", "3 \u2665"),
        (r"$\hat{y}$", r"$\tilde{y}$"),
        ("x\u2032", "x\u2033"),
    ],
)
def test_cells_whose_signs_contradict_each_other_differ(one: str, other: str) -> None:
    assert measure_cell_similarity(one, other) == measure_cell_similarity(other, one) == 0.0
    assert compare_cells(one, other) == "differs"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("50%", "50"),
        ("(1,234)", "1,234"),
        ("10^3", "103"),
        ("NA", ""),
        ("0.04*", "0.04"),
        (r"$\bar{x}$", "x"),
        (r"$f^\prime$", "f"),
        ("Jos\u00e9", "Jose"),
    ],
)
def test_a_cell_that_lacks_a_sign_counts_half(one: str, other: str) -> None:
    assert measure_cell_similarity(one, other) == measure_cell_similarity(other, one) == INCOMPLETE
    assert compare_cells(one, other) == "sign missing"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("10\u00b3", "10^3"),
        ("H$_2$O", "H2O"),
        ("m\u00b2", "m2"),
        ("\u2714", "\u2713"),
        ("\u00d7", "\u2717"),
        ("0.04$^{***}$", "0.04***"),
        (r"12\%", "12%"),
        ("**7**", "7"),
        ("*7*", "7"),
        ("(0,3)", "(0, 3)"),
        ("-", ""),
        ("N/A", "na"),
    ],
)
def test_cells_that_only_write_a_sign_in_another_way_are_equal(one: str, other: str) -> None:
    assert measure_cell_similarity(one, other) == measure_cell_similarity(other, one) == 1.0


def test_a_power_in_html_is_not_the_digits_one_after_the_other() -> None:
    html = "<table><tr><td>n</td></tr><tr><td>10<sup>3</sup></td></tr></table>"
    assert table_score("| n |\n| 103 |", html, format="html").content == 0.75
    assert table_score("| n |\n| $10^3$ |", html, format="html").content == 1.0


@pytest.mark.parametrize("markup", ["10<sup>3</sup>", "10<SUP class='n'>3</SUP>", "$10^3$", "10\u00b3"])
def test_a_power_in_any_markup_of_raw_text_is_not_the_digits_one_after_the_other(markup: str) -> None:
    assert measure_cell_similarity(markup, "103") == 0.5
    assert measure_cell_similarity(markup, "10^3") == 1.0


@pytest.mark.parametrize(("one", "other"), [("3-2", "2-3"), ("2020-01-02", "2020-02-01"), ("1, 2", "2, 1")])
def test_numbers_in_another_order_are_another_value(one: str, other: str) -> None:
    assert 0.0 < measure_cell_similarity(one, other) == measure_cell_similarity(other, one) < 1.0
    assert table_score(f"| n |\n|---|\n| {one} |", f"| n |\n|---|\n| {other} |").value < 1.0


def test_swapped_columns_of_counts_and_shares_cost_their_names() -> None:
    wanted = "| Team | Wins # | Wins % |\n|---|---|---|\n| Gulls | 7 | 70 |\n| Otters | 4 | 40 |"
    swapped = wanted.replace("Wins # | Wins %", "Wins % | Wins #")
    assert table_score(swapped, wanted, format="markdown").content == 7 / 9


@given(SIGNED, SIGNED)
def test_signs_are_compared_alike_in_both_directions(one: str, other: str) -> None:
    assert measure_cell_similarity(one, other) == measure_cell_similarity(other, one)
    assert measure_cell_similarity(one, one) == 1.0
