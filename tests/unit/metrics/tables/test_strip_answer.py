"""A table is taken out of the answer around it, and nothing is lost that belongs to it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalsuite.metrics.tables import FORMATS, Format, strip_answer

SCRAPS = [
    "```", "````", "~~~", "```html\n", "\n", "\n\n", "text ", "Team:\n", "| a | b |\n", "|", "<table>", "<td>x",
    "</table>", "<", ">", r"\begin{tabular}{l}", r"\end{tabular}", r"\begin{", "a & b", "<NEWLINE>", "\r\n", " ",
    "---", "Is it?",
]  # fmt: skip


@settings(max_examples=200, deadline=None)
@given(answer=st.lists(st.sampled_from(SCRAPS), max_size=20).map("".join), written=st.sampled_from(FORMATS))
def test_stripping_twice_changes_nothing(answer: str, written: Format) -> None:
    once = strip_answer(answer, written)
    assert strip_answer(once, written) == once


@pytest.mark.parametrize(
    ("written", "answer", "markup"),
    [
        ("html", "Here: <table><tr><td>a > b</td></tr></table> Done.", "<table><tr><td>a > b</td></tr></table>"),
        ("html", "```html\n<p>a</p>\n```\nand\n```\n<p>b</p>\n```", "<p>a</p>\n\n<p>b</p>"),
        ("html", "```python\nprint(1)\n```\n<p>a</p>", "<p>a</p>"),
        ("html", "```\n<p>no end", "<p>no end"),
        ("html", "<tr><td>a</td><td>cut of", "<tr><td>a</td><td>cut of"),
        ("html", "<p>a</p> and 3 > 2", "<p>a</p>"),
        ("html", "1 < 2 is all", "1 < 2 is all"),
        ("latex", "Sure.\n\\begin{table}x\\end{table}\nBye", "\\begin{table}x\\end{table}"),
        ("latex", "\\begin{tabular}{l} a & b", "\\begin{tabular}{l} a & b"),
        ("latex", "\\begin{a}\\end{a} or \\begin{a} b", "\\begin{a}\\end{a} or \\begin{a} b"),
        ("latex", " no table ", "no table"),
        ("markdown", "Sure, here it is.\n\nTeam:\n| a |\n| 1 |\n\nDone.", "Team:\n| a |\n| 1 |"),
        ("markdown", "Team\n```\n| a |\n```\nPlayer\n```\n| b |\n```\nDone.", "Team\n| a |\nPlayer\n| b |"),
        ("markdown", "This sentence has no table | or has it.", "This sentence has no table | or has it."),
    ],
)
def test_what_stands_around_the_markup_goes(written: Format, answer: str, markup: str) -> None:
    assert strip_answer(answer, written) == markup
