"""Tables in markup that no prompt asks for: boxes, reStructuredText, JSON, MediaWiki, delimited text within prose."""

from __future__ import annotations

import html
import json
import random
from itertools import product

import pytest
from tabulate import tabulate

from evalsuite.metrics.tables import read_tables, table_score, teds

Rows = list[list[str]]
STYLES = [
    "plain",
    "simple",
    "github",
    "grid",
    "simple_grid",
    "rounded_grid",
    "heavy_grid",
    "mixed_grid",
    "double_grid",
    "fancy_grid",
    "outline",
    "simple_outline",
    "rounded_outline",
    "fancy_outline",
    "pipe",
    "orgtbl",
    "jira",
    "presto",
    "pretty",
    "psql",
    "rst",
    "mediawiki",
    "moinmoin",
    "youtrack",
    "html",
    "latex",
    "tsv",
    "asciidoc",
]


def make_rows(seed: int) -> Rows:
    draw = random.Random(seed)
    width = draw.randint(2, 6)
    words = [f"{draw.choice('bdfgklmn')}{draw.choice('aeiou')}{draw.choice('rstvz')}{place}" for place in range(30)]
    head = ["Name", *(f"{draw.choice(words)} {draw.choice(words)}" for _ in range(width - 1))]
    return [head, *([draw.choice(words), *(f"{draw.uniform(0, 999):.2f}" for _ in head[1:])] for _ in range(4))]


@pytest.mark.parametrize(
    ("text", "row"),
    [
        ("| a | b |\n|---|---|\n| │ | ║ |", ("│", "║")),
        ("│ a │ b │\n├───┼───┤\n│ x|y │ 2 │", ("x|y", "2")),
        ("a ┃ b\n━━╋━━\n1 ┃ 2", ("1", "2")),
    ],
)
def test_the_first_bar_of_a_line_separates_its_cells_and_other_bars_are_text(text: str, row: tuple[str, ...]) -> None:
    (table,) = read_tables(text, "markdown")
    assert table.rows[-1] == row


@pytest.mark.parametrize("style", STYLES)
def test_every_style_of_tabulate_is_read_within_prose(style: str) -> None:
    for seed in range(5):
        head, *rows = make_rows(seed)
        table = tabulate(rows, head, tablefmt=style, disable_numparse=True)
        for answer in (table, f"Here is the table, as you asked:\n\n{table}\n\nI hope that this helps, truly."):
            assert table_score(answer, [head, *rows]).content == 1.0, answer


def test_json_is_read_in_every_common_shape() -> None:
    head, *rows = make_rows(11)
    records = [dict(zip(head, row, strict=True)) for row in rows]
    shapes = [
        records,
        [head, *rows],
        {"table": records},
        {"title": "Scores", "columns": head, "data": rows},
        {name: [row[place] for row in rows] for place, name in enumerate(head)},
        # The default of pandas, its orientation `index`, and types beside the data.
        {name: {str(count): row[place] for count, row in enumerate(rows)} for place, name in enumerate(head)},
        dict(enumerate(records)),
        {"schema": {"fields": [{"name": name, "type": "string"} for name in head]}, "data": records},
    ]
    for shape in shapes:
        for answer in (json.dumps(shape), f"Sure {{1}}:\n```json\n{json.dumps(shape, indent=2)}\n```"):
            assert table_score(answer, [head, *rows]).content == 1.0, answer
    lines = "\n".join(map(json.dumps, records))
    assert table_score(lines, [head, *rows]).content == 1.0
    named = {row[0]: dict(zip(head[1:], row[1:], strict=True)) for row in rows}
    assert table_score(json.dumps(named), [["", *head[1:]], *rows]).content == 1.0
    assert table_score('{"a": "x", "b": "y"}', [["a", "x"], ["b", "y"]]).content == 1.0


@pytest.mark.parametrize("text", ["[{" * 50_000, '{"a":' * 50_000, '["' * 20_000, '{"a":' * 500 + "1" + "}" * 500])
def test_hostile_json_is_not_a_table(text: str) -> None:
    assert table_score(text, [["a"], ["b"]]).value == 0.0


