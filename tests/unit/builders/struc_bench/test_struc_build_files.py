from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalsuite.benchmarks.struc_bench.items import read_items
from evalsuite.builders.struc_bench.files import describe_tables, find_defect, find_html_tables, find_latex_tables
from evalsuite.metrics.tables import CellGrid, read_tables, table_score

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from evalsuite.metrics.tables import Format

    Call = Callable[..., Any]
    Write = Callable[[str, Any], Path]

# Written for this test in the manner of an encyclopedia's tables: links, references, spans, a table in a cell.
FLEET = """\
<table class="fleet"><caption>The fleet</caption>
<tr><th colspan="3">Boats of <a href="/wiki/Orrin" title="Orrin">Orrin</a></th></tr>
<tr><th>Boat</th><th>Built</th><th>Notes</th></tr>
<tr><td rowspan="2"><b>Tern</b></td><td>1931<sup id="r1"><a href="#n1">[1]</a></sup></td><td>sunk</td></tr>
<tr><td>1950</td><td><table><tr><td>rebuilt</td></tr></table></td></tr>
<tr><td>Skua</td><td>1962</td><td></td></tr>
</table>"""
PAGE = f"""<html><body><!-- <table><tr><td>no</td></tr></table> -->
<script>document.write("<table><tr><td>no</td></tr></table>")</script>
<p>Before.</p>{FLEET}<p>Between.</p>
<TABLE border=1><TR><TD>Only<TD>cells</TABLE >
</body></html>
"""
FLOAT = r"""\begin{table}[ht]
\centering
\caption{Sales of \textbf{bread}}
\begin{tabular}{l|r}
\hline
Shop & Loaves \\ \hline
Mill & 420 \\
\multicolumn{2}{c}{closed} \\
\end{tabular}
\end{table}"""
SOURCE = rf"""\documentclass{{article}}
\newcommand{{\pair}}[2]{{\begin{{tabular}}{{l}} #1 \\ #2 \end{{tabular}}}}
% \begin{{tabular}}{{l}} commented out \\ \end{{tabular}}
\begin{{document}}
{FLOAT}
\begin{{verbatim}}
\begin{{tabular}}{{l}} shown, not set \end{{tabular}}
\end{{verbatim}}
\begin{{tabular}}{{cc}}
a & \own{{b}} \\ % a remark & more
50\% & d
\end{{tabular}}
\begin{{table}}\input{{other}}\end{{table}}
\begin{{table}}\includegraphics{{x}}\end{{table}}
\begin{{longtable}}{{l}} never ended
\end{{document}}
"""


def test_tables_of_a_page_become_items_as_they_stand(call: Call, write: Write, tmp_path: Path) -> None:
    write("pages/a.html", PAGE)
    outcome = call("files", "--from", tmp_path / "pages", "--to", tmp_path / "out")
    assert outcome.status == 0
    items = read_items(tmp_path / "out/html_test.json")
    assert [item.output for item in items] == [FLEET, "<TABLE border=1><TR><TD>Only<TD>cells</TABLE >"]
    assert items[0].input == (
        "Table 1 of 2.\nThe caption: The fleet\nAcross all columns: Boats of Orrin\nThe columns: Boat; Built; Notes.\n"
        "Tern: Built is 1931[1]; Notes is sunk.\nTern: Built is 1950.\nSkua: Built is 1962.\n\n"
        "Table 2 of 2.\nThe columns: rebuilt."
    )
    assert outcome.out == f"2 items in {tmp_path}/out/html_test.json\n0 tables or files left out, 1 file read\n"


def test_tables_of_a_latex_source_become_items_without_its_comments(call: Call, write: Write, tmp_path: Path) -> None:
    write("pages/deep/a.tex", SOURCE)
    outcome = call("files", "--from", tmp_path / "pages", "--to", tmp_path / "latex_test.json")
    items = read_items(tmp_path / "latex_test.json")
    assert items[0].output == FLOAT
    assert items[1].output == "\\begin{tabular}{cc}\na & \\own{b} \\\\ 50\\% & d\n\\end{tabular}"
    assert items[0].input == (
        "The caption: Sales of bread\nThe columns: Shop; Loaves.\nMill: Loaves is 420.\nAcross all columns: closed"
    )
    assert len(items) == 2
    assert outcome.err.splitlines() == [
        "deep/a.tex, line 2 is left out: it is part of a macro's definition",
        "deep/a.tex, line 22 is left out: its content is in another file (\\input)",
        "deep/a.tex, line 23 is left out: no cell with text can be read",
        "deep/a.tex, line 24 is left out: its environment has no \\end",
    ]


def test_a_folder_of_both_gives_a_file_a_format(call: Call, write: Write, tmp_path: Path) -> None:
    write("pages/a.HTM", FLEET)
    write("pages/b.tex", FLOAT)
    write("pages/c.txt", FLEET)
    assert call("files", "--from", tmp_path / "pages", "--to", tmp_path / "out").status == 0
    assert {path.name: len(read_items(path)) for path in (tmp_path / "out").iterdir()} == {
        "html_test.json": 1,
        "latex_test.json": 1,
    }


def test_a_file_name_that_tells_a_format_leaves_the_other_unread(call: Call, write: Write, tmp_path: Path) -> None:
    write("pages/a.html", FLEET)
    write("pages/b.tex", "no table")
    outcome = call("files", "--from", tmp_path / "pages", "--to", tmp_path / "html_wiki.json")
    assert "1 file read" in outcome.out
    assert not outcome.err
    outcome = call("files", "--from", tmp_path / "pages", "--to", tmp_path / "wiki.json")
    assert outcome.status == 2
    assert "call it html_test.json or similar" in outcome.err


