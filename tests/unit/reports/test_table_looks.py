"""Tables as a reader wants them."""

from __future__ import annotations

from evalsuite.output.reports.markdown import format_number, make_anchor, render_table, render_terminal_table
from evalsuite.output.reports.section import (
    Column,
    Table,
    drop_unmeasured_columns,
    find_best_value,
    split_distinct_metrics,
)
from evalsuite.results.tally import Estimate

COLUMNS = [Column("run"), Column("hit", "number", 2), Column("judge", "number", 2)]


def test_a_column_that_was_not_measured_is_left_out_and_named() -> None:
    table = drop_unmeasured_columns(Table("", COLUMNS, [["a", 1.0, None], ["b", 0.5, None]], "A note."))
    assert [column.title for column in table.columns] == ["run", "hit"]
    assert table.rows == [["a", 1.0], ["b", 0.5]]
    assert table.note == "A note. Not measured: judge."


def test_columns_stay_where_nothing_at_all_was_measured() -> None:
    table = Table("", COLUMNS, [["a", None, None]])
    assert drop_unmeasured_columns(table) is table
    assert "–" in render_terminal_table(table)


def test_a_column_with_one_value_stays() -> None:
    table = Table("", COLUMNS, [["a", 1.0, None], ["b", 0.5, 0.25]])
    assert drop_unmeasured_columns(table) is table


def test_the_best_of_a_row_is_bold_in_markdown_and_starred_on_a_terminal() -> None:
    best = find_best_value([0.25, 0.75], lower_is_better=False)
    table = Table("", COLUMNS, [["a", 0.25, 0.75]], best=[best])
    assert "**0.75**" in render_table(table)
    assert "0.75 best" in render_terminal_table(table)


def test_of_errors_the_fewest_are_best() -> None:
    assert find_best_value([Estimate(0.2), 0.4, None], lower_is_better=True) == 0.2


def test_equal_values_have_no_best() -> None:
    assert find_best_value([0.5, 0.5], lower_is_better=False) is None


def test_a_terminal_gets_no_control_characters_of_a_model() -> None:
    assert "\x1b" not in render_terminal_table(Table("", [Column("x")], [["\x1b[31mred"]]))


def test_a_metric_that_repeats_another_is_named_once() -> None:
    assert split_distinct_metrics(["em", "accuracy", "f1"], [[1.0, 0.0], [1.0, 0.0], [0.5, 0.0]]) == (
        ["em", "f1"],
        ["accuracy has the values of em"],
    )


def test_a_tiny_p_value_is_said_to_be_below_a_bound() -> None:
    assert [format_number(value, Column("p", "pvalue")) for value in (0.00001, 0.0501)] == ["<0.0001", "0.0501"]


def test_an_anchor_is_githubs() -> None:
    assert make_anchor("Struc-Bench: writing tables, LaTeX") == "struc-bench-writing-tables-latex"
