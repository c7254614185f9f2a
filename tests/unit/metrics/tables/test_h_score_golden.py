"""Every part of the H-Score on small tables, worked by hand from the definitions (arXiv 2309.08963).

Throughout, D is the edit distance and M the number of elements in difflib's matching blocks: a Levenshtein
part is 1 - D / (2 |reference|), a difflib part 2 M / (|prediction| + |reference|).
"""

from __future__ import annotations

import pytest

from evalsuite.metrics.tables import h_score

TEAM = "Team:\n| | Wins | Points |\n| Hawks | 3 | 90 |\n| Magic | 2 | 80 |"
# A column has another name, the last row is missing.
SHORT_TEAM = "Team:\n| | Wins | Score |\n| Hawks | 3 | 90 |"
PLAYER = "\nPlayer:\n| | Points |\n| Ann | 5 |"
BEGIN, END = r"\begin{table}\caption{Sales}", r"\end{tabular}\end{table}"
LATEX = BEGIN + r"\begin{tabular}{lr}Item & Price \\ Tea & 3 \\ Milk & 2 \\ " + END
# Another caption, another alignment, the last row is missing.
SHORT_LATEX = BEGIN.replace("Sales", "Costs") + r"\begin{tabular}{ll}Item & Price \\ Tea & 3 \\ " + END
HTML = "<table><tr><th>A</th><th>B</th></tr><tr><td>1</td><td>2</td></tr></table>"
# The last cell is missing.
SHORT_HTML = "<table><tr><th>A</th><th>B</th></tr><tr><td>1</td></tr></table>"
LIST, SHORT_LIST = "<ul><li>a</li><li>b</li></ul>", "<ul><li>a</li></ul>"


def test_parts_of_raw_text() -> None:
    score = h_score(SHORT_TEAM, TEAM, format="markdown")
    assert score.parts == pytest.approx(
        {
            "data_levenshtein_score": 1 - 3 / 12,  # three of six cells are missing
            "data_difflib_score": 2 * 3 / 9,
            "num_rows_match": 0.0,
            "num_cols_match": 1.0,
            "columns_levenshtein_score": 1 - 1 / 6,  # "", Wins, Points
            "columns_difflib_score": 2 * 2 / 6,
            "table_name_match": 1.0,
        }
    )
    assert score.content == pytest.approx((3 / 4 + 2 / 3) / 2)
    assert score.format == pytest.approx((0 + 1 + 5 / 6 + 2 / 3 + 1) / 5)


def test_released_parts_of_raw_text_are_means_over_both_tables() -> None:
    score = h_score(SHORT_TEAM + PLAYER, TEAM + PLAYER, format="markdown", variant="released")
    assert score.parts == pytest.approx(
        {
            "num_rows_match": (0 + 1) / 2,
            "num_cols_match": 1.0,
            "columns_levenshtein_score": (5 / 6 + 1) / 2,
            "columns_difflib_score": (2 / 3 + 1) / 2,
            "data_levenshtein_score": (3 / 4 + 1) / 2,
            "data_difflib_score": (2 / 3 + 1) / 2,
        }
    )
    assert score.content == pytest.approx(7 / 8 + 5 / 6)
    assert score.format == pytest.approx(1 / 2 + 1 + 11 / 12 + 5 / 6)


def test_parts_of_latex() -> None:
    score = h_score(SHORT_LATEX, LATEX, format="latex")
    assert score.parts == pytest.approx(
        {
            "caption_match_score": 0.0,
            "data_levenshtein_score": 1 - 2 / 12,  # two of six cells are missing
            "data_difflib_score": 2 * 4 / 10,
            "alignment_levenshtein_score": 1 - 1 / 4,  # l l instead of l r
            "alignment_difflib_score": 2 * 1 / 4,
            "num_rows_match": 0.0,
            "num_cols_match": 1.0,
        }
    )
    assert score.content == pytest.approx((0 + 5 / 6 + 4 / 5) / 3)
    assert score.format == pytest.approx((3 / 4 + 1 / 2 + 0 + 1) / 4)


def test_released_parts_of_latex_have_no_alignment() -> None:
    score = h_score(SHORT_LATEX, LATEX, format="latex", variant="released")
    assert score.parts == pytest.approx(
        {
            "caption_match_score": 0.0,
            "data_levenshtein_score": 5 / 6,
            "data_difflib_score": 4 / 5,
            "alignment_levenshtein_score": 0.0,
            "alignment_difflib_score": 1.0,
            "num_rows_match": 0.0,
            "num_cols_match": 1.0,
        }
    )
    assert score.content == pytest.approx(5 / 6 + 4 / 5)
    assert score.format == pytest.approx(0 + 1 + 0 + 1)


def test_parts_of_html() -> None:
    score = h_score(SHORT_HTML, HTML, format="html")
    assert score.parts == pytest.approx(
        {
            "num_cells_match": 0.0,
            "cells_text_levenshtein_score": 1 - 1 / 8,
            "cells_text_difflib_score": 2 * 3 / 7,
            "struct_levenshtein_score": 1 - 2 / 28,  # fourteen tags, one cell's two are missing
            "struct_difflib_score": 2 * 12 / 26,
            "num_rows_match": 1.0,
            "num_cols_match": 1.0,
        }
    )
    assert score.content == pytest.approx((7 / 8 + 6 / 7) / 2)
    assert score.format == pytest.approx((0 + 13 / 14 + 12 / 13 + 1 + 1) / 5)


def test_released_parts_of_html_record_a_tag_once_for_every_ancestor() -> None:
    score = h_score(SHORT_LIST, LIST, format="html", variant="released")
    # Reference: ul li /li li /li /ul, then the items again: li /li li /li. Prediction: ul li /li /ul li /li.
    # Its longest block in the reference is li /li /ul li /li, of five; the ul before it is the sixth.
    assert score.parts == pytest.approx(
        {
            "num_cells_match": 0.0,
            "cells_text_levenshtein_score": 1 - 1 / 4,
            "cells_text_difflib_score": 2 * 1 / 3,
            "struct_levenshtein_score": 1 - 4 / 20,
            "struct_difflib_score": 2 * 6 / 16,
        }
    )
    assert score.content == pytest.approx(3 / 4 + 2 / 3)
    assert score.format == pytest.approx(0 + 4 / 5 + 3 / 4)


def test_a_released_tree_s_length_counts_each_tag_for_every_ancestor() -> None:
    score = h_score(SHORT_HTML, HTML, format="html", variant="released")
    # 42 tags against 34: the missing cell's two stand in its row, its table, the row within the table, the page.
    assert score.parts["struct_levenshtein_score"] == pytest.approx(1 - 8 / 84)
