"""The table score: 1.0 for equal tables, in [0, 1] for any two texts, less for worse tables."""

from __future__ import annotations

import json
import random
from statistics import fmean
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalsuite.core.errors import ScoringError
from evalsuite.metrics.tables import FORMATS, Format, h_score, read_tables, strip_answer, table_score
from evalsuite.metrics.tables.readings import read_reference_tables

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Rows = list[list[str]]
WORDS = st.text(st.sampled_from("abcXYZ019 .%-é漢"), max_size=6).map(str.strip).filter(bool)
SCRAPS = [
    "<table>", "</table>", "<tr>", "<td colspan=3>", "<td rowspan=99999>", "</td>", "<th>", "<caption>", "<ul>",
    "<li>", "<p>", "<script>", "<", "&", "\x00", "\ud800", "| a | b |\n", "|---|\n", "|", "\\|", "```\n", "~~~\n",
    "Team:\n", "\n", "<NEWLINE>", r"\begin{tabular}{l|*{3}{c}}", r"\begin{tabular}", r"\end{tabular}", r"\\", r"\\[",
    r"\multicolumn{2}{c}{", r"\multicolumn{", r"\multirow{-3}{*}{x}", r"\textbf{", "{", "}", "[", "]", r"\caption{c}",
    r"\begin{longtable}{l}", r"\endhead", r"\endfoot", r"\hline", r"\'", r"\c", r"\frac", "%", "$", "~", "\\", "x", " ",
    "{|\n", "|}\n", "|-\n", "| || x\n", '[["", ""], ["", ""]]', '[["a", "b"], ["", "1"]]', '{"a": [1, null]}',
    '{"s": ', ", ", "|===\n", "* - a\n", "  - b\n", "+---+---+\n", "+===+\n", "| a | | |\n", "║ a ║ b ║\n", "--- ---\n",
    ".. csv-table::\n   :header: a, b\n\n   1, 2\n", "a,b\n", "a\tb\n", "a  b\n", "\\n", "&lt;td&gt;", "5 %",
]  # fmt: skip


def rectangles() -> st.SearchStrategy[Rows]:
    tables = st.tuples(st.integers(1, 4), st.integers(2, 5)).flatmap(
        lambda size: st.lists(st.lists(WORDS, min_size=size[0], max_size=size[0]), min_size=size[1], max_size=size[1])
    )
    # A row of dashes alone is Markdown's rule below the head; a table of them is blank, an error in a reference.
    return tables.filter(lambda rows: all(any(cell.strip("-") for cell in row) for row in rows))


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
    score = table_score(markup, markup, format=written)
    assert (score.content, score.form) == (1.0, 1.0)


@settings(max_examples=200, deadline=None)
@given(
    prediction=st.lists(st.sampled_from(SCRAPS), max_size=30).map("".join),
    reference=st.lists(st.sampled_from(SCRAPS), max_size=30).map("".join),
    written=st.sampled_from(FORMATS),
)
def test_any_two_texts_have_a_score_between_zero_and_one(prediction: str, reference: str, written: Format) -> None:
    if not read_reference_tables(reference, written).tables:
        with pytest.raises(ScoringError):
            table_score(prediction, reference, format=written)
        return
    score = table_score(prediction, reference, format=written)
    assert all(0.0 <= value <= 1.0 for value in (score.content, score.form, *score.parts.values()))


@settings(max_examples=120, deadline=None)
@given(markup=st.lists(st.sampled_from(SCRAPS), max_size=30).map("".join), written=st.sampled_from(FORMATS))
def test_broken_markup_scores_one_against_itself_once_taken_out_of_its_surroundings(
    markup: str, written: Format
) -> None:
    reference = strip_answer(markup, written)
    if not read_reference_tables(reference, written).tables:
        return
    score = table_score(reference, reference, format=written)
    assert (score.content, score.form) == (1.0, 1.0)


def write_wiki(rows: Rows) -> str:
    return "{|\n" + "\n|-\n".join(f"| {' || '.join(row)}" for row in rows) + "\n|}"


