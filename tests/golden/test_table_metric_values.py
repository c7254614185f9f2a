"""TEDS, GriTS, RMS and cell F1 equal their published implementations on examples.

TEDS: PubTabNet's definition (arXiv 1911.10683) computed with the package apted 1.0.3. The others follow from their
definitions by hand, shown beside each value: GriTS from arXiv 2203.12555 and the code of table-transformer, RMS
from arXiv 2212.10505 and the code of DePlot, the F1 of cells from arXiv 2109.02707.
"""

from __future__ import annotations

import pytest

from evalsuite.errors import ScoringError
from evalsuite.metrics.tables import cell_f1, grits_content, grits_topology, rms, teds, teds_structure

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
    assert grits_content(_html("abed b", "c d"), _html("abcd b", "c d"), format="html") == pytest.approx(
        3.75 / 4
    )
    # A row is missing: 4 cells of 4 and 6.
    assert grits_content(_html("a b", "e f"), _html("a b", "c d", "e f"), format="html") == pytest.approx(
        8 / 10
    )


def test_grits_of_topology_sums_the_overlaps_of_boxes() -> None:
    wanted = "<table><tr><td colspan=2>a</td></tr><tr><td>b</td><td>c</td></tr></table>"
    # Each half of the wide cell overlaps a narrow one by 1 of 2.
    assert grits_topology(_html("x y", "b c"), wanted, format="html") == pytest.approx((0.5 + 0.5 + 2) / 4)
    assert grits_topology(wanted, wanted, format="html") == 1.0


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
