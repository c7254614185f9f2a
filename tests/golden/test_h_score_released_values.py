"""The released H-Score, part by part, worked out by hand from its description in the issue and the paper."""

from __future__ import annotations

import pytest

from evalsuite.metrics.tables import h_score

BOX_SCORE = """\
Team:
| | Wins | Losses |
|---|---|---|
| Hawks | 46 | 12 |
Player:
| | Points |
|---|---|
| Ann | 30 |
| Bob | 8 |"""


def test_raw_text_with_a_wrong_cell_and_a_missing_row() -> None:
    prediction = BOX_SCORE.replace("12", "13").replace("\n| Bob | 8 |", "")
    score = h_score(prediction, BOX_SCORE, format="markdown")
    # Team: cells Hawks 46 12, one of three differs: 1 - 1/6 and 2*2/6.
    # Player: cells Ann 30 Bob 8, two are missing: 1 - 2/8 and 2*2/6; two rows of three.
    assert score.parts == pytest.approx(
        {
            "num_rows_match": (1 + 0) / 2,
            "num_cols_match": 1,
            "columns_levenshtein_score": 1,
            "columns_difflib_score": 1,
            "data_levenshtein_score": (5 / 6 + 3 / 4) / 2,
            "data_difflib_score": (2 / 3 + 2 / 3) / 2,
        }
    )
    assert score.content == pytest.approx(35 / 24)
    assert score.format == pytest.approx(3.5)


def test_raw_text_without_a_player_table_loses_its_last_cell() -> None:
    # Player is not found, at -1: the Team table ends at the last bar of all but the last character, which
    # is the one before 2. The Player table is the last character, a bar, and so has no rows: its two
    # Levenshtein parts are 0, as the reference is empty, all other parts are 1.
    reference = "Team: | a | b |\n| 1 | 2 |"
    for last in "23":
        prediction = f"Team: | a | b |\n| 1 | {last} |"
        score = h_score(prediction, reference, format="markdown")
        assert (score.content, score.format) == (0.5 + 1, 1 + 1 + 0.5 + 1)


def test_raw_text_without_any_name_has_no_table_at_all() -> None:
    table = "| a | b |\n| 1 | 2 |"
    score = h_score("| q |", table, format="markdown")
    assert (score.content, score.format) == (0 + 1, 1 + 1 + 0 + 1)


def test_raw_text_splits_rows_at_the_word_newline_and_keeps_the_case_of_cells() -> None:
    reference = "TEAM | a | b | <NEWLINE> | x | y | PLAYER | c | <newline> | Z |"
    prediction = "team | a | b |\n| x | y | player | c |\n| z |"
    parts = h_score(prediction, reference, format="markdown").parts
    # The only difference is Z against z, the only data cell of the second table.
    assert parts["data_levenshtein_score"] == pytest.approx((1 + 0.5) / 2)
    assert parts["data_difflib_score"] == pytest.approx((1 + 0) / 2)
    assert parts["columns_levenshtein_score"] == 1


def test_raw_text_whose_lower_case_is_longer_is_cut_one_place_too_late() -> None:
    # The lower case of İ has two characters: each table starts after its first bar, so that its first row
    # has no empty first cell any more, which keeps that of the second row: rows a and (empty) 1 for a and 1.
    reference = "Team | a |\n| 1 | Player | c |\n| 2 |"
    parts = h_score(f"İ {reference}", reference, format="markdown").parts
    assert parts["num_rows_match"] == parts["columns_levenshtein_score"] == 1
    assert parts["num_cols_match"] == 0
    assert parts["data_levenshtein_score"] == 1 - 1 / 2
    assert parts["data_difflib_score"] == pytest.approx(2 * 1 / 3)


def test_html_with_another_cell_and_another_tag() -> None:
    reference = "<table><tr><td>a</td><td>b</td></tr></table>"
    prediction = "<table><tr><td>a</td><th>c</th></tr></table>"
    score = h_score(prediction, reference, format="html")
    # Below the row the walk notes D d D d; below the table R DdDd r DdDd, as cells are descendants of the
    # table too; below the page T RDdDdrDdDd t RDdDdrDdDd, 22 tags. Of each of the four DdDd the prediction
    # has DdHh: 8 of 22 differ. Longest runs: TRDd, tRDd, and rDd between and after them, 14 tags.
    assert score.parts == pytest.approx(
        {
            "num_cells_match": 1,
            "cells_text_levenshtein_score": 1 - 1 / 4,
            "cells_text_difflib_score": 2 * 1 / 4,
            "struct_levenshtein_score": 1 - 8 / 44,
            "struct_difflib_score": 2 * 14 / 44,
        }
    )
    assert score.content == pytest.approx(1.25)
    assert score.format == pytest.approx(27 / 11)


