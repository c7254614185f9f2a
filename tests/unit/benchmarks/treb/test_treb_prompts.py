from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from evalsuite.benchmarks.treb.solving import table_text
from evalsuite.benchmarks.treb.tables import SourceTable


def table(rows: int, columns: int = 2, cell: str = "cell") -> SourceTable:
    header = tuple(f"c{number}" for number in range(columns))
    return SourceTable((header,), tuple((f"r{number}", *[cell] * (columns - 1)) for number in range(rows)))


def test_a_small_table_is_shown_whole_in_the_words_of_the_record() -> None:
    assert table_text(table(49, 19), "| as given |", "tcot_markdown", 4096) == "| as given |"


def test_from_fifty_rows_on_the_first_fifty_are_shown_and_the_rest_is_counted() -> None:
    whole, cut = (table_text(table(rows), "", "tcot_markdown", 10**6) for rows in (50, 51))
    assert whole == table(50).markdown()
    assert "| r49 |" in cut
    assert "| r50 |" not in cut
    assert cut.endswith("(the first 50 of 51 rows)")


def test_twenty_columns_make_a_table_large() -> None:
    assert table_text(table(3, 20), "| as given |", "tcot_markdown", 10**6) == table(3, 20).markdown()


def test_html_stays_whole_when_rows_are_cut() -> None:
    text = table_text(table(200), "", "tcot_html", 500)
    assert "</tbody></table>\n(the first" in text
    assert len(text) < 550


def test_a_small_table_with_enormous_cells_is_cut_too() -> None:
    text = table_text(table(10, 2, "x" * 3000), "y" * 30_000, "tcot_markdown", 4096)
    assert "(the first 1 of 10 rows)" in text


def test_a_header_longer_than_the_limit_is_clipped() -> None:
    monster = SourceTable((("h" * 9000, "b"),), (("1", "2"),))
    assert len(table_text(monster, "", "tcot_html", 4096)) < 4200


@given(
    st.integers(0, 120),
    st.integers(1, 25),
    st.integers(20, 5000),
    st.sampled_from(["tcot_html", "tcot_markdown"]),
)
def test_no_table_takes_more_than_its_limit(rows: int, columns: int, limit: int, mode: str) -> None:
    text = table_text(table(rows, columns), "", mode, limit)
    assert len(text.split("\n(the first")[0]) <= limit + len("...")
