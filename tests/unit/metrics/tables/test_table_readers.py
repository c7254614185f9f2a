"""What each reader makes of the markup of its format, sound or broken."""

from __future__ import annotations

import pytest

from evalsuite.metrics.tables import read_tables
from evalsuite.metrics.tables.html import HtmlCell, lay_out_rows
from evalsuite.metrics.tables.latex import MOST_COLUMNS, read_column_letters

Rows = list[list[str]]


def rows_of(markup: str, written: str) -> Rows:
    (table,) = read_tables(markup, written)  # type: ignore[arg-type]  # parametrised by plain strings
    return [list(row) for row in table.rows]


@pytest.mark.parametrize(
    ("markup", "rows"),
    [
        ("| a | b |\n|:-:|---|\n| 1 | 2 |", [["a", "b"], ["1", "2"]]),
        ("a | b\n--- | ---\n1 | 2", [["a", "b"], ["1", "2"]]),
        ("| a | b |\n| 1 | 2 |", [["a", "b"], ["1", "2"]]),
        ("| a \\| b | c |\n| 1 | 2 |", [["a | b", "c"], ["1", "2"]]),
        ("| a | b |\n|---|---|\n| - | - |\n| --- | --- |", [["a", "b"], ["-", "-"]]),
        ("| a | |\n| | 2 |", [["a", ""], ["", "2"]]),
        ("| a | b | <NEWLINE> | 1 | 2 |", [["a", "b"], ["1", "2"]]),
        ("+---+---+\n| a | b |\n+===+===+\n| 1 | 2 |\n+---+---+", [["a", "b"], ["1", "2"]]),
        ("| a |\r\n|---|\r\n| 1 |\r\n", [["a"], ["1"]]),
        ("| a | b\n| 1 | 2 | 3", [["a", "b"], ["1", "2", "3"]]),
        ("a\tb\n1\t2", [["a", "b"], ["1", "2"]]),
        ('```\na,b\n1,"2,5"\n```', [["a", "b"], ["1", "2,5"]]),
        ("a;b\n1;2", [["a", "b"], ["1", "2"]]),
    ],
)
def test_raw_text_tables_are_read_in_every_style(markup: str, rows: Rows) -> None:
    assert rows_of(markup, "markdown") == rows


@pytest.mark.parametrize(
    "text",
    [
        "First, the Hawks won.\nThen, the Bulls lost.",
        "a,b\n1,2,3",
        "one\ttwo",
        (
            "A sentence that goes on, and on, and on until it is longer than any field of a file would ever be\n"
            "and another, which, like the first of the two, is far too long to be a row of comma-separated values"
        ),
    ],
)
def test_prose_with_commas_and_lone_lines_are_no_delimited_table(text: str) -> None:
    assert read_tables(text, "markdown") == []


def test_raw_text_tables_take_the_name_above_them() -> None:
    names = [
        table.name
        for table in read_tables(
            "**Team:**\n| a |\n\n### Player\n```\n| b |\n```\n\nThis sentence is no name.\n\n| c |", "markdown"
        )
    ]
    assert names == ["Team", "Player", ""]


@pytest.mark.parametrize(
    "markup",
    [
        "Team: | a |\n|---|\n| 1 |\nPlayer: | b |\n| 2 |",
        "**Team:** | a |\n| 1 |\n\n**Player:** | b |\n| 2 |",
        "> Team\n> | a |\n> |---|\n> | 1 |\n>\n> Player\n>> | b |\n>> | 2 |",
        "- Team\n  | a |\n  | 1 |\n- Player\n  | b |\n  | 2 |",
        "Team: <NEWLINE> | a | <NEWLINE> | 1 | <NEWLINE> Player: <NEWLINE> | b | <NEWLINE> | 2 |",
    ],
)
def test_raw_text_names_are_read_on_the_row_s_line_in_quotes_and_in_lists(markup: str) -> None:
    tables = [(table.name, table.rows) for table in read_tables(markup, "markdown")]
    assert tables == [("Team", (("a",), ("1",))), ("Player", (("b",), ("2",)))]


def test_a_first_cell_with_a_colon_or_an_angle_is_no_name_and_no_quote() -> None:
    assert rows_of("Wins: | 7 |\nLosses: | 3 |", "markdown") == [["Wins:", "7"], ["Losses:", "3"]]
    assert rows_of("a | b\n> 5 | 2", "markdown") == [["a", "b"], ["> 5", "2"]]


