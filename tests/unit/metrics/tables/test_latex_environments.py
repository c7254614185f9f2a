"""The table environments of LaTeX's packages, each with its own way to give columns, spans, heads and captions."""

from __future__ import annotations

import pytest

from evalsuite.metrics.tables import describe_form, read_reference_tables, read_tables

ROWS = r"A & B \\ 1 & 2"


@pytest.mark.parametrize(
    ("markup", "alignment"),
    [
        (rf"\begin{{tblr}}{{lc}} {ROWS} \end{{tblr}}", "lc"),
        (rf"\begin{{tblr}}{{colspec={{lc}},hlines}} {ROWS} \end{{tblr}}", "lc"),
        (rf"\begin{{tblr}}{{rowsep=1pt, colspec=lc, vlines}} {ROWS} \end{{tblr}}", "lc"),
        (rf"\begin{{longtblr}}[caption={{x}}]{{colspec={{lc}}}} {ROWS} \end{{longtblr}}", "lc"),
        (rf"\begin{{talltblr}}[label=t]{{lc}} {ROWS} \end{{talltblr}}", "lc"),
        (rf"\begin{{NiceTabular}}{{lc}}[hvlines] {ROWS} \end{{NiceTabular}}", "lc"),
        (rf"\begin{{NiceTabular}}[hvlines]{{lc}} {ROWS} \end{{NiceTabular}}", "lc"),
        (rf"\begin{{NiceTabular*}}{{9cm}}{{lc}} {ROWS} \end{{NiceTabular*}}", "lc"),
        (rf"\begin{{NiceTabularX}}{{\textwidth}}{{lX}}[hvlines] {ROWS} \end{{NiceTabularX}}", "lX"),
        (
            (
                rf"\begin{{NiceTabular}}{{lc}} \CodeBefore \rowcolor{{red}}1 \Body {ROWS} \CodeAfter \line{{1}}{{2}} "
                r"\end{NiceTabular}"
            ),
            "lc",
        ),
        (rf"$\begin{{array}}{{lc}} {ROWS} \end{{array}}$", "lc"),
        (rf"\begin{{tabu}} to 0.5\textwidth {{lX[r]}} {ROWS} \end{{tabu}}", "lX"),
        (rf"\begin{{tabu}}{{lc}} {ROWS} \end{{tabu}}", "lc"),
        (r"\begin{longtabu}{lc} A & B \\ \endhead 1 & 2 \end{longtabu}", "lc"),
        (
            (
                r"\begin{deluxetable}{lc}\tablehead{\colhead{A} & \colhead{B}}\startdata 1 & 2 \\ \enddata"
                r"\end{deluxetable}"
            ),
            "lc",
        ),
        (r"\tablehead{A & B \\}\begin{xtabular}{lc} 1 & 2 \\ \end{xtabular}", "lc"),
        (
            (
                r"\tablefirsthead{A & B \\}\tablehead{C & D \\}\begin{supertabular*}{9cm}{lc} 1 & 2 \\ "
                r"\end{supertabular*}"
            ),
            "lc",
        ),
        (r"\begin{tabbing} A \= B \\ 1 \> 2 \\ \end{tabbing}", ""),
        (r"\begin{tabbing} widest \= x \kill A \> B \\ 1 \> 2 \end{tabbing}", ""),
    ],
)
def test_every_environment_gives_its_rows_and_columns(markup: str, alignment: str) -> None:
    (table,) = read_tables(markup, "latex")
    assert (table.rows, "".join(table.alignment)) == ((("A", "B"), ("1", "2")), alignment)


@pytest.mark.parametrize(
    "markup",
    [
        r"\begin{tblr}{lcc}\SetCell[c=2]{c} A & & B \\ \SetCell[r=2]{l} 1 & 2 & 3 \\ & 4 & 5\end{tblr}",
        r"\begin{NiceTabular}{lcc}\Block{1-2}{A} & & B \\ \Block{2-1}{1} & 2 & 3 \\ & 4 & 5\end{NiceTabular}",
    ],
)
def test_cells_under_a_span_that_are_written_blank_are_filled(markup: str) -> None:
    (table,) = read_tables(markup, "latex")
    assert table.rows == (("A", "A", "B"), ("1", "2", "3"), ("1", "4", "5"))


@pytest.mark.parametrize(
    ("options", "caption"),
    [
        ("[caption={Results, \\textbf{2024}},label={tab:x}]", "Results, 2024"),
        ("[label=t,caption=Results of 2024]", "Results of 2024"),
        ("[caption=]", ""),
        ("[caption={unclosed]", ""),
        ("", ""),
    ],
)
def test_a_long_tabularray_takes_its_caption_from_its_options(options: str, caption: str) -> None:
    (table,) = read_tables(rf"\begin{{longtblr}}{options}{{lc}} {ROWS} \end{{longtblr}}", "latex")
    assert table.name == caption


def test_a_deluxetable_takes_its_caption_from_its_own_macro() -> None:
    (table,) = read_tables(
        rf"\begin{{deluxetable}}{{lc}}\tablecaption{{Stars}}\startdata {ROWS}\enddata\end{{deluxetable}}", "latex"
    )
    assert table.name == "Stars"


@pytest.mark.parametrize(
    ("option", "horizontal", "vertical"),
    [("hlines", "Horizontal rules part", "no vertical"), ("vlines", "no horizontal", "Vertical rules part"),
     ("hvlines", "Horizontal rules part", "Vertical rules part")],
)  # fmt: skip
def test_options_that_draw_all_rules_are_rules_of_the_table(option: str, horizontal: str, vertical: str) -> None:
    for markup in (
        rf"\begin{{tblr}}{{colspec={{lc}}, {option}}} {ROWS} \end{{tblr}}",
        rf"\begin{{NiceTabular}}{{lc}}[{option}] {ROWS} \end{{NiceTabular}}",
    ):
        described = describe_form(read_reference_tables(markup, "latex"))
        assert horizontal in described
        assert vertical in described