def test_html_levenshtein_parts_of_a_long_prediction_are_negative() -> None:
    prediction = "<table>" + "<tr><td>x</td></tr>" * 4 + "</table>"
    parts = h_score(prediction, "<table><tr><td>a</td></tr></table>", format="html").parts
    # One cell is replaced and three are too many: 4 of 1.
    assert parts["cells_text_levenshtein_score"] == 1 - 4 / 2
    assert parts["num_cells_match"] == 0


@pytest.mark.parametrize(
    ("reference", "prediction"),
    [
        ("<table><tr><th>a</th><td>b</td></tr></table><ul><li>c</li></ul>", "<td>a</td><td>b</td><li>d</li>"),
        ("<ol><li>a<ul><li>b</li></ul></li></ol><p>c</p>", "<li>ab</li><li>b</li><td>d</td>"),
        ("<div>a<p>b</p></div><i>c</i><span></span>", "<h1>ab</h1><i>d</i><h2>b</h2>"),
    ],
)
def test_html_the_reference_decides_what_is_a_cell(reference: str, prediction: str) -> None:
    # Cells of tables, of lists (the outer one with the text of the inner one), of anything whitelisted that
    # has text: in each case the prediction has the same cells, and something else that is none.
    assert h_score(prediction, reference, format="html").content == 2.0


def test_latex_with_a_wrong_cell_a_missing_row_and_no_caption() -> None:
    reference = (
        r"\begin{table}\caption{Wins}\begin{tabular}{lc}\hline Team & \textbf{W} \\ Hawks & 46 \\"
        r" ~ & 1~2 \\ \end{tabular}\end{table}"
    )
    prediction = r"\begin{tabular}{rr} Team \\ Hawks & 47 \end{tabular}"
    score = h_score(prediction, reference, format="latex")
    # W stands in a group and vanishes with it; ~ is a character. Reference: Team | Hawks 46 | ~ 1~2.
    # Prediction: Team | Hawks 47: one cell replaced, two missing of five; two of eight cells match twice.
    assert score.parts == pytest.approx(
        {
            "caption_match_score": 0,
            "data_levenshtein_score": 1 - 3 / 10,
            "data_difflib_score": 2 * 2 / 8,
            "alignment_levenshtein_score": 0,
            "alignment_difflib_score": 1,
            "num_rows_match": 0,
            "num_cols_match": 1,
        }
    )
    assert score.content == pytest.approx(1.2)
    assert score.format == pytest.approx(2)


def test_latex_captions_are_compared_with_braces_and_specials() -> None:
    def caption_match(one: str, other: str) -> float:
        texts = (rf"\begin{{tabular}}{{l}}a\end{{tabular}}\caption{caption}" for caption in (one, other))
        return h_score(*texts, format="latex").parts["caption_match_score"]

    assert caption_match("{A {b} ~c}", "[short]{A {b} ~c}") == 1
    assert caption_match(r"{A \textbf{b}}", "{A {b}}") == 1
    assert caption_match("{A {b}}", "{A b}") == 0
    assert caption_match("{None}", "") == 1


def test_latex_without_a_tabular_has_neither_cells_nor_a_caption() -> None:
    reference = r"\begin{tabular}{l}a\end{tabular}"
    parts = h_score(r"\caption{x} a & b \\", reference, format="latex").parts
    assert parts["caption_match_score"] == 1
    assert parts["data_levenshtein_score"] == 1 - 1 / 2
    assert parts["num_rows_match"] == parts["num_cols_match"] == 0


def test_latex_a_star_after_a_row_and_characters_in_math_are_cell_text() -> None:
    starred = r"\begin{tabular}{l} a \\* b & $x$ \end{tabular}"
    spelled = r"\begin{tabular}{l} a \\ * b & x \end{tabular}"
    score = h_score(starred, spelled, format="latex")
    assert (score.content, score.format) == (3, 3)