@pytest.mark.parametrize("text", ["", "|", "||||", "|---|", "either | or", "no table\n\nat all", "\\| a"])
def test_texts_without_rows_hold_no_raw_text_table(text: str) -> None:
    assert read_tables(text, "markdown") == []


@pytest.mark.parametrize(
    ("markup", "rows"),
    [
        ("<table><tr><td>a<td>b<tr><td>c", [["a", "b"], ["c"]]),
        ("<td>a</td><td>b</td>", [["a", "b"]]),
        ("<table><tr><th colspan=2>a</th></tr><tr><td>b</td><td>c</td></tr></table>", [["a", "a"], ["b", "c"]]),
        ("<table><tr><td rowspan='2'>a</td><td>b</td></tr><tr><td>c</td></tr></table>", [["a", "b"], ["a", "c"]]),
        ("<table><tr><td>a<td rowspan=2>b<tr></table>", [["a", "b"], ["", "b"]]),
        ("<table><tr><td>a<td rowspan=0>b<tr><td>c<tr><td>d</table>", [["a", "b"], ["c", "b"], ["d", "b"]]),
        ("<table><tr><td>a<td>x<td rowspan=2>b<tr><td>c</table>", [["a", "x", "b"], ["c", "", "b"]]),
        ("<table><tr><td rowspan=9>a</table>", [["a"]]),
        ("<table><tr><td rowspan=2>a<tr><tr><td>b</table>", [["a"], ["a"], ["b"]]),
        ("<table><tr><td>a<tr><tr><td>b</table>", [["a"], ["b"]]),
        (
            "<table><thead><tr><td rowspan=9>a<td>b</thead><tr><td>c<td>d<tbody><td rowspan=0>e<tr><td>g</table>",
            [["a", "b"], ["c", "d"], ["e"], ["e", "g"]],
        ),
        ("<table><tr><td colspan=x rowspan=-1>a</table>", [["a"]]),
        ("<table><tr><td><b>a</b> <i>b</i><br>c<p>d</p>e</td></tr></table>", [["a b c d e"]]),
        ("<table><tr><td>&eacute; &amp;\xa0x<script>1</script><!-- 2 --></td></tr></table>", [["é & x"]]),
    ],
)
def test_html_tables_are_read_with_their_spans(markup: str, rows: Rows) -> None:
    assert rows_of(markup, "html") == rows


def test_a_table_within_a_cell_is_a_table_of_its_own() -> None:
    outer, inner = read_tables("<table><tr><td>a<table><tr><td>b</table>c</table>", "html")
    assert (outer.rows, inner.rows) == ((("ac",),), (("b",),))


def test_html_captions_name_their_tables_and_are_no_cells() -> None:
    (table,) = read_tables("<table><caption>Wins <b>of</b> all</caption><tr><td>a</table>", "html")
    assert (table.name, table.rows) == ("Wins of all", (("a",),))


@pytest.mark.parametrize(
    "markup",
    [
        "<td colspan=1000 rowspan=65534>x" * 2000,
        "<table><tr>" + "<td rowspan=65534>x" * 1000 + "<tr><td>y" * 1000,
        r"\begin{tabular}{c}" + r"\multicolumn{1000}{c}{x} & " * 2000,
        r"\begin{tabular}{c}" + r"\multirow{1000}{*}{x} \\ " * 2000,
    ],
)
def test_spans_that_ask_for_millions_of_cells_get_a_few_for_each_that_is_there(markup: str) -> None:
    written = "html" if markup.startswith("<") else "latex"
    (table,) = read_tables(markup, written)  # type: ignore[arg-type]  # plain strings
    assert sum(map(len, table.rows)) <= 25 * 2100