@pytest.mark.parametrize("write_tables", [lambda tables: "\n\n".join(map(write_wiki, tables)), json.dumps])
def test_a_table_without_any_value_is_left_out_in_every_markup(write_tables: Callable[[list[Rows]], str]) -> None:
    table, blank = [["a", "b"], ["1", "2"]], [["", ""], ["", ""]]
    assert table_score(write_tables([table, blank]), write(table, "markdown")).parts["form_tables"] == 1.0
    assert table_score(write_tables([blank]), write(table, "markdown")).value == 0.0


def test_a_reference_may_hold_a_table_without_any_value_beside_another() -> None:
    reference = '{"a": [["", ""]], "b": [["x", "y"], ["1", "2"]]}'
    assert table_score(reference, reference, format="markdown").value == 1.0


def test_a_reference_of_one_table_without_any_value_is_an_error() -> None:
    reference = "{| a | b |\n<td colspan=3>"
    with pytest.raises(ScoringError, match="no table"):
        table_score(reference, reference, format="markdown")


@pytest.mark.parametrize("written", FORMATS)
def test_no_table_at_all_scores_zero_in_both(written: Format) -> None:
    reference = write([["a", "b"], ["1", "2"]], written)
    for prediction in ("", "I cannot make a table of this."):
        score = table_score(prediction, reference, format=written)
        assert (score.content, score.form) == (0.0, 0.0)


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
            scores.append(table_score(write(copy, written), write(rows, written), format=written).content)
        return fmean(scores)

    means = [mean_content(wrong) for wrong in (0, 2, 6, 16, 40)]
    assert means[0] == 1.0
    assert means == sorted(means, reverse=True)
    assert len(set(means)) == len(means)


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
def test_a_reference_without_a_readable_table_is_an_error_and_no_score(reference: str, written: Format) -> None:
    with pytest.raises(ScoringError, match="contains no table that can be read"):
        table_score("Sorry, I cannot help.", reference, format=written)


def test_the_variant_standard_is_an_error_that_names_the_table_score() -> None:
    with pytest.raises(ScoringError, match=r"use table_score\("):
        h_score("| a |", "| a |", format="markdown", variant="standard")


@pytest.mark.parametrize(
    ("written", "variant", "known"),
    [("csv", "released", r"markdown \(md\), html or latex \(tex\)"), ("html", "official", "the variant released")],
)
def test_an_unknown_format_or_variant_is_an_error_that_names_the_known_ones(
    written: str, variant: str, known: str
) -> None:
    with pytest.raises(ValueError, match=known):
        h_score("", "", format=written, variant=variant)  # type: ignore[arg-type]  # what is tested


AMBIGUOUS: dict[Format, list[str]] = {
    "latex": [
        r"\begin{tabular}{ll} Norm & Value \\ $|x|+|y|$ & 7 \\ $|x|$ & 8 \\ \end{tabular}",
        r"\begin{tabular}{ll}"
        + r" \multicolumn{1}{|c|}{a} & \multicolumn{1}{|c|}{7} \\" * 3
        + r" b & 8 \\ \end{tabular}",
    ],
    "html": [
        "<table>\n<tr><td>|x|</td>\n<td>|y|</td></tr>\n<tr><td>b</td><td>7</td></tr></table>",
        "<table><tr><td>|x|</td></tr>\n<tr><td>|y|</td></tr>\n<tr><td>7</td></tr></table>",
    ],
    "markdown": ["| Code | N |\n|---|---|\n| <td>a</td><td>b</td> | 7 |\n| \\begin{tabular}{l} c | 8 |"],
}


@pytest.mark.parametrize(
    ("written", "markup"), [(written, markup) for written, all_ in AMBIGUOUS.items() for markup in all_]
)
def test_a_table_whose_cells_look_like_another_markup_is_read_in_the_wanted_one(written: Format, markup: str) -> None:
    assert table_score(markup, markup, format=written).value == 1.0
    one_wrong = table_score(f"Here it is:\n\n{markup.replace('7', '9', 1)}\n", markup, format=written)
    assert 0.5 < one_wrong.content < 1.0
    assert one_wrong.form == 1.0
