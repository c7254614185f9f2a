"""The H-Score as the paper describes it, part by part, worked out by hand."""

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
    # As released: the parts are the same where nothing is an accident; the two names match.
    assert score.parts == pytest.approx(
        {
            "num_rows_match": (1 + 0) / 2,
            "num_cols_match": 1,
            "columns_levenshtein_score": 1,
            "columns_difflib_score": 1,
            "data_levenshtein_score": (5 / 6 + 3 / 4) / 2,
            "data_difflib_score": (2 / 3 + 2 / 3) / 2,
            "table_name_match": 1,
        }
    )
    assert score.content == pytest.approx((19 / 24 + 2 / 3) / 2)
    assert score.format == pytest.approx((0.5 + 1 + 1 + 1 + 1) / 5)


def test_raw_text_that_lacks_one_of_two_tables_has_half_of_every_part() -> None:
    score = h_score(BOX_SCORE.split("\n\n")[1], BOX_SCORE, format="markdown")
    assert set(score.parts.values()) == {0.5}


def test_html_with_another_cell_and_another_tag() -> None:
    reference = "<table><tr><td>a</td><td>b</td></tr></table>"
    prediction = "<table><tr><td>a</td><th>c</th></tr></table>"
    score = h_score(prediction, reference, format="html")
    # Tags T R D d D d r t against T R D d H h r t: 2 of 8 differ; the runs are TRDd and rt.
    assert score.parts == pytest.approx(
        {
            "cells_text_levenshtein_score": 1 - 1 / 4,
            "cells_text_difflib_score": 2 * 1 / 4,
            "num_cells_match": 1,
            "struct_levenshtein_score": 1 - 2 / 16,
            "struct_difflib_score": 2 * 6 / 16,
            "num_rows_match": 1,
            "num_cols_match": 1,
        }
    )
    assert score.content == pytest.approx(0.625)
    assert score.format == pytest.approx((1 + 0.875 + 0.75 + 1 + 1) / 5)


def test_html_two_plain_cells_for_one_that_spans_two_differ_in_form_only() -> None:
    reference = "<table><tr><td colspan=2>a</td></tr><tr><td>b</td><td>c</td></tr></table>"
    prediction = "<table><tr><td>a</td><td>a</td></tr><tr><td>b</td><td>c</td></tr></table>"
    score = h_score(prediction, reference, format="html")
    # Tags: T R S d r R DdDd r t against T R D d D d r R DdDd r t; S becomes D, and Dd is too much: 3 of 12.
    # Runs: "d r R D d D d r t" of 9, and "T R" of 2: 11 of 12 and 14.
    assert score.content == 1.0
    assert score.parts["num_cells_match"] == 0.0
    assert score.parts["num_rows_match"] == score.parts["num_cols_match"] == 1.0
    assert score.parts["struct_levenshtein_score"] == pytest.approx(1 - 3 / 24)
    assert score.parts["struct_difflib_score"] == pytest.approx(2 * 11 / 26)


def test_latex_with_a_wrong_cell_and_another_alignment() -> None:
    reference = (
        r"\begin{table}\caption{Wins}\begin{tabular}{|l|c|}"
        r"Team & \textbf{W} \\ Hawks & 46\end{tabular}\end{table}"
    )
    prediction = reference.replace("|l|c|", "lr").replace("46", "47")
    score = h_score(prediction, reference, format="latex")
    assert score.parts == pytest.approx(
        {
            "caption_match_score": 1,
            "data_levenshtein_score": 1 - 1 / 8,
            "data_difflib_score": 2 * 3 / 8,
            "alignment_levenshtein_score": 1 - 1 / 4,
            "alignment_difflib_score": 2 * 1 / 4,
            "num_rows_match": 1,
            "num_cols_match": 1,
        }
    )
    assert score.content == pytest.approx((1 + 0.875 + 0.75) / 3)
    assert score.format == pytest.approx((0.75 + 0.5 + 1 + 1) / 4)
