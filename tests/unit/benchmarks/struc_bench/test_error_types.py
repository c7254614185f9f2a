"""The paper's four types of errors."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalsuite.benchmarks.struc_bench.abilities import (
    ERROR_FREE,
    ERROR_TYPES,
    RIGHT_VALUE_VERDICTS,
    TableComparison,
    find_table_differences,
    flag_error_types,
    measure_abilities,
)
from evalsuite.metrics.tables import FORMATS, CellGrid, Format, read_tables, table_score
from evalsuite.metrics.tables.cells import read_cell_value
from evalsuite.metrics.tables.content import compare_content
from evalsuite.metrics.tables.plain_data import format_rows_as_markup

WANTED = """\
Team:
| | Wins | Share | Start | Coach |
| Gulls | 7 | 50.0% | 12:00 | Ida |
| Otters | 4 | 33.0% | 15:30 | |
"""
CELLS = st.sampled_from(["", "-", "1", "1.0", "x", "X"])
TABLES = st.lists(
    st.builds(CellGrid, rows=st.lists(st.lists(CELLS, min_size=1, max_size=3).map(tuple), max_size=3).map(tuple)),
    max_size=2,
)


def compared(prediction: list[CellGrid], wanted: list[CellGrid]) -> TableComparison:
    return find_table_differences(compare_content(prediction, wanted), wanted)


def found(prediction: str) -> set[str]:
    """The types of errors that a prediction has."""
    types = flag_error_types(compared(read_tables(prediction, "markdown"), read_tables(WANTED, "markdown")))
    assert list(types) == [*ERROR_TYPES, ERROR_FREE]
    assert types.pop(ERROR_FREE) == float(not any(types.values()))
    return {name for name, value in types.items() if value}


@pytest.mark.parametrize(
    ("was", "becomes", "types"),
    [
        ("Wins", "Wins", set()),
        ("50.0%", "50", {"element_format_error"}),
        ("12:00", "12", {"element_format_error"}),
        ("| 7 |", "| seven |", {"element_format_error"}),
        ("| 7 |", "| 8 |", {"element_error"}),
        ("| 7 |", "| |", {"element_error"}),
        ("15:30", "15", {"element_error"}),
        ("15:30 | |", "15:30 | Bo |", {"element_error"}),
        ("Gulls", "Seagulls", {"naming_error"}),
        ("Share", "Quota", {"naming_error"}),
        ("Share", "Share %", {"naming_error"}),
        ("| | Wins", "| Team | Wins", {"naming_error"}),
        ("Gulls", "GULLS", set()),
        ("| Otters | 4 | 33.0% | 15:30 | |\n", "", {"structure_error"}),
        ("15:30 | |\n", "15:30 | |\n| Herons | 1 | 2% | 9:00 | |\n", {"structure_error"}),
        (WANTED, "There is no table.", {"structure_error"}),
        ("| 7 | 50.0% |", "| 9 | 50 |", {"element_error", "element_format_error"}),
        ("| Gulls | 7 | 50.0% |", "| Seagulls | 9 | 50 |", set(ERROR_TYPES) - {"structure_error"}),
    ],
)
def test_each_type_is_found_for_what_it_is(was: str, becomes: str, types: set[str]) -> None:
    assert WANTED.count(was) == 1
    assert found(WANTED.replace(was, becomes)) == types


def test_a_missing_column_is_one_structure_error_and_no_error_of_its_cells() -> None:
    assert found(WANTED.replace("| Wins ", "").replace("| 7 ", "").replace("| 4 ", "")) == {"structure_error"}


def test_swapped_rows_are_a_structure_error_as_they_cost_content() -> None:
    lines = WANTED.splitlines()
    assert found("\n".join([*lines[:2], lines[3], lines[2]])) == {"structure_error"}


def test_displaced_rows_are_a_structure_error_alone() -> None:
    head, rule, *rows = WANTED.strip().splitlines()
    answer = "\n".join([head, rule, *reversed(rows)])
    ours = table_score(answer, WANTED)
    types = flag_error_types(find_table_differences(ours.match.content, ours.match.wanted.tables))
    assert {name for name, value in types.items() if value} == {"structure_error"}


def test_where_no_table_was_wanted_nothing_is_said() -> None:
    assert flag_error_types(compared([], [])) == {}
    assert flag_error_types(compared(read_tables(WANTED, "markdown"), [])) == {}


@given(TABLES)
def test_tables_are_free_of_errors_against_themselves(tables: list[CellGrid]) -> None:
    assert flag_error_types(compared(tables, tables)).get(ERROR_FREE, 1.0) == 1.0


@given(TABLES, TABLES)
def test_an_output_is_free_of_errors_or_has_one(prediction: list[CellGrid], wanted: list[CellGrid]) -> None:
    types = flag_error_types(compared(prediction, wanted))
    assert set(types.values()) <= {0.0, 1.0}
    if wanted:
        assert types[ERROR_FREE] == 1.0 - max(types[name] for name in ERROR_TYPES)


@pytest.mark.parametrize(
    ("complete", "faulty", "types"),
    [
        (r"\label{t}", "", set()),
        (r"\hline", "", set()),
        ("Ann", "A_n", {"structure_error", "element_error"}),
        (r"\end{tabular}", "", {"structure_error"}),
    ],
)
def test_an_output_that_lacks_form_is_not_free_of_errors(complete: str, faulty: str, types: set[str]) -> None:
    wanted = r"\begin{table}\begin{tabular}{l}\hline Name \\ Ann \\ \end{tabular}\label{t}\end{table}"
    answer = wanted.replace(complete, faulty)
    facts = table_score(answer, wanted, format="latex").facts
    values = flag_error_types(compared(read_tables(answer, "latex"), read_tables(wanted, "latex")), facts)
    assert values.pop(ERROR_FREE) == 0.0
    assert {name for name, value in values.items() if value} == types


@given(TABLES, TABLES)
def test_an_output_without_a_loss_of_content_has_no_wrong_name_or_cell(
    prediction: list[CellGrid], wanted: list[CellGrid]
) -> None:
    content = compare_content(prediction, wanted)
    comparison = find_table_differences(content, wanted)
    wrong = [cell for cell in comparison.cells if cell.verdict not in RIGHT_VALUE_VERDICTS]
    if content.overlap.f1 == 1.0:
        assert not wrong
        assert not comparison.names
        assert not any(read_cell_value(cell) for cell in comparison.lost)


WRITTEN = st.sampled_from(
    ["", "-", "n/a", "7", "7.0", "8", "7 %", "7*", "7**", "x", "X", "x\u2191", "**x**", "a b", "caf\u00e9", "cafe"]
)
WRITTEN_ROWS = st.lists(st.lists(WRITTEN, min_size=2, max_size=2), min_size=2, max_size=3)


@given(WRITTEN_ROWS, st.data(), st.sampled_from(FORMATS), st.sampled_from(FORMATS))
def test_a_full_score_has_no_error_and_full_coverage_and_every_loss_of_content_has_an_error(
    rows: list[list[str]], data: st.DataObject, one: Format, other: Format
) -> None:
    changed = [[data.draw(st.just(cell) | WRITTEN) for cell in row] for row in rows]
    wanted = format_rows_as_markup([["Name", "Value"], *rows], one)
    score = table_score(format_rows_as_markup([["Name", "Value"], *changed], other), wanted, format=one)
    comparison = find_table_differences(score.match.content, score.match.wanted.tables)
    types = flag_error_types(comparison, score.facts)
    coverage = measure_abilities(comparison, source="", form_share=score.form, markup_share=1.0, table_share=1.0).get(
        "coverage", 1.0
    )
    if score.content == 1.0:
        # Another form of a value is an error of format, which costs no content.
        assert (types["naming_error"], types["element_error"], coverage) == (0.0, 0.0, 1.0)
        assert not types["structure_error"] or score.form < 1.0
    else:
        assert any(types[name] for name in ERROR_TYPES)
