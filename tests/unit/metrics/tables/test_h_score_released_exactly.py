"""The released definition equals its straightforward implementation, on anything that looks like markup."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from evalsuite.core.errors import ScoringError
from evalsuite.metrics.tables import Format, h_score
from evalsuite.metrics.tables.released import TREE_LIMIT, ReleasedPage

if TYPE_CHECKING:
    from types import ModuleType

REAL = Path(__file__).parents[5] / "shared" / "data" / "wikitables"

PIECES: dict[Format, list[str]] = {
    "markdown": [
        "team", "Team:", "player", "Player:\n", "|", "|", "| ", "\n", "<NEWLINE>", "<newline>", "---", "=", "-",
        "a", "12", " ", "\t", "\xa0", "İ", "ß", "\nTeam:\n| a | b |\n|---|---|\n| c | 1 |\n", "\x00",
    ],
    "html": [
        "<table>", "</table>", "<tr>", "</tr>", "<td>", "</td>", "<th>", "<ul>", "<li>", "<ol>", "<div>", "</div>",
        "<span>", "<pre>", "</pre>", "<textarea>", "<script>", "</script>", "<template>", "<ruby>", "<rt>", "<rp>",
        "<!-- c -->", "<!--", "<?pi x?>", "<!DOCTYPE html>", " ", "\n", " \n ", "\xa0", "text", "&amp;", "&nbsp;",
        "&bogus;", "&#0;", "<b>", "<h1>", "<img>", "<br/>", "<a href='x'>", "<body>", "<title>", "<o:p>", "\x00",
        "<", ">", "</", "<td", '"', "<TD>", "é", "\x0c", "<caption>", "<form>", "<svg>", "\ufeff", "<plaintext>",
    ],
    "latex": [
        r"\begin{tabular}{lc}", r"\begin{tabular}", r"\begin{tabular}[t]{l}", r"\end{tabular}", r"\begin{table}",
        r"\end{table}", "&", "a", "1.5 ", r"\\", r"\\[2pt]", r"\\*", "~", "$x & y$", "$", r"\(", "{", "}", "[", "]",
        r"\textbf{x}", r"\textbf y", r"\multicolumn{2}{c}{z}", r"\caption{Of {all} ~ \textbf{b}}", r"\caption[s]{l}",
        r"\caption", r"\hline", "%c\n", "\n\n", r"\%", r"\frac12", r"\verb|a&b|", r"\item[a]", "``", "--", "\\",
        r"\begin{tabular*}{5cm}{ll}", r"\begin{array}{c}1&2\end{array}", r"\begin{verbatim}&\end{verbatim}",
    ],
}  # fmt: skip


def markup(written: Format) -> st.SearchStrategy[str]:
    return st.lists(st.sampled_from(PIECES[written]), max_size=25).map("".join)


def pairs(written: Format) -> st.SearchStrategy[tuple[str, str]]:
    """Unlike texts, and a text with a copy that lacks a few characters."""

    def cut(drawn: tuple[str, list[int]]) -> tuple[str, str]:
        text, places = drawn
        return "".join(char for place, char in enumerate(text) if place % 40 not in places), text

    alike = st.tuples(markup(written), st.lists(st.integers(0, 39), max_size=3)).map(cut)
    return st.one_of(st.tuples(markup(written), markup(written)), alike)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(pair=pairs("markdown"))
def test_raw_text_scores_as_spelled_out(plain: ModuleType, pair: tuple[str, str]) -> None:
    parts = h_score(*pair, format="markdown").parts
    assert parts == pytest.approx(plain.markdown(*pair), abs=1e-9)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(pair=pairs("html"))
def test_html_scores_as_spelled_out(plain: ModuleType, pair: tuple[str, str]) -> None:
    parts = h_score(*pair, format="html").parts
    assert parts == pytest.approx(plain.html(*pair), abs=1e-9)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(pair=pairs("latex"))
def test_latex_scores_as_spelled_out(plain: ModuleType, pair: tuple[str, str]) -> None:
    try:
        expected = plain.latex(*pair)
    except Exception:  # noqa: BLE001 - whatever the definition itself cannot read
        assume(False)
    parts = h_score(*pair, format="latex").parts
    assert parts == pytest.approx(expected, abs=1e-9)


@pytest.mark.skipif(not REAL.is_dir(), reason="the folder shared/data/wikitables is not beside the project")
def test_real_tables_and_corrupted_copies_score_as_spelled_out(plain: ModuleType) -> None:
    for path in sorted(REAL.glob("*.html"))[::12]:
        reference = path.read_text(encoding="utf-8")
        dice = random.Random(path.name)
        prediction = "".join(char for char in reference if dice.random() > 0.002)
        parts = h_score(prediction, reference, format="html").parts
        assert parts == pytest.approx(plain.html(prediction, reference), abs=1e-9), path.name


def test_a_flattened_tree_doubles_with_each_tag_around() -> None:
    # One tag: <p></p>. Two: <div>, the walk below it, </div>, and that walk once more.
    assert len(ReleasedPage("<p>x</p>").flatten_tag_tree()) == 2
    assert len(ReleasedPage("<div><p>x</p></div>").flatten_tag_tree()) == 6
    assert len(ReleasedPage("<div>" * 10).flatten_tag_tree()) == 2**11 - 2


def test_nesting_up_to_the_limit_is_scored_and_past_it_refused() -> None:
    deep = "<div>" * 15
    assert len(ReleasedPage(deep).flatten_tag_tree()) <= TREE_LIMIT
    assert h_score(deep, deep, format="html").format == 3.0
    with pytest.raises(ScoringError, match="more than 100,000 tags"):
        h_score("<div>" * 16, deep, format="html")


@pytest.mark.parametrize("depth", [64, 5000])
def test_nesting_far_past_the_limit_is_refused_without_building_anything(depth: int) -> None:
    with pytest.raises(ScoringError, match="more than 100,000 tags"):
        h_score("<td>x</td>", "<div>" * depth, format="html")


@pytest.mark.parametrize("opened", [r"\frac{", r"\sqrt["])
def test_arguments_that_stay_open_are_refused_before_they_take_for_ever(opened: str) -> None:
    with pytest.raises(ScoringError, match="nest too deeply"):
        h_score(opened * 30, r"\begin{tabular}{l}a\end{tabular}", format="latex")


@pytest.mark.parametrize(
    ("latex", "why"),
    [
        ("{" * 2000, "RecursionError"),
        (r"\begin{tabular}", "the text ends where a tabular's columns should be"),
        (r"a \verb", "IndexError"),
    ],
)
def test_latex_without_a_released_score_is_refused_with_the_reason(latex: str, why: str) -> None:
    with pytest.raises(ScoringError, match=f"(?s){why}.*use table_score"):
        h_score(latex, "", format="latex")


def test_half_a_surrogate_pair_is_no_obstacle() -> None:
    assert h_score("<td>\ud800</td>", "<td>?</td>", format="html").content == 2.0