@pytest.mark.parametrize(
    ("body", "rows"),
    [
        (r"a & b \\ c & d \\", [["a", "b"], ["c", "d"]]),
        (r"\hline a & b \\[2pt] \cmidrule(lr){1-2} c & d \\* e", [["a", "b"], ["c", "d"], ["e"]]),
        (r"\toprule a & b \tabularnewline\midrule c & d\\\bottomrule", [["a", "b"], ["c", "d"]]),
        (r"\textbf{a} & {\bf b} \\ \emph{c \textit{d}} & {e}f", [["a", "b"], ["c d", "ef"]]),
        (r"\multicolumn{2}{|c|}{\textbf{a}} & b \\ c & d & e", [["a", "a", "b"], ["c", "d", "e"]]),
        (r"\multirow{2}{*}{a} & b \\ & c \\ d & e", [["a", "b"], ["a", "c"], ["d", "e"]]),
        (r"\multirow[t]{2}{3cm}[1pt]{a} & b \\ & c", [["a", "b"], ["a", "c"]]),
        (r"a & b \\ c & \multirow{-2}{*}{d}", [["a", "b"], ["c", "d"]]),
        (r"& b \\ \multirow{-2}{*}{a} & c", [["a", "b"], ["a", "c"]]),
        (r"\multicolumn{2}{c}{\multirow{2}{*}{a}} \\ & \\ c & d", [["a", "a"], ["c", "d"]]),
        (r"\multirow{2}*{a} & b \\ & c \\ d & e", [["a", "b"], ["a", "c"], ["d", "e"]]),
        (r"\multirow2*{a} & b \\ & c", [["a", "b"], ["a", "c"]]),
        (r"\multirow{2}[4]*[-1pt]{a} & b \\ & c", [["a", "b"], ["a", "c"]]),
        (r"\multicolumn{2}c{a} & b \\ c & d & e", [["a", "a", "b"], ["c", "d", "e"]]),
        (r"\multicolumn2c{a} & b \\ \multicolumn & d & e", [["a", "a", "b"], ["", "d", "e"]]),
        (r"\textbf a & \emph b \\ $\mathbf 5$ & \underline{\textit{c}}d", [["a", "b"], ["5", "cd"]]),
        (r"\verb|a&b| & \verb*+\c+ \\ \verb!d & e\footnotemark[1]", [["a&b", r"\c"], [r"\verb !d", "e"]]),
        (r"50\% & \$5 \& 6 \\ a~b & x\_y", [["50%", "$5 & 6"], ["a b", "x_y"]]),
        (r"Caf\'e & \'{E}t\'e \\ \c{c}a & \~n\o", [["Café", "Été"], ["ça", "ñø"]]),
        (r"\'\bf e & \c\textbf{c} & \'\hline{}a", [["é", "ç", "á"]]),
        (r"$x^2$ & \(a\) \\ $\pm 1$ & $\alpha$", [["x^2", "a"], ["±1", "α"]]),
            (r"\frac{1}{2} & \nothing \\ \best{7} & \cellcolor[gray]{.9} 8", [["1/2", "\\nothing"], ["7", "8"]]),
        (r"\makecell[l]{a \\ b} & \begin{tabular}{@{}c@{}}c \\ d & e\end{tabular}", [["a b", "c d e"]]),
        ("a & b % c & d \\\\\n \\\\ e & f", [["a", "b"], ["e", "f"]]),
        (r"\href{http://x.org/a_b}{a} & \textcolor{red}{b}", [["a", "b"]]),
        (r"\resizebox{1cm}{!}{a} & \raisebox{2pt}[0pt]{b}", [["a", "b"]]),
        (r"a & {b & c \\ d", [["a", "b", "c"], ["d"]]),
        (r"a} & b \\ c & d} \\", [["a", "b"], ["c", "d"]]),
        (r"a & \begin{center}b & c \\ d", [["a", "b", "c"], ["d"]]),
    ],
)  # fmt: skip
def test_latex_cells_hold_what_is_printed(body: str, rows: Rows) -> None:
    assert rows_of(rf"\begin{{tabular}}[t]{{lcr}}{body}\end{{tabular}}", "latex") == rows


def test_a_latex_table_that_never_ends_is_read_to_the_end() -> None:
    assert rows_of(r"\begin{table} \begin{tabular}{l} a & b \\ c", "latex") == [["a", "b"], ["c"]]


def test_an_environment_that_is_only_spoken_of_is_no_table() -> None:
    assert rows_of(r"I use \begin{tabular}: \begin{tabular}{l}a\end{tabular}", "latex") == [["a"]]
    assert rows_of(r"\begin{tabular} a & b \\ c & d \end{tabular}", "latex") == [["a", "b"], ["c", "d"]]


