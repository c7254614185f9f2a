"""TEDS, GriTS, RMS and cell F1 equal their published implementations on examples.

TEDS: PubTabNet's definition (arXiv 1911.10683) computed with the package apted 1.0.3. The values in `PUBLISHED` were
computed with the functions released by the authors: `factored_2dlcs` of microsoft/table-transformer (src/grits.py,
GriTS, arXiv 2203.12555), `table_datapoints_precision_recall` of google-research (deplot/metrics.py, RMS, arXiv
2212.10505), and `metrics_by_sim` of shirley-wu/text_to_table (scripts/eval/calc_data_f_score.py, arXiv 2109.02707)
with the metrics E and c. Others follow from the definitions by hand, shown beside each value.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from evalsuite.core.errors import ScoringError
from evalsuite.metrics.tables import cell_f1, grits_content, grits_topology, rms, teds, teds_structure

if TYPE_CHECKING:
    from collections.abc import Callable

HEADED = (
    '<table><thead><tr><td>Team</td><td colspan="2">Score</td></tr></thead><tbody>'
    "<tr><td>Hawks</td><td>12</td><td>7</td></tr><tr><td>Bulls</td><td>9</td><td>31</td></tr></tbody></table>"
)
PLAIN = (
    "<table><tr><td>Team</td><td>Score</td><td></td></tr><tr><td>Hawks</td><td>12</td><td>7</td></tr>"
    "<tr><td>Bulls</td><td>9</td><td>13</td></tr></table>"
)
SHORT = """<table><tbody><tr><td>Team</td><td colspan="2">Scores</td></tr>
<tr><td>Bulls</td><td>9</td></tr></tbody></table>"""
LONG = """<table><tr><td>Team</td><td>Wins</td><td>Average points</td></tr>
<tr><td rowspan="2">Hawks</td><td>12</td><td>98.5</td></tr><tr><td>14</td><td>101</td></tr>
<tr><td>Night Owls</td><td>9</td><td>87</td></tr><tr><td>Bulls</td><td></td><td>31%</td></tr></table>"""
WIDE = """<table><tr><td>Team</td><td>Won</td><td>Average</td><td>Place</td></tr>
<tr><td>Hawks</td><td>12</td><td>95</td><td>1</td></tr><tr><td>Owls</td><td>9</td><td>88</td><td>3</td></tr>
<tr><td>Bulls</td><td>2</td><td>33%</td><td>4</td></tr></table>"""
PUBLISHED = [
    (HEADED, LONG, 0.40877192982456134, 0.6666666666666667, 0.0, (0.8, 0.0, 0.0),
     (0.8181016477140868, 0.03508771929824561, 0.008170335328422275)),
    (HEADED, PLAIN, 0.8333333333333334, 0.8888888888888888, 0.0, (1.0, 0.6666666666666666, 0.5),
     (1.0, 0.6666666666666666, 0.5012468827930174)),
    (LONG, WIDE, 0.5576036866359446, 0.7419354838709677, 0.16260712387028176, (0.6666666666666666, 0.0, 0.0),
     (0.8999272197962154, 0.4089143738660983, 0.13276691037301527)),
    (WIDE, LONG, 0.5576036866359446, 0.7419354838709677, 0.16259342063238583, (0.6666666666666666, 0.0, 0.0),
     (0.7893930691173656, 0.2654772523347992, 0.06905541347881955)),
    (WIDE, PLAIN, 0.42888888888888893, 0.72, 0.0, (0.8, 0.0, 0.0),
     (0.839453717754173, 0.05229739776951673, 0.017437599160843576)),
]  # fmt: skip
"""Prediction, reference, GriTS of content and of topology, RMS, F1 of rows, columns and cells: exact, by chrF."""


@pytest.mark.parametrize(("prediction", "reference", "content", "topology", "points", "exact", "chrf"), PUBLISHED)
def test_values_equal_those_of_the_authors_code(
    prediction: str,
    reference: str,
    content: float,
    topology: float,
    points: float,
    exact: tuple[float, float, float],
    chrf: tuple[float, float, float],
) -> None:
    def closely(value: object) -> object:
        return pytest.approx(value, abs=1e-12)

    assert grits_content(prediction, reference, format="html") == closely(content)
    assert grits_topology(prediction, reference, format="html") == closely(topology)
    assert rms(prediction, reference, format="html") == closely(points)
    strict = cell_f1(prediction, reference, format="html")
    soft = cell_f1(prediction, reference, format="html", similarity="chrf")
    assert (strict.rows, strict.columns, strict.cells) == closely(exact)
    assert (soft.rows, soft.columns, soft.cells) == closely(chrf)


@pytest.mark.parametrize(
    ("prediction", "reference", "value"),
    [
        (HEADED, PLAIN, 0.6153846153846154),
        (HEADED, SHORT, 0.3846153846153846),
        (PLAIN, HEADED, 0.6153846153846154),
        (PLAIN, SHORT, 0.33333333333333337),
        (SHORT, HEADED, 0.3846153846153846),
        (SHORT, PLAIN, 0.33333333333333337),
    ],
)
def test_teds_equals_apted(prediction: str, reference: str, value: float) -> None:
    assert teds(prediction, reference, format="html") == pytest.approx(value, abs=1e-12)


def _html(*rows: str) -> str:
    return (
        "<table>"
        + "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row.split())}</tr>" for row in rows)
        + "</table>"
    )


def test_teds_of_structure_passes_over_texts() -> None:
    assert teds_structure(_html("a b", "c d"), _html("x y", "z w"), format="html") == 1.0
    # One cell of six nodes to insert.
    assert teds_structure(_html("a b", "c"), _html("a b", "c d"), format="html") == pytest.approx(1 - 1 / 6)


def test_grits_of_content_sums_the_ratios_of_aligned_cells() -> None:
    # abcd and abed share three of four characters: (3 + 0.75) of 4 cells on either side.
    assert grits_content(_html("abed b", "c d"), _html("abcd b", "c d"), format="html") == pytest.approx(3.75 / 4)
    # A row is missing: 4 cells of 4 and 6.
    assert grits_content(_html("a b", "e f"), _html("a b", "c d", "e f"), format="html") == pytest.approx(8 / 10)


def test_grits_of_topology_sums_the_overlaps_of_boxes() -> None:
    wanted = "<table><tr><td colspan=2>a</td></tr><tr><td>b</td><td>c</td></tr></table>"
    # Each half of the wide cell overlaps a narrow one by 1 of 2.
    assert grits_topology(_html("x y", "b c"), wanted, format="html") == pytest.approx((0.5 + 0.5 + 2) / 4)
    assert grits_topology(wanted, wanted, format="html") == 1.0


@pytest.mark.parametrize("value", ["NaN", "inf", "-inf"])
def test_rms_compares_what_is_not_a_finite_number_as_text(value: str) -> None:
    table = f"| city | wins |\n|---|---|\n| Oslo | {value} |\n| Bern | 3 |\n"
    assert rms(table, table, format="markdown") == 1.0
    assert rms(table.replace(value, "12"), table, format="markdown") < 1.0


@pytest.mark.parametrize("metric", [grits_content, grits_topology, rms])
def test_a_missing_row_costs_recall_and_not_precision(metric: Callable[..., Any]) -> None:
    score = metric("| a | b |\n|---|---|\n| 1 | 2 |", "| a | b |\n|---|---|\n| 1 | 2 |\n| 3 | 4 |", format="markdown")
    assert score.precision == 1.0 > score > score.recall
    assert score == pytest.approx(2 * score.recall / (1 + score.recall))
    assert (metric("none", "| a |\n|---|\n| 1 |", format="markdown").precision) == 0.0


def test_rms_allows_numbers_a_tenth_and_tables_on_their_side() -> None:
    wanted = _html("x p q", "r 100 20", "s 50 7")
    # 105 for 100 is right but for 0.05; three more values of four are right.
    assert rms(_html("x p q", "r 105 20", "s 50 7"), wanted, format="html") == pytest.approx((3 + 0.95) / 4)
    assert rms(_html("x p q", "r 120 20", "s 50 7"), wanted, format="html") == pytest.approx(3 / 4)
    assert rms(_html("x r s", "p 100 50", "q 20 7"), wanted, format="html") == 1.0


def test_the_f1_of_headers_and_cells_compares_sets() -> None:
    score = cell_f1(_html("x p z", "s 50 7", "r 100 20"), _html("x p q", "r 100 20", "s 50 8"), format="html")
    # Columns p of p, q; cells (r, p, 100) and (s, p, 50) of four.
    assert (score.rows, score.columns, score.cells) == (1.0, 0.5, 0.5)
    soft = cell_f1(_html("x points", "a 5"), _html("x point", "a 5"), format="html", similarity="chrf")
    assert 0.5 < soft.columns == soft.cells < 1.0


@pytest.mark.parametrize("metric", [teds, teds_structure, grits_content, grits_topology, rms])
def test_no_table_scores_zero_and_an_unreadable_reference_raises(metric: type) -> None:
    assert metric("No table.", _html("a b", "c d"), format="html") == 0.0
    with pytest.raises(ScoringError):
        metric(_html("a b"), "No table.", format="html")


def test_what_would_take_minutes_is_refused() -> None:
    large = _html(*(" ".join(f"{row}.{column}" for column in range(20)) for row in range(300)))
    for metric in (teds, grits_content, rms):
        with pytest.raises(ScoringError, match=r"too many|at most"):
            metric(large, large, format="html")


def test_teds_of_tables_without_anything_in_common_is_not_negative() -> None:
    row = f"<table><tr>{'<td>a</td>' * 5}</tr></table>"
    column = f"<table>{'<tr><td>b</td></tr>' * 5}</table>"
    assert teds(row, column, format="html") == 0.0