def test_spans_links_and_attributes_of_mediawiki_are_read() -> None:
    wiki = """{| class="wikitable"
|+ Birds
! rowspan="2" | Name !! colspan=2 style="x" | Games
|-
! Won !! Lost
|-
| [[Otter (team)|Otters]] || '''12''' || align=right | 4
|-
| Gulls
| 7
| 9
|}"""
    wanted = [["Name", "Games", "Games"], ["Name", "Won", "Lost"], ["Otters", "12", "4"], ["Gulls", "7", "9"]]
    score = table_score(f"Here it is:\n{wiki}\nDone.", wanted, format="html")
    assert score.content == 1.0
    assert score.match.predicted.tables[0].name == "Birds"
    assert [fact.name for fact in score.facts if not fact.fulfilled] == ["markup"]
    assert table_score(wiki, wiki).value == 1.0


def test_escaped_html_is_read_even_if_escaped_twice() -> None:
    table = "<table><tr><td>a &lt; 5</td><td>b</td></tr><tr><td>1</td><td>2</td></tr></table>"
    for answer in (html.escape(table), html.escape(html.escape(table))):
        assert table_score(answer, table).content == 1.0


def test_lists_of_restructuredtext_are_tables() -> None:
    text = ".. list-table::\n   :header-rows: 1\n\n   * - a\n     - b\n   * - 1\n     - 2,\n       3"
    assert table_score(text, [["a", "b"], ["1", "2, 3"]]).content == 1.0


@pytest.mark.parametrize(
    "row", ["| $|x|$ | 2 |", "| $ |x| $ | 2 |", r"| \(y\) `a|b` | 2 |", "| `|` | $P(a|b)$ |", "| ``a || b`` | 3 |"]
)
def test_bars_within_code_and_formulas_of_markdown_are_text(row: str) -> None:
    (table,) = read_tables(f"| Name | Value |\n|---|---|\n{row}\n| $5 | $7 |", "markdown")
    assert [len(cells) for cells in table.rows] == [2, 2, 2]
    assert table.rows[2] == ("$5", "$7")


def test_delimited_text_within_a_paragraph_is_a_table() -> None:
    head, *rows = make_rows(12)
    lines = "\n".join(",".join(row) for row in (head, *rows))
    answer = f"Here is the table, as you asked:\n{lines}\nI hope this helps, friend, with all of it, and more."
    assert table_score(answer, [head, *rows]).content == 1.0


@pytest.mark.parametrize("style", ["grid", "fancy_grid", "rounded_grid", "rst"])
def test_wrapped_cells_of_grids_are_joined(style: str) -> None:
    rows = [["Name", "Text"], ["kettle", "a long\ndescription\nin lines"], ["cup", "short"], ["pot", "two\nlines"]]
    text = tabulate(rows[1:], rows[0], tablefmt=style)
    assert table_score(text, [[cell.replace("\n", " ") for cell in row] for row in rows]).content == 1.0


def test_rows_between_two_rules_of_a_grid_are_not_joined_if_all_cells_are_filled() -> None:
    rule = "+------+---+\n"
    text = f"{rule}| Bird | N |\n{rule}| gull | 7 |\n| tern | 4 |\n{rule}| all | 11 |\n{rule}"
    assert [len(table.rows) for table in read_tables(text, "markdown")] == [4]


@pytest.mark.parametrize("seed", range(8))
def test_frames_as_pandas_prints_them_are_read(seed: int) -> None:
    pandas = pytest.importorskip("pandas")
    draw = random.Random(seed)
    head, *rows = make_rows(seed)
    frame = pandas.DataFrame(
        [[f"{row[0]} of {draw.choice('xyz')}", *map(float, row[1:])] for row in rows], columns=head
    )
    wanted = [head, *([str(cell) for cell in row] for row in frame.to_numpy().tolist())]
    prints = [str(frame), frame.to_string(index=False), str(frame.set_index(head[0]))]
    with pandas.option_context("display.max_columns", None, "display.width", 40):
        prints.append(str(frame))
    for text in prints:
        assert table_score(f"The frame is:\n\n{text}\n\nThat is all.", wanted).content == 1.0, text


@pytest.mark.parametrize("seed", range(12))
def test_printed_frames_with_cells_and_names_of_several_words_are_read(seed: int) -> None:
    pandas = pytest.importorskip("pandas")
    draw = random.Random(seed)
    words = ["Red", "North Sea", "Old Town", "very long", "of", "St.", "(net)"]

    def draw_column(height: int) -> list[object]:
        kind = draw.randrange(3)
        if kind == 0:
            return [draw.randint(-50, 5000) for _ in range(height)]
        return [" ".join(draw.choices(words, k=kind)) for _ in range(height)]

    height, width = draw.randint(3, 8), draw.randint(2, 5)
    frame = pandas.DataFrame({f"{draw.choice(words)} {place}": draw_column(height) for place in range(width)})
    wanted = [list(frame), *([str(cell) for cell in row] for row in frame.to_numpy().tolist())]
    assert table_score(str(frame), wanted).content == 1.0, str(frame)


