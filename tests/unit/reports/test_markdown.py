"""Sections as Markdown: whatever a model wrote stays in its cell, its fence, its line."""

from __future__ import annotations

import math
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalsuite.core.errors import CONTROL
from evalsuite.decisions.gates import GateDecision, parse_gate
from evalsuite.output.reports.markdown import (
    LONGEST,
    collapse_to_line,
    convert_for_terminal,
    escape_markdown,
    format_cell,
    format_decision_line,
    format_number,
    render_passage,
    render_sections,
    render_table,
    unescape_markdown,
)
from evalsuite.output.reports.section import Chart, Column, Passage, Section, Series, Table
from evalsuite.results.tally import Estimate

# What would be markup, broken or whole, is tried more often than chance would.
hostile = st.lists(
    st.sampled_from(
        [
            "|",
            "\\",
            "\n",
            "\r\n",
            "`",
            "```",
            "~~~~",
            "<",
            "</details>",
            "&",
            "*",
            "_",
            "[x](y)",
            "\u2028",
            "\t",
            "a",
            " ",
            "–",
            "\\|",
            " \x00 ",
            "\x1b",
        ]
    )
    | st.text(max_size=3),
    max_size=8,
).map("".join)
modest = settings(max_examples=80, deadline=None)


def cells_of(line: str) -> list[str]:
    """The cells of a table's line, as GitHub divides it: at each bar that no backslash escapes."""
    inner = line.strip()
    assert inner.startswith("|")
    assert inner.endswith("|")
    cells, cell, escaped = [], "", False
    for character in inner[1:]:
        if character == "|" and not escaped:
            cells.append(cell.strip())
            cell = ""
        else:
            cell += character
        escaped = character == "\\" and not escaped
    assert not cell
    return cells


def plain(markdown: str) -> str:
    """What a reader of a cell sees."""
    unescaped = re.sub(r"\\([!-/:-@\[-`{-~])", r"\1", markdown)
    unescaped = unescaped.replace("&#64;", "@").replace("&#58;", ":")
    return unescaped.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


@given(st.lists(st.lists(hostile, min_size=2, max_size=2), min_size=1, max_size=4), hostile)
@modest
def test_a_cell_never_breaks_its_table_and_reads_as_it_was_written(rows: list[list[str]], title: str) -> None:
    lines = render_table(Table("", [Column(title), Column("b")], rows)).split("\n")
    assert len(lines) == len(rows) + 2
    for line, row in zip(lines, [[title, "b"], None, *rows], strict=True):
        cells = cells_of(line)
        assert len(cells) == 2
        if row is not None:
            words = [[CONTROL.sub("", word) for word in text.split()] for text in row]
            assert [plain(cell) for cell in cells] == [" ".join(filter(None, cell)) for cell in words]


@given(hostile)
@modest
def test_escaped_text_holds_no_markup(text: str) -> None:
    escaped = escape_markdown(text)
    assert "\n" not in escaped
    assert "<" not in escaped
    without = re.sub(r"\\.", "", escaped)
    assert not re.search(r"[`*_\[\]|~\\]", without)


@given(hostile, hostile)
@modest
def test_a_fence_never_ends_before_its_words_do(title: str, words: str) -> None:
    text = render_passage(Passage(title, words, folded=True, whole=True))
    head, _, rest = text.partition("\n\n")
    assert head.startswith("<details><summary>")
    assert head.endswith("</summary>")
    assert "<" not in head.removeprefix("<details><summary>").removesuffix("</summary>")
    fence, _, rest = rest.partition("text\n")
    assert re.fullmatch("`{3,}", fence)
    # The first line that closes a fence as long as this one is the last but two.
    body = rest.removesuffix(f"\n{fence}\n\n</details>")
    assert body == CONTROL.sub("", words)
    assert not re.search(rf"^ {{0,3}}`{{{len(fence)},}}\s*$", body, re.MULTILINE)


def test_words_of_a_model_cannot_control_a_terminal_that_shows_the_report() -> None:
    text = render_passage(Passage("\x1b[2Jtitle", "\x1b]0;x\x07 \u202e12\tand\n34", folded=True))
    assert not any(char in text for char in "\x1b\x07\u202e")
    assert "12\tand\n34" in text


def test_words_of_a_model_are_cut_unless_they_are_wanted_whole() -> None:
    words = "x" * (LONGEST + 500)
    assert "[... 500 characters ...]" in render_passage(Passage("t", words, folded=True))
    assert words in render_passage(Passage("t", words, folded=True, whole=True))
    assert words in render_passage(Passage("t", words))


@pytest.mark.parametrize(
    ("value", "column", "shown"),
    [
        (0.12345, Column("", "number", 3), "0.123"),
        (0.1235, Column("", "number", 1), "0.1"),
        (0.256, Column("", "percent", 1), "25.6"),
        (1, Column("", "percent", 0), "100"),
        (1234567, Column("", "count"), "1,234,567"),
        (-0.0001, Column("", "number", 3), "0.000"),
        (-0.0, Column("", "number", 3), "0.000"),
        (-0.0004, Column("", "percent", 1), "0.0"),
        (-0.4, Column("", "count"), "0"),
        (-0.0006, Column("", "number", 3), "-0.001"),
        (-10, Column("", "count"), "-10"),
        (-math.inf, Column("", "number", 2), "-inf"),
        (math.nan, Column("", "number", 2), "nan"),
        (0.5, Column("", "text", 2), "0.50"),
    ],
)
def test_a_number_is_rounded_once_and_zero_has_no_sign(value: float, column: Column, shown: str) -> None:
    assert format_number(value, column) == shown


