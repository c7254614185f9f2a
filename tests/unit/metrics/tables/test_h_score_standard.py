"""The standard H-Score: 1.0 for what is the same, in [0, 1] for anything, less for what is worse."""

from __future__ import annotations

import random
from statistics import fmean
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalsuite.core.errors import ScoringError
from evalsuite.metrics.tables import FORMATS, Format, h_score, read_tables, strip_answer
from evalsuite.metrics.tables.any_markup import read_wanted

if TYPE_CHECKING:
    from collections.abc import Sequence

Rows = list[list[str]]
WORDS = st.text(st.sampled_from("abcXYZ019 .%-é漢"), max_size=6).map(str.strip).filter(bool)
SCRAPS = [
    "<table>", "</table>", "<tr>", "<td colspan=3>", "<td rowspan=99999>", "</td>", "<th>", "<caption>", "<ul>",
    "<li>", "<p>", "<script>", "<", "&", "\x00", "\ud800", "| a | b |\n", "|---|\n", "|", "\\|", "```\n", "~~~\n",
    "Team:\n", "\n", "<NEWLINE>", r"\begin{tabular}{l|*{3}{c}}", r"\begin{tabular}", r"\end{tabular}", r"\\", r"\\[",
    r"\multicolumn{2}{c}{", r"\multicolumn{", r"\multirow{-3}{*}{x}", r"\textbf{", "{", "}", "[", "]", r"\caption{c}",
    r"\begin{longtable}{l}", r"\endhead", r"\endfoot", r"\hline", r"\'", r"\c", r"\frac", "%", "$", "~", "\\", "x", " ",
]  # fmt: skip


def rectangles() -> st.SearchStrategy[Rows]:
    return st.tuples(st.integers(1, 4), st.integers(2, 5)).flatmap(
        lambda size: st.lists(
            st.lists(WORDS, min_size=size[0], max_size=size[0]), min_size=size[1], max_size=size[1]
        )
    )


def write(rows: Sequence[Sequence[str]], written: Format) -> str:
    if written == "markdown":
        first, *others = (f"| {' | '.join(row)} |" for row in rows)
        return "\n".join([first, "|" + "---|" * len(rows[0]), *others])
    if written == "html":
        lines = ("".join(f"<td>{cell}</td>" for cell in row) for row in rows)
        return f"<table>{''.join(f'<tr>{line}</tr>' for line in lines)}</table>"
    lines = (" & ".join(cell.replace("%", r"\%") for cell in row) for row in rows)
    return rf"\begin{{tabular}}{{{'l' * len(rows[0])}}}" + r" \\ ".join(lines) + r"\end{tabular}"


@settings(max_examples=40, deadline=None)
@given(rows=rectangles(), written=st.sampled_from(FORMATS))
def test_a_table_equal_to_its_reference_scores_one_in_both(rows: Rows, written: Format) -> None:
    markup = write(rows, written)
    score = h_score(markup, markup, format=written)
    assert (score.content, score.format) == (1.0, 1.0)


@settings(max_examples=200, deadline=None)
@given(
    prediction=st.lists(st.sampled_from(SCRAPS), max_size=30).map("".join),
    reference=st.lists(st.sampled_from(SCRAPS), max_size=30).map("".join),
    written=st.sampled_from(FORMATS),
)
def test_any_two_texts_have_a_score_between_zero_and_one(
    prediction: str, reference: str, written: Format
) -> None:
    if not read_wanted(reference, written).tables:
        with pytest.raises(ScoringError):
            h_score(prediction, reference, format=written)
        return
    score = h_score(prediction, reference, format=written)
    assert all(0.0 <= value <= 1.0 for value in (score.content, score.format, *score.parts.values()))


@settings(max_examples=120, deadline=None)
@given(markup=st.lists(st.sampled_from(SCRAPS), max_size=30).map("".join), written=st.sampled_from(FORMATS))
def test_broken_markup_scores_one_against_itself_once_taken_out_of_its_surroundings(
    markup: str, written: Format
) -> None:
    reference = strip_answer(markup, written)
    if not read_wanted(reference, written).tables:
        return
    score = h_score(reference, reference, format=written)
    assert (score.content, score.format) == (1.0, 1.0)


@pytest.mark.parametrize("written", FORMATS)
def test_no_table_at_all_scores_zero_in_both(written: Format) -> None:
    reference = write([["a", "b"], ["1", "2"]], written)
    for prediction in ("", "I cannot make a table of this."):
        score = h_score(prediction, reference, format=written)
        assert (score.content, score.format) == (0.0, 0.0)