@pytest.mark.parametrize(
    "style", ["grid", "pretty", "psql", "outline", "orgtbl", "colon_grid", "rounded_grid", "double_outline",
              "simple", "rst", "tsv"],
)  # fmt: skip
def test_bars_within_the_cells_of_aligned_tables_are_text(style: str) -> None:
    rows = [
        ["Bird", "Wing span", "n"],
        ["gull", "a|b", "1"],
        ["tern", "c|d", "2"],
        ["auk", "5", "3"],
        ["owl", "6", "4"],
    ]
    assert table_score(tabulate(rows[1:], rows[0], tablefmt=style), rows).content == 1.0


def test_the_columns_of_split_json_are_the_head() -> None:
    rows = make_rows(5)
    split = {"columns": rows[0], "index": [*range(len(rows) - 1)], "data": rows[1:]}
    assert table_score(json.dumps(split), rows).content == 1.0


def test_an_accent_above_nothing_in_latex_is_a_character() -> None:
    (table,) = read_tables(r"\begin{tabular}{ll} a\^{}2 & \~{}5 \\ \^{e}2 & \~n \end{tabular}", "latex")
    assert table.rows == (("a^2", "~5"), ("\u00ea2", "\u00f1"))


def test_rows_and_columns_that_pandas_leaves_out_are_missing() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({f"c{column}": [row * column for row in range(70)] for column in range(1, 30)})
    with pandas.option_context("display.max_rows", 10, "display.max_columns", 6, "display.width", 80):
        (table,) = table_score(str(frame), frame).match.predicted.tables
    assert (len(table.rows), table.width) == (11, 6)
    assert not {"...", ".."} & set(table.cells)


def test_prose_is_not_a_printed_frame() -> None:
    text = "I cannot do that.  It needs\na table of the cities,\nwhich I do not have."
    assert table_score(text, "| a | I |\n|---|---|\n| table | of |").match.predicted.tables == ()


def draw_grid(draw: random.Random) -> tuple[str, str, int]:
    """Draw a grid with cells over several rows and columns; return it with its HTML and the number of spans."""
    height, width = draw.randint(3, 6), draw.randint(3, 5)
    owner: dict[tuple[int, int], tuple[int, int, int, int]] = {}
    for row, column in product(range(height), range(width)):
        if (row, column) not in owner:
            # The first row and the first column stay single, so that each row and column has an edge.
            rows = draw.choice([1, 1, 2]) if 0 < row < height - 1 and column else 1
            columns = draw.choice([1, 1, 2]) if row and 0 < column < width - 1 else 1
            places = list(product(range(row, row + rows), range(column, column + columns)))
            if any(place in owner for place in places):
                places = [(row, column)]
            cell = (row, column, places[-1][0] + 1, places[-1][1] + 1)
            owner.update(dict.fromkeys(places, cell))
    cells = sorted(set(owner.values()))
    size = 12
    canvas = [[" "] * (width * size + 1) for _ in range(height * 2 + 1)]
    markup = [""] * height
    for number, (top, left, bottom, right) in enumerate(cells):
        for line in (top, bottom):
            for at in range(left * size, right * size + 1):
                dash = "=" if line == 1 else "-"
                canvas[2 * line][at] = "+" if canvas[2 * line][at] == "+" or at in {left * size, right * size} else dash
        for line in range(2 * top + 1, 2 * bottom):
            for at in (left * size, right * size):
                canvas[line][at] = "+" if canvas[line][at] == "+" else "|"
        text = f"{draw.choice(['gull', 'tern', 'auk'])} {number}"
        canvas[2 * top + 1][left * size + 2 : left * size + 2 + len(text)] = text
        markup[top] += f"<td rowspan={bottom - top} colspan={right - left}>{text}</td>"
    body = "".join(f"<tr>{row}</tr>" for row in markup)
    spans = sum(bottom - top > 1 or right - left > 1 for top, left, bottom, right in cells)
    return "\n".join(map("".join, canvas)), f"<table>{body}</table>", spans