@pytest.mark.parametrize(
    ("specification", "letters"),
    [
        ("|l|c|r|", "lcr"),
        ("l|*{2}{c}p{3cm}@{}", "lccp"),
        (r">{\bfseries}l<{x}S[table-format=2.1]X", "lSX"),
        (r"@{\extracolsep{\fill}}lcr", "lcr"),
        (r"D{.}{.}{2} m{0.2\textwidth} !{\vrule width 1pt} r", "Dmr"),
        ("l*3c*{0}{r}", "lccc"),
        ("{{{", ""),
        ("p{", "p"),
        ("*", ""),
        ("*{999}{*{999}{*{999}{*{999}{*{999}{c}}}}}", "c" * MOST_COLUMNS),
    ],
)
def test_column_specifications_give_a_letter_a_column(specification: str, letters: str) -> None:
    assert "".join(read_column_letters(specification)) == letters


@pytest.mark.parametrize(
    "begin",
    [
        r"\begin{tabular}{l|r}",
        r"\begin{tabular*}{\textwidth}{@{}lr@{}}",
        r"\begin{tabularx}{\linewidth}[t]{lr}",
        r"\begin{longtable}[c]{lr}",
    ],
)
def test_every_kind_of_tabular_is_read_with_its_alignment(begin: str) -> None:
    name = begin.split("{", 1)[1].split("}", 1)[0]
    (table,) = read_tables(rf"{begin}a & b\end{{{name}}}", "latex")
    assert (table.alignment, table.rows) == (("l", "r"), (("a", "b"),))


def test_of_a_longtable_the_first_head_stays_and_no_foot() -> None:
    (table,) = read_tables(
        r"\begin{longtable}{ll}\caption{Long}\\ A & B \\ \endfirsthead A & B \\ \endhead "
        r"\multicolumn{2}{r}{next page} \\ \endfoot \hline \endlastfoot 1 & 2 \\ 3 & 4 \\ \end{longtable}",
        "latex",
    )
    assert (table.name, table.rows) == ("Long", (("A", "B"), ("1", "2"), ("3", "4")))


def test_captions_belong_to_the_tables_of_their_float_in_order() -> None:
    tables = read_tables(
        r"\begin{table}\caption[short]{One \textbf{b}}\begin{tabular}{l}a\end{tabular}\end{table}"
        r"\begin{table}\begin{tabular}{l}b\end{tabular}\end{table}"
        r"\captionof{table}{Three}\begin{tabular}{l}c\end{tabular}",
        "latex",
    )
    assert [table.name for table in tables] == ["One b", "", "Three"]


@pytest.mark.parametrize(
    "scrap",
    [
        *("{", "}", "[", "&", "\\", r"\\[", r"\begin{tabular}{l}", r"\begin{a}", r"\end{a}", r"\begin{a}\end{b}"),
        *(r"\multicolumn{9}{c}{x}&", r"\caption{", r"\textbf[", r"\begin{tabular}[", r"\hline[(", r"\[({", r"\'"),
        *(r"\begin{tabular}{*{99}{c}}x", r"\begin{table}", r"\multirow{9}{*}{x}\\", r"\endhead", "*{9}{", "$%"),
        *("<td>", "<table>", "<table><tr><td>", "<div>", "<li>", "</td>", "<b>", "&amp", "<!--", "<td rowspan=9>"),
        *("|", "| |\n", "\\|", "|-|\n", "```\n", "a\n", "a|\n", "+-+\n", "<NEWLINE>|"),
    ],
)
def test_long_repetitions_of_any_scrap_are_read(scrap: str) -> None:
    for written in ("markdown", "html", "latex"):
        tables = read_tables(r"\begin{tabular}{l}" + scrap * 3000, written)
        assert isinstance(tables, list)


def test_rows_are_laid_out_as_html_lays_them_out() -> None:
    a, b, c, d = HtmlCell(2, 2), HtmlCell(), HtmlCell(rows=3), HtmlCell()
    rows = [[a, b], [c], [d]]
    assert lay_out_rows(rows, copies_left=100) == [[a, a, b], [a, a, c], [d, None, c]]
    assert lay_out_rows(rows, copies_left=0) == [[a, b], [c], [d]]