@pytest.mark.parametrize("written", FORMATS)
def test_more_corruption_scores_less_on_average(written: Format) -> None:
    dice = random.Random(3)
    rows = [[f"{column}{row}" for column in "abcd"] for row in range(12)]

    def mean_content(wrong: int) -> float:
        scores = []
        for _ in range(20):
            copy = [list(row) for row in rows]
            for place in dice.sample(range(4, 48), wrong):
                copy[place // 4][place % 4] = f"?{place}"
            scores.append(h_score(write(copy, written), write(rows, written), format=written).content)
        return fmean(scores)

    means = [mean_content(wrong) for wrong in (0, 2, 6, 16, 40)]
    assert means[0] == 1.0
    assert means == sorted(means, reverse=True)
    assert len(set(means)) == len(means)


@pytest.mark.parametrize("written", FORMATS)
def test_swapping_two_neighbouring_rows_costs_a_share_that_falls_with_the_number_of_rows(
    written: Format,
) -> None:
    rows = [["name", "value"], *([f"n{row}", f"v{row}"] for row in range(10))]
    swapped = [*rows[:4], rows[5], rows[4], *rows[6:]]
    score = h_score(write(swapped, written), write(rows, written), format=written)
    # Of all cells four move, and two of them stay matched: at most 4 of 20 in either similarity.
    assert 1 - 4 / 20 <= score.content < 1.0
    assert score.format == 1.0


@pytest.mark.parametrize("written", FORMATS)
def test_a_missing_column_costs_form_in_large_tables_as_in_small_ones(written: Format) -> None:
    def form(height: int) -> float:
        rows = [[f"{column}{row}" for column in "abcde"] for row in range(height)]
        return h_score(
            write([row[:-1] for row in rows], written), write(rows, written), format=written
        ).format

    # difflib's rule for frequent elements sets in between these two.
    assert form(40) == pytest.approx(form(8), abs=0.05)


def test_the_number_of_unpaired_tables_lowers_every_part() -> None:
    one = write([["a", "b"], ["1", "2"]], "markdown")
    two = f"{one}\n\n{one}"
    assert set(h_score(one, two, format="markdown").parts.values()) == {0.5}
    assert set(h_score(two, one, format="markdown").parts.values()) == {0.5}


def test_named_tables_are_compared_with_those_of_the_same_name_whatever_their_order() -> None:
    team, player = "Team:\n| a | b |\n| 1 | 2 |", "Player:\n| c | d |\n| 3 | 4 |"
    swapped = h_score(f"{player}\n\n{team}", f"{team}\n\n{player}", format="markdown")
    assert (swapped.content, swapped.format) == (1.0, 1.0)


def test_a_table_under_another_name_is_compared_all_the_same_and_loses_its_name() -> None:
    parts = h_score("Squad:\n| a |\n| 1 |", "Team:\n| a |\n| 1 |", format="markdown").parts
    assert parts.pop("table_name_match") == 0.0
    assert set(parts.values()) == {1.0}


def test_prose_and_fences_around_a_table_cost_nothing() -> None:
    for written in FORMATS:
        markup = write([["a", "b"], ["1", "2"]], written)
        answer = f"Sure, here is the table.\n\n```{written}\n{markup}\n```\n\nIs there anything else?"
        score = h_score(answer, markup, format=written)
        assert (score.content, score.format) == (1.0, 1.0)


def test_a_page_nested_forty_deep_is_scored() -> None:
    deep = "<div>" * 40 + "<table><tr><td>x</td></tr></table>" + "</div>" * 40
    score = h_score(deep.replace("x", "y"), deep, format="html")
    assert score.format == 1.0
    assert score.content == 0.25


def test_lists_and_paragraphs_are_scored_where_the_reference_has_no_table() -> None:
    reference = "<ul><li>one</li><li>two<ol><li>three</li></ol></li></ul>"
    prediction = reference.replace("three", "3")
    parts = h_score(prediction, reference, format="html").parts
    assert parts["cells_text_levenshtein_score"] == pytest.approx(1 - 1 / 6)
    assert "num_rows_match" not in parts
    paragraphs = h_score("<p>a</p><p>c</p>", "<p>a</p><p>b</p>", format="html").parts
    assert paragraphs["cells_text_levenshtein_score"] == pytest.approx(1 - 1 / 4)


@pytest.mark.parametrize(("written", "variant"), [("csv", "standard"), ("html", "official")])
def test_an_unknown_format_or_variant_is_an_error_that_names_the_known_ones(
    written: str, variant: str
) -> None:
    with pytest.raises(ValueError, match="markdown, html, latex and the variants standard, released"):
        h_score("", "", format=written, variant=variant)  # type: ignore[arg-type]  # what is tested


@settings(max_examples=30, deadline=None)
@given(rows=rectangles(), written=st.sampled_from(FORMATS))
def test_what_was_written_is_read_again(rows: Rows, written: Format) -> None:
    table = read_tables(write(rows, written), written)[0]
    assert [list(row) for row in table.rows] == [[" ".join(cell.split()) for cell in row] for row in rows]


@pytest.mark.parametrize(
    ("reference", "written"),
    [
        ("There is no table here.", "markdown"),
        ("<dl><dt>a</dt><dd>1</dd></dl>", "html"),
        (r"\begin{center}words\end{center}", "latex"),
    ],
)
def test_a_reference_without_a_readable_table_is_an_error_and_no_score(
    reference: str, written: Format
) -> None:
    with pytest.raises(ScoringError, match="holds no table that can be read"):
        h_score("Sorry, I cannot help.", reference, format=written)