def test_files_that_cannot_be_used_are_named_and_the_rest_is_built(call: Call, write: Write, tmp_path: Path) -> None:
    write("pages/a.html", b"<table><tr><td>caf\xe9</table>")
    write("pages/b.html", "<p>none</p>")
    write("pages/c.html", "\n<table><tr><td> </td></tr></table>\n<table><tr><td>cut")
    write("pages/d.html", FLEET)
    outcome = call("files", "--from", tmp_path / "pages", "--to", tmp_path / "out")
    assert outcome.status == 0
    assert outcome.err.splitlines() == [
        "a.html is left out: found the byte 0xe9, expected UTF-8 text",
        "b.html is left out: it has no table",
        "c.html, line 2 is left out: no cell with text can be read",
        "c.html, line 3 is left out: its <table> has no end tag",
    ]
    assert "4 tables or files left out, 4 files read" in outcome.out


def test_a_folder_that_gives_nothing_is_one_message_and_no_file(call: Call, write: Write, tmp_path: Path) -> None:
    write("pages/b.html", "<p>none</p>")
    (tmp_path / "empty").mkdir()
    for folder, expected in (
        ("pages", "no table that can be used (1 table or file left out)"),
        ("empty", "no such file in it, expected a folder of *.html and *.htm and *.tex"),
        ("nowhere", "no such folder"),
    ):
        outcome = call("files", "--from", tmp_path / folder, "--to", tmp_path / "out")
        assert outcome.status == 2
        assert expected in outcome.err
    assert not (tmp_path / "out").exists()


def test_the_same_folder_gives_the_same_bytes(call: Call, write: Write, tmp_path: Path) -> None:
    for name in "bca":
        write(f"pages/{name}.html", FLEET.replace("Skua", name))
    for target in ("one", "two"):
        call("files", "--from", tmp_path / "pages", "--to", tmp_path / target)
    one, two = ((tmp_path / name / "html_test.json").read_bytes() for name in ("one", "two"))
    assert one == two
    items = read_items(tmp_path / "one/html_test.json")
    assert [name for item in items for name in "abc" if f"<td>{name}</td>" in item.output] == ["a", "b", "c"]


HTML = st.sampled_from(
    ["<table>", "<table", "</table>", "</table", "<tr>", "<td rowspan=9 colspan='3'>", "<th>", "<!--", "-->",
     "<script>", "</script>", "<title ", '"', "'", ">", "<", "text", "\n", "&amp;", "<li>", "\x00", "é", "<caption>"]
)  # fmt: skip
LATEX = st.sampled_from(
    ["\\begin{table}", "\\end{table}", "\\begin{tabular}{l|c}", "\\end{tabular}", "\\begin{longtable}", "&", "\\\\",
     "{", "}", "%", "\n", "\\caption{", "\\multicolumn{3}{c}", "\\multirow{-2}", "\\begin{verbatim}", "\\end{verbatim}",
     "#1", "\\", "$", "text", "\\input{x}", "\\verb|", "\\end{", "[", "é"]
)  # fmt: skip


@given(st.lists(HTML, max_size=60).map("".join))
def test_no_page_breaks_the_cutting_and_no_part_of_it_comes_twice(page: str) -> None:
    _check(page, "html")


@given(st.lists(LATEX, max_size=60).map("".join))
def test_no_source_breaks_the_cutting_and_no_part_of_it_comes_twice(source: str) -> None:
    _check(source, "latex")


def _check(text: str, written: Format) -> None:
    fragments = list((find_html_tables if written == "html" else find_latex_tables)(text))
    assert sum(len(fragment.markup) for fragment in fragments) <= len(text)
    assert [fragment.start for fragment in fragments] == sorted(fragment.start for fragment in fragments)
    for fragment in fragments:
        assert fragment.start <= len(text)
        if not find_defect(fragment, written):
            assert table_score(fragment.markup, fragment.markup, format=written).value == 1.0
            assert describe_tables(read_tables(fragment.markup, written))


@pytest.mark.parametrize(
    "page",
    [
        "<table " * 30_000,
        "<table>" * 30_000 + "</table>" * 30_000,
        "<table></table>" * 20_000,
        "<table \"'" * 30_000,
        "<!--<table>" * 30_000,
        "</table>" * 30_000,
        "<script " * 30_000,
    ],
    ids=["unclosed tags", "nested", "many", "quotes", "comments", "ends", "scripts"],
)
def test_a_hostile_page_is_cut_in_linear_time(page: str) -> None:
    assert sum(len(fragment.markup) for fragment in find_html_tables(page)) <= len(page)


@pytest.mark.parametrize(
    "source",
    [
        "\\begin{table}" * 10_000,
        "\\begin{table}\\end{table}\n" * 10_000,
        "\\begin{table}" * 5_000 + "\\end{table}" * 5_000,
        "%" * 50_000,
        "\\begin{tabular}{l}" + "#" * 50_000 + "\\end{tabular}",
    ],
    ids=["unended", "many", "nested", "comments", "parameters"],
)
def test_a_hostile_source_is_cut_in_linear_time(source: str) -> None:
    assert sum(len(fragment.markup) for fragment in find_latex_tables(source)) <= len(source)


CELL = st.text("abcdef 0123", min_size=1, max_size=6).map(str.strip)


@given(st.lists(st.lists(CELL, min_size=1, max_size=4).map(tuple), min_size=1, max_size=5), CELL)
def test_the_words_hold_every_cell_and_the_caption(rows: list[tuple[str, ...]], name: str) -> None:
    text = describe_tables([CellGrid(tuple(rows), name=name)])
    assert all(cell in text for row in rows for cell in row)
    assert name in text
