"""The table score: what leaves it at 1.0, what lowers it, and what it makes of answers of any kind."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalsuite.core.errors import ScoringError
from evalsuite.metrics.tables import FORMATS, Format, alignment, table_score

HTML = """<table border="1"><caption>Results</caption><thead><tr><th rowspan="2">Model</th>
<th colspan="2">Score</th></tr>
<tr><th>Dev</th><th>Test</th></tr></thead><tbody><tr><td>Alpha</td><td>12.3 ± 0.1</td><td>1,234</td></tr>
<tr><td>Beta</td><td><b>10–20</b></td><td>5%</td></tr></tbody></table>"""
LATEX = r"""\begin{table}\caption{Results}\label{tab:r}\begin{tabular}{lcc}\toprule
\multirow{2}{*}{Model} & \multicolumn{2}{c}{Score} \\ & Dev & Test \\ \midrule
Alpha & 12.3 $\pm$ 0.1 & 1{,}234 \\ Beta & \textbf{10--20} & 5\% \\ \bottomrule\end{tabular}\end{table}"""
MARKDOWN = """| Model | Score | Score |\n|---|---|---|\n| Model | Dev | Test |
| Alpha | 12.3 ± 0.1 | 1,234 |\n| Beta | **10–20** | 5% |"""
WRITTEN: dict[Format, str] = {"html": HTML, "latex": LATEX, "markdown": MARKDOWN}


@pytest.mark.parametrize("written", FORMATS)
def test_a_copy_scores_one_in_everything(written: Format) -> None:
    score = table_score(WRITTEN[written], WRITTEN[written], format=written)
    assert (score.value, score.content, score.form) == (1.0, 1.0, 1.0)
    assert all(score.parts.values())
    assert all(fact.fulfilled for fact in score.facts)


@pytest.mark.parametrize("written", FORMATS)
@pytest.mark.parametrize("answer", ["", "I cannot make a table of this.", "|", "<td>", r"\begin{tabular}", "\x00" * 9])
def test_junk_and_an_empty_answer_score_zero_throughout(answer: str, written: Format) -> None:
    score = table_score(answer, WRITTEN[written], format=written)
    assert (score.value, score.content, score.form) == (0.0, 0.0, 0.0)


@pytest.mark.parametrize("wanted", FORMATS)
@pytest.mark.parametrize("answered", FORMATS)
def test_a_table_in_another_markup_loses_form_and_no_content(answered: Format, wanted: Format) -> None:
    score = table_score(WRITTEN[answered], WRITTEN[wanted], format=wanted)
    assert score.content == 1.0
    assert (score.form == 1.0) == (answered == wanted)


def test_no_cell_right_in_the_right_shape_scores_about_zero() -> None:
    wanted = "| Team | Wins |\n|---|---|\n| Hawks | 12 |\n| Bulls | 7 |"
    wrong = "| Xoyuz | Qfpv |\n|---|---|\n| Mmmmm | 99 |\n| Zzzzz | 41 |"
    assert table_score(wrong, wanted, format="markdown").value < 0.02


def _html(rows: list[list[str]]) -> str:
    return (
        "<table>" + "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows) + "</table>"
    )


def test_the_same_cells_in_another_arrangement_lose_content() -> None:
    rows = [[str(101 + 4 * row + column) for column in range(4)] for row in range(6)]
    cells = [cell for row in rows for cell in row]
    by_four = [cells[place : place + 6] for place in range(0, 24, 6)]
    assert table_score(_html(by_four), _html(rows), format="html").content < 0.5
    assert table_score(_html([[cell] for cell in cells]), _html(rows), format="html").content < 0.5


def test_a_transposed_table_keeps_its_content_and_loses_form() -> None:
    rows = [["Name", "A", "B"], *([f"name{place}", f"{place}1", f"{place}2"] for place in range(5))]
    score = table_score(_html([list(row) for row in zip(*rows, strict=True)]), _html(rows), format="html")
    assert score.content == 1.0
    assert {"order", "rows", "columns"} == {fact.name for fact in score.facts if not fact.fulfilled}


def test_a_transposed_table_is_recognised_by_the_names_of_either_side() -> None:
    rows = [["Day", "Gulls", "Terns"], *([f"june {day} 2020", f"{day}5", f"{day}7"] for day in range(1, 5))]
    others = [[cell.replace("june ", "Jun. 0") for cell in row] for row in rows]
    assert table_score([*map(list, zip(*others, strict=True))], rows).content == table_score(others, rows).content > 0.8


def test_a_confusion_matrix_is_not_its_transpose() -> None:
    rows = [["", "cat", "dog"], ["cat", "7", "2"], ["dog", "3", "8"]]
    assert table_score([*map(list, zip(*rows, strict=True))], rows).content < 1.0


@pytest.mark.parametrize("written", ["markdown", "html", "latex"])
def test_a_value_under_the_name_of_another_column_or_row_counts_two_thirds(written: Format) -> None:
    birds = ["gull", "otter", "finch", "magpie", "stork", "wren"]
    rows = [["Team", "Won", "Lost"], *([bird, f"{place}1", f"{place}2"] for place, bird in enumerate(birds))]
    heads = [["Team", "Lost", "Won"], *rows[1:]]
    # Two names are wrong, and one third of each of 12 values.
    assert table_score(heads, rows, format=written).content == pytest.approx((21 - 2 - 4) / 21)
    names = [[{"otter": "finch", "finch": "otter"}.get(cell, cell) for cell in row] for row in rows]
    typo = [["Team", "Wonn", "Lost"], *rows[1:]]
    without = [["", "", ""], *rows[1:]]
    assert table_score(names, rows, format=written).content == pytest.approx((21 - 2 - 4 / 3) / 21)
    assert table_score(typo, rows, format=written).content > 0.98
    assert 0.7 < table_score(without, rows, format=written).content < 2 * 18 / (21 + 18)


def test_the_markup_costs_form_but_not_the_score_unless_it_is_broken() -> None:
    rows = [["Name", "Points"], ["Ann", "31"], ["Bea", "28"]]
    latex = "\\begin{tabular}{ll} Name & Points \\\\ Ann & 31 \\\\ Bea & 28 \\\\ \\end{tabular}"
    plain, broken = (table_score(answer, _html(rows)) for answer in (latex, latex.replace("{ll}", "")))
    assert plain.form < plain.value == 1.0
    assert broken.content == 1.0
    assert broken.value < 0.9
    ragged = table_score("| Name | Points |\n|---|---|\n| Ann | 31 |\n| Bea | 28 | |\n", _html(rows))
    assert ragged.value < 0.9


def test_a_typo_costs_less_than_a_wrong_word_and_a_wrong_number_all_of_its_cell() -> None:
    rows = [["Name", "Points"], ["Washington", "31"], ["Philadelphia", "28"]]

    def content(row: int, column: int, cell: str) -> float:
        changed = [[*line] for line in rows]
        changed[row][column] = cell
        return table_score(_html(changed), _html(rows), format="html").content

    typo, word, number = content(1, 0, "Washingtan"), content(1, 0, "Boston"), content(1, 1, "32")
    assert 1 > typo > 0.95 > word
    assert number == pytest.approx(5 / 6)


def test_the_order_of_rows_and_columns_counts_unless_it_is_set_aside() -> None:
    rows = [["Name", "A", "B"], *([f"name{place}", f"{place}1", f"{place}2"] for place in range(5))]
    shuffled = [rows[0], *rows[:0:-1]]
    swapped = [[row[2], row[0], row[1]] for row in rows]
    for changed, without in ((shuffled, {"row_order": False}), (swapped, {"column_order": False})):
        score = table_score(_html(changed), _html(rows), format="html")
        assert (score.content, [fact.name for fact in score.facts if not fact.fulfilled]) == (1.0, ["order"])
        assert table_score(_html(changed), _html(rows), format="html", **without).content == 1.0


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (r"12.3 $\pm$ 0.1", "$12.3\\pm0.1$"), ("10--20", "10–20"), ("``quoted''", "“quoted”"), ("H$_2$O", "H_2O"),
        (r"\num{1234}", "1,234"), (r"1\,234", "1234"), (r"5.0\%", r"5\%"), (r"\textbf{7}", "7"), ("$\\gamma$", "γ"),
        (r"\Tstrut 4", "4\\rule{0pt}{2.6ex}"), (r"\SI{5}{\kilo\gram}", "5 kg"), (r"\num{1.2e3}", "1,200"),
        (r"$1.2\times10^{3}$", "1200"), (r"$1.2 \times 10^{-3}$", "0.0012"),
    ],
)  # fmt: skip
def test_equal_values_are_equal_in_latex(one: str, other: str) -> None:
    first, second = (rf"\begin{{tabular}}{{ll}}a & b \\ c & {cell}\end{{tabular}}" for cell in (one, other))
    assert table_score(first, second, format="latex").content == 1.0


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("**bold**", "bold"),
        ("a&nbsp;b", "a b"),
        ("`x`", "x"),
        ("a<br>b", "a b"),
        (r"$0.29 \mathrm{e}-7$", "0.29e-7"),
        ("[a](http://b)", "a"),
        (r"t\_a", "t_a"),
        (r"$\frac{1}{8}$", "1/8"),
    ],
)
def test_equal_values_are_equal_in_raw_text(one: str, other: str) -> None:
    first, second = (f"| a | b |\n|---|---|\n| c | {cell} |" for cell in (one, other))
    assert table_score(first, second, format="markdown").content == 1.0


@pytest.mark.parametrize(
    ("fact", "complete", "faulty"),
    [
        ("well_formed", "Alpha", "{Alpha"), ("well_formed", "Dev & Test", "Dev & Test & All"),
        ("well_formed", r"\end{tabular}", ""), ("well_formed", "Alpha", "$Alpha"),
        ("well_formed", r"\end{table}", r"\end{tabel}"), ("compiles", "Score", "S_core"), ("compiles", "Score", "S#1"),
        ("compiles", "Dev &", r"Dev \hline &"), ("compiles", "{lcc}", ""),
    ],
)  # fmt: skip
def test_latex_that_would_not_compile_lacks_a_fact_of_form(fact: str, complete: str, faulty: str) -> None:
    def fulfils(answer: str) -> bool:
        return {fact.name: fact.fulfilled for fact in table_score(answer, LATEX, format="latex").facts}[fact]

    assert fulfils(LATEX)
    assert not fulfils(LATEX.replace(complete, faulty, 1))


@pytest.mark.parametrize("cell", [r"$x_1^2$", r"\verb|a_b|", r"a\_b", r"\cite{a_b}", r"\url{x_y#z}", r"\#1", "50% _"])
def test_signs_of_formulas_are_no_fault_where_latex_takes_them(cell: str) -> None:
    table = rf"\begin{{tabular}}{{l}}a \\ {cell}" + "\n \\\\ b\\end{tabular}"
    facts = {fact.name for fact in table_score(table, table, format="latex").facts}
    assert {"well_formed", "compiles"} <= facts


def test_a_tick_is_no_cross() -> None:
    assert table_score(_html([["a", "✓"]]), _html([["a", "✗"]]), format="html").content == 0.5


@pytest.mark.parametrize(
    "rule", [r"\Xhline{1pt}", r"\hhline{|=|=|}", r"\hlineB{2}", r"\thickhline", r"\hline\arrayrulecolor{red}"]
)
def test_rules_of_any_package_are_rules_and_no_text(rule: str) -> None:
    plain = r"\begin{tabular}{ll}\hline a & b \\ \hline 1 & 2 \\ \hline\end{tabular}"
    assert table_score(plain.replace(r"\hline", rule), plain, format="latex").value == 1.0


def test_latex_without_its_rules_borders_and_label_loses_form_alone() -> None:
    wanted = r"\begin{table}\caption{T}\label{t}\begin{tabular}{|l|l|}\hline a & b \\ \hline\end{tabular}\end{table}"
    bare = r"\begin{table}\caption{T}\begin{tabular}{ll}a & b\end{tabular}\end{table}"
    score = table_score(bare, wanted, format="latex")
    assert score.content == 1.0
    assert {fact.name for fact in score.facts if not fact.fulfilled} == {"label", "rules", "borders"}
    broken = table_score(wanted.replace("}\\end{table}", ""), wanted, format="latex")
    assert "well_formed" in {fact.name for fact in broken.facts if not fact.fulfilled}


def test_a_caption_is_form_in_every_markup() -> None:
    for written in ("html", "latex"):
        score = table_score(WRITTEN[written].replace("Results", "Nothing"), WRITTEN[written], format=written)
        assert score.content == 1.0
        assert [fact.name for fact in score.facts if not fact.fulfilled] == ["caption"]


def test_of_a_draft_and_a_final_table_the_final_one_is_scored() -> None:
    draft = MARKDOWN.replace("1,234", "9").replace("Beta", "Gamma")
    score = table_score(f"First:\n\n{draft}\n\nCorrected, final table:\n\n{MARKDOWN}", MARKDOWN, format="markdown")
    assert score.content == 1.0
    assert score.parts["form_tables"] == 0.0
    worse = table_score(f"{MARKDOWN}\n\nOr rather:\n\n{draft}", MARKDOWN, format="markdown")
    assert worse.content == table_score(draft, MARKDOWN, format="markdown").content


def test_a_table_cut_in_two_is_compared_as_a_whole() -> None:
    rows = [["Name", "Points"], *([f"name{place}", f"{place}7"] for place in range(8))]
    halves = _html(rows[:4]) + _html(rows[4:])
    assert table_score(halves, _html(rows), format="html").content == 1.0


def test_surplus_tables_cost_precision() -> None:
    score = table_score(MARKDOWN + "\n\nMore\n\n| x | y |\n|---|---|\n| 8 | 9 |", MARKDOWN, format="markdown")
    assert 0.8 < score.content < 1.0
    assert score.parts["cell_recall"] == 1.0


def test_the_signature_names_what_decides_the_score() -> None:
    signature = table_score(HTML, LATEX, format="latex", row_order=False).signature
    assert "version:" in signature
    assert "reader:html" in signature
    assert "order:columns" in signature


def test_an_unreadable_reference_is_an_error() -> None:
    with pytest.raises(ScoringError, match="contains no table"):
        table_score(HTML, "No table.", format="html")
    with pytest.raises(ValueError, match="not 'pdf'"):
        table_score(HTML, HTML, format="pdf")


CELLS = st.text("ab1 .|&<>$\\{}%_^*\n-é✓", max_size=8)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.lists(CELLS, min_size=1, max_size=4), min_size=1, max_size=5),
    st.text(max_size=80),
    st.sampled_from(FORMATS),
)
def test_any_answer_has_a_score_between_zero_and_one(rows: list[list[str]], text: str, written: Format) -> None:
    for answer in (text, _html(rows), "\n".join("|".join(row) for row in rows)):
        score = table_score(answer, WRITTEN[written], format=written)
        assert all(0.0 <= number <= 1.0 for number in (score.value, score.content, score.form, *score.parts.values()))


@pytest.mark.parametrize(("height", "width"), [(1_200, 3), (3, 1_200), (135, 40)])
def test_tables_beyond_the_bound_are_aligned_in_the_coarser_way(
    monkeypatch: pytest.MonkeyPatch, height: int, width: int
) -> None:
    monkeypatch.setattr(alignment, "MOST_CELLS", 4_000)
    rows = [[f"{row}x{column}" for column in range(width)] for row in range(height)]
    missing = [row for place, row in enumerate(rows) if place != height // 2]
    assert table_score(_html(rows), _html(rows), format="html").content == 1.0
    expected = 2 * len(missing) / (len(missing) + height)
    assert table_score(_html(missing), _html(rows), format="html").content == pytest.approx(expected, abs=0.02)


def test_a_thousand_rows_in_any_order_are_paired_by_what_they_hold() -> None:
    draw = random.Random(2)
    rows = [[f"row {place}", *(f"{draw.random() * 100:.2f}" for _ in range(5))] for place in range(1_000)]
    changed = [[cell if draw.random() > 0.3 else f"{draw.random() * 1000:.1f}" for cell in row] for row in rows]
    draw.shuffle(changed)
    head = "| Name | a | b | c | d | e |"
    wanted, predicted = ("\n".join([head, *(f"| {' | '.join(row)} |" for row in side)]) for side in (rows, changed))
    score = table_score(predicted, wanted, format="markdown", row_order=False)
    assert 0.68 < score.content < 0.73
    assert "order:columns|assigned:2500" in score.signature


GROUPED_HTML = (
    '<table><tr><td>Name</td><td colspan="4">Points</td></tr><tr><td rowspan="3">Gulls</td><td>1</td><td>2</td>'
    "<td>3</td><td>4</td></tr><tr><td>5</td><td>6</td><td>7</td><td>8</td></tr><tr><td>9</td><td>10</td><td>11</td>"
    "<td>12</td></tr></table>"
)
UNGROUPED = [["Name", "Points", "", "", ""], ["Gulls", *"1234"], ["", *"5678"], ["", "9", "10", "11", "12"]]


def test_blank_cells_under_a_span_cost_half_a_cell_per_span_in_both_directions() -> None:
    score, reverse = table_score(UNGROUPED, GROUPED_HTML), table_score(GROUPED_HTML, UNGROUPED, format="html")
    # Name, Points, Gulls and 12 numbers, and one more cell for each span, which counts half.
    assert score.content == reverse.content == pytest.approx(16 / 17)
    assert "spans" in [fact.name for fact in score.facts if not fact.fulfilled]


def test_a_blank_cell_beside_a_span_or_with_another_text_counts_in_full() -> None:
    lacks_value = [[*row] for row in UNGROUPED]
    lacks_value[3][4] = ""
    assert table_score(lacks_value, GROUPED_HTML).content == pytest.approx(15 / 17)


@pytest.mark.parametrize("place", [0, 2, 3])
def test_a_blank_column_or_row_is_an_error_of_form_alone(place: int) -> None:
    rows = [["Name", "Won", "Lost"], ["Gulls", "7", "9"], ["Otters", "12", "4"]]
    wider = [[*row[:place], "", *row[place:]] for row in rows]
    longer = [*rows[:place], ["", "", ""], *rows[place:]]
    for changed in (wider, longer):
        for score in (table_score(changed, rows, format="html"), table_score(rows, changed, format="html")):
            assert score.content == 1.0
            assert score.form < 1.0


def test_a_title_row_counts_as_one_cell_however_wide_it_is() -> None:
    rows = [["Name", "Won", "Lost"], ["Gulls", "7", "9"], ["Otters", "12", "4"]]
    for title in (["Birds of the year", "", ""], ["Birds of the year"] * 3):
        assert table_score([title, *rows], rows).content == pytest.approx(18 / 19)
        assert table_score(rows, [title, *rows]).content == pytest.approx(18 / 19)
    assert table_score([["a", "b", "c"], *rows], rows).content == pytest.approx(18 / 21)