@pytest.mark.parametrize("seed", range(40))
def test_cells_of_grids_that_span_rows_and_columns_are_read(seed: int) -> None:
    grid, page, spans = draw_grid(random.Random(seed))
    (table,) = read_tables(grid, "markdown")
    (wanted,) = read_tables(page, "html")
    assert table.rows == wanted.rows, grid
    assert {*table.spans} == {*wanted.spans}
    assert len(table.spans) == spans
    assert table_score(f"Here it is:\n\n{grid}\n", page).content == 1.0


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("has_shape", [True, False])
def test_the_types_in_frames_as_polars_prints_them_are_not_a_row(seed: int, *, has_shape: bool) -> None:
    draw = random.Random(seed)
    head, *rows = make_rows(seed)
    body = [[row[0], *(draw.choice([cell, "null"]) for cell in row[1:])] for row in rows]
    types = ["str", *(draw.choice(["f64", "i64", "list[str]", "datetime[\u03bcs]", "bool"]) for _ in head[1:])]
    lines = [head, ["---"] * len(head), types, *body]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    drawn = ["\u2502 " + " \u2506 ".join(map(str.ljust, line, widths)) + " \u2502" for line in lines]
    rules = [
        f"{a}{b.join(c * (width + 2) for width in widths)}{d}"
        for a, b, c, d in ("\u250c\u252c\u2500\u2510", "\u255e\u256a\u2550\u2561", "\u2514\u2534\u2500\u2518")
    ]
    text = "\n".join(
        [
            *([f"shape: ({len(body)}, {len(head)})"] if has_shape else []),
            rules[0],
            *drawn[:3],
            rules[1],
            *drawn[3:],
            rules[2],
        ]
    )
    wanted = [head, *([cell.replace("null", "") for cell in row] for row in body)]
    (table,) = read_tables(text, "markdown")
    assert [list(row) for row in table.rows] == wanted
    assert (table.name, table.head_rows) == ("", 1)


def test_grids_are_read_with_joined_and_with_separate_lines() -> None:
    wrapped = "+---+---+\n| a | b |\n+===+===+\n| c | d |\n| e | f |\n+---+---+\n| g | h |\n+---+---+"
    assert table_score(wrapped, [["a", "b"], ["c e", "d f"], ["g", "h"]]).content == 1.0
    assert table_score(wrapped, [["a", "b"], ["c", "d"], ["e", "f"], ["g", "h"]]).content == 1.0
    outline = "+---+---+\n| a | b |\n+===+===+\n| c | d |\n| e |   |\n+---+---+"
    assert table_score(outline, [["a", "b"], ["c", "d"], ["e", ""]]).content == 1.0


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("\tWins\tLost\nGulls\t3\t\nTerns\t\t5\n", [["", "Wins", "Lost"], ["Gulls", "3", ""], ["Terns", "", "5"]]),
        (
            "Team\tWins\tLost\nGulls\t3\nAuks\nTerns\t\t5",
            [["Team", "Wins", "Lost"], ["Gulls", "3", ""], ["Auks", "", ""], ["Terns", "", "5"]],
        ),
        ("Team\tWins\nGulls\t3\nAuks\nIt is complete.", [["Team", "Wins"], ["Gulls", "3"], ["Auks", ""]]),
        (
            "Team;Pay\nGulls;1,200\nTerns;3,400\nAuks;n/a",
            [["Team", "Pay"], ["Gulls", "1,200"], ["Terns", "3,400"], ["Auks", "n/a"]],
        ),
        ("Team,Pay\nGulls,a;b\nTerns,c;d", [["Team", "Pay"], ["Gulls", "a;b"], ["Terns", "c;d"]]),
        (
            r"\begin{tabular}{ll} a & b \\ \hline (c) & (d) \\ \cmidrule(lr){1-2} (e) & f \end{tabular}",
            [["a", "b"], ["(c)", "(d)"], ["(e)", "f"]],
        ),
        (
            (
                r"\begin{tabular}{ll} a & b \\[2pt] \midrule [0.1, 5] & c \\ [0.2, 6] & d \\ \addlinespace {e} & f \\"
                r" \addlinespace[1ex] \cline{1-2} [7] & 8\footnotemark[1] \end{tabular}"
            ),
            [["a", "b"], ["[0.1, 5]", "c"], ["[0.2, 6]", "d"], ["e", "f"], ["[7]", "8"]],
        ),
        (
            'Town,About\nBasel,A town on the Rhine.\nLyon,"A town, old and large."\nFaro,' + "white " * 20,
            [
                ["Town", "About"],
                ["Basel", "A town on the Rhine."],
                ["Lyon", "A town, old and large."],
                ["Faro", "white " * 20],
            ],
        ),
        (" a  | b\n----+---\n 1  | x\n    | y\n 2  | z", [["a", "b"], ["1", "x"], ["", "y"], ["2", "z"]]),
    ],
    ids=[
        "a blank corner",
        "blank ends",
        "a blank last end",
        "commas in cells",
        "semicolons in cells",
        "parentheses after a rule",
        "brackets after the end of a row and after rules",
        "sentences in cells",
        "a blank first cell without outer bars",
    ],
)
def test_blank_fields_delimiters_in_cells_and_brackets_after_rules_are_read(text: str, rows: Rows) -> None:
    assert table_score(text, rows).content == 1.0