@given(st.floats(allow_nan=False, allow_infinity=False, min_value=-1e12, max_value=1e12), st.integers(0, 6))
@modest
def test_a_shown_number_is_the_nearest_of_its_digits(value: float, digits: int) -> None:
    shown = format_number(value, Column("", "number", digits))
    assert float(shown) == float(f"{value:.{digits}f}")
    assert not (shown.startswith("-") and float(shown) == 0)


@pytest.mark.parametrize(
    ("cell", "shown"),
    [
        (None, "–"),
        ("a|b", r"a\|b"),
        (Estimate(0.5, 0.25, 0.75, 9), "50.0 [25.0, 75.0]"),
        (Estimate(0.5, n=9), "50.0"),
        (Estimate(0.5, 0.25, None), "50.0"),
        (Estimate(-0.0001, -0.0002, 0.1), "0.0 [0.0, 10.0]"),
        (0.5, "50.0"),
    ],
)
def test_a_cell_is_shown_as_its_column_says(cell: str | float | Estimate | None, shown: str) -> None:
    assert format_cell(cell, Column("", "percent", 1)) == shown


def test_columns_of_text_stand_left_and_numbers_right_under_title_and_over_note() -> None:
    table = Table("A *title*", [Column("name"), Column("value", "number", 2)], [["x", 0.5]], note="a note")
    lines = render_table(table).split("\n")
    assert lines[0] == r"### A \*title\*"
    assert lines[-1] == "a note"
    assert re.fullmatch(r"\|:-+\|-+:\|", lines[3].replace(" ", "")), lines[3]
    assert cells_of(lines[4]) == ["x", "0.50"]


def test_labels_in_notes_and_passages_are_not_tags_or_links() -> None:
    text = "<img src=x> and [x](http://y): `a < b` is code, [0.1, 0.2] an interval"
    inert = "&lt;img src=x> and [x&#93;(http://y): `a < b` is code, [0.1, 0.2] an interval"
    assert render_passage(Passage("", text)) == inert
    assert render_table(Table("", [Column("a")], [["b"]], text)).endswith(inert)


def test_text_that_looks_like_a_number_stays_as_it_is() -> None:
    assert "1e5" in render_table(Table("", [Column("a")], [["1e5"], ["007"]]))
    assert "007" in render_table(Table("", [Column("a")], [["1e5"], ["007"]]))


def test_a_table_without_rows_is_not_shown() -> None:
    assert render_table(Table("title", [Column("a")], [], "note")) == ""


def test_a_row_of_another_length_than_its_heading_is_a_fault() -> None:
    with pytest.raises(ValueError, match="zip"):
        render_table(Table("", [Column("a")], [["x", "y"]]))


def test_sections_stand_in_order_and_only_drawn_pictures_are_shown() -> None:
    chart = Chart("bars", "drawn", "A [chart]", ["a"], [Series("s", [1.0])])
    other = Chart("bars", "not_drawn", "Other", ["a"], [Series("s", [1.0])])
    sections = [
        Section("First", [Table("", [Column("a")], [["x"]]), chart, other]),
        Section("Second", [Passage("Title", "words **as they are**")]),
        Section("Empty"),
    ]
    text = render_sections(sections, ["drawn"])
    assert text.startswith("## First\n\n| a   |\n")
    assert "![A \\[chart\\]](drawn.svg)\n\n## Second\n\n### Title\n\nwords **as they are**\n\n## Empty" in text
    assert "not_drawn" not in text


def test_folded_tables_and_pictures_are_shown_closed_together() -> None:
    blocks: list[Table | Chart] = [
        Table("Shown", [Column("a")], [["1"]]),
        Table("Closed", [Column("b")], [["2"]], folded=True),
        Chart("bars", "drawn", "Picture", ["x"], [Series("s", [1.0])], folded=True),
    ]
    text = render_sections([Section("Title", blocks)], ["drawn"])
    shown, closed = text.split("<details><summary>More tables and pictures</summary>")
    assert "### Shown" in shown
    assert "### Closed" in closed
    assert closed.endswith("![Picture](drawn.svg)\n\n</details>")
    assert "<details>" not in render_sections([Section("Title", blocks[:1])], [])


def test_a_decision_is_one_line_for_a_terminal() -> None:
    gate = parse_gate("a.b >= 0.5")
    met = GateDecision(gate, "a.b", "met", Estimate(2 / 3, 0.25, 0.75, 9))
    assert format_decision_line(met) == "     met  a.b >= 0.5   a.b: 0.6667 [0.2500, 0.7500]"
    lacking = GateDecision(gate, "a.b", "no data", reason="no such metric")
    assert format_decision_line(lacking) == " no data  a.b >= 0.5   a.b: no such metric"


@given(st.text())
def test_what_was_escaped_reads_as_before_once_it_is_unescaped(text: str) -> None:
    assert unescape_markdown(escape_markdown(text)) == collapse_to_line(text)


def test_a_terminal_shows_a_document_without_its_escapes_pictures_and_tags() -> None:
    table = Table("a_b", [Column("gate"), Column("n", "count")], [["x.y >= 0.4|z", 7], ["a", 1234]])
    words = Passage("said_so", "1 &gt; 0 \\* \x1b[31m", folded=True)
    chart = Chart("lines", "picture", "a_b", [], [])
    shown = convert_for_terminal(render_sections([Section("Gates_now", [chart, table, words])], ["picture"]))
    lines = shown.splitlines()
    assert lines[:3] == ["## Gates_now", "", "### a_b"]
    (wide, narrow) = (line for line in lines if line.startswith(("| x", "| a")))
    assert "x.y >= 0.4|z" in wide
    assert len(wide) == len(narrow)
    assert "said_so" in lines
    assert "1 &gt; 0 \\* [31m" in lines, "what is fenced is not escaped"
    assert not any(mark in shown for mark in (".svg", "details", "\\_", "\x1b"))