BARS = [["Name", "Norm"], ["p | q", "|x|"], ["漢字|a", "7"]]
SIGNS = [["Name", "Share"], ["Otters", "12%"], ["Gulls", "$50"]]
WRITTEN_WITH_BARS = {
    "padded Markdown": "| Name   | Norm |\n|--------|------|\n| p | q  | |x|  |\n| 漢字|a | 7    |",
    "a rule without outer bars": " Name   | Norm\n--------+------\n p | q  | |x|\n 漢字|a | 7",
    "columns that only the head shows": "| Name   | Norm |\n| p | q  | |x|  |\n| 漢字|a | 7    |",
    "padded by the number of characters": "| Name  | Norm |\n|-------|------|\n| p | q | |x|  |\n| 漢字|a  | 7    |",
    "commas": "Name,Norm\np | q,|x|\n漢字|a,7",
    "tabs": "Name\tNorm\np | q\t|x|\n漢字|a\t7",
    "no rules between columns": " ─────────────── \n"
    "  Name     Norm  \n ─────────────── \n  p | q    |x|   \n  漢字|a   7     ",
    "csv-table": ".. csv-table:: Norms\n"
    '   :widths: 1, 2\n   :header: "Name", "Norm"\n\n   "p | q", "|x|"\n   "漢字|a", "7"',
}


@pytest.mark.parametrize("kind", WRITTEN_WITH_BARS)
def test_bars_within_cells_are_text_where_the_columns_are_known(kind: str) -> None:
    text = WRITTEN_WITH_BARS[kind]
    assert table_score(text, BARS).content == 1.0
    assert table_score(text.replace("7", "9"), BARS).content < 1.0


@pytest.mark.parametrize(
    "text",
    [
        "|_. Name  |_. Share |\n|<. Otters |>. 12% |\n|<. Gulls |>. $50 |",
        '[cols="<9, >5", options="header"]\n.Birds\n|===\n^|Name\n^|Share\n\n|Otters\n|12%\n\n|Gulls\n|$50\n|===',
        "|===\n|Name |Share\n\n|Otters |12%\n|Gulls |$50\n|===",
        "\\begin{tabular}{ll}\nName & Share \\\\\nOtters & 12% \\\\\nGulls & $50 \\\\\n\\end{tabular}",
    ],
)
def test_textile_asciidoc_and_unescaped_signs_of_latex_are_read(text: str) -> None:
    assert table_score(f"Here it is:\n\n{text}\n\nDone.", SIGNS).content == 1.0


def test_a_row_longer_than_the_rule_keeps_its_surplus_cell() -> None:
    (table,) = read_tables("| a | b |\n|---|---|\n| 1 | 2 | 3 |", "markdown")
    assert table.rows[1] == ("1", "2", "3")


@pytest.mark.parametrize("row", ["| 1234+6 | x_1 |", "| 1234\\| | x_1 |"])
def test_a_sign_or_escaped_bar_below_a_bar_of_the_head_does_not_separate_cells(row: str) -> None:
    head = "| 1.5 | 2.0000 |" if "+" in row else "| 1.50 | 2.000 |"
    assert row[head.index("|", 1)] in "+|"
    (table,) = read_tables(f"{head}\n{row}", "markdown")
    assert len(table.rows[1]) == 2


@pytest.mark.parametrize("end", ["\r\n", "\r", "\r\r\n", "\u2028"])
@pytest.mark.parametrize(
    "lines",
    [
        ["| City | Votes |", "|---|---|", "| Ulm | 5 |"],
        ["|===", "|City |Votes", "", "|Ulm |5", "|==="],
        ["+------+-------+", "| City | Votes |", "+======+=======+", "| Ulm  | 5     |", "+------+-------+"],
    ],
)
def test_the_kind_of_line_end_does_not_matter(lines: list[str], end: str) -> None:
    assert table_score(end.join(lines), "| City | Votes |\n|---|---|\n| Ulm | 5 |").content == 1.0
    assert table_score(end.join(lines), "\n".join(lines)).value == 1.0
    assert teds(end.join(lines), "\n".join(lines)) == 1.0
