"""Texts that a model writes for items hold every value of their tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from evalsuite.benchmarks.struc_bench.items import read_items
from evalsuite.builders.struc_bench.texts import list_missing_values

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from evalsuite.metrics.tables import Format

    Call = Callable[..., Any]
    Write = Callable[[str, Any], Path]

HTML = (
    "<table><caption>Boats</caption><tr><th>Boat</th><th>Built</th></tr>"
    "<tr><td>Red Tern</td><td>1,931</td></tr><tr><td>Skua</td><td>&ndash;</td></tr></table>"
)
WHOLE = "Of the Boats, the Red Tern was built in 1931; when the boat Skua was built is not known."
PARTIAL = "The Tern was built in 1932, and then there is the Skua."


@pytest.fixture(autouse=True)
def no_key(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def items(write: Write) -> Path:
    return write("html_test.json", [{"instruction": "Make a table.", "input": "By rule.", "output": HTML}])


def arguments(items: Path, url: str) -> list[str]:
    target = items.with_name("html_told.json")
    return ["texts", str(items), "--to", str(target), "--model=gpt-4", f"--model-base-url={url}"]


def test_a_text_that_lacks_values_is_asked_for_again_and_told_which(call: Call, items: Path, chat_server: Any) -> None:
    chat_server.reply = lambda body: chat_server.say(WHOLE if len(body["messages"]) > 1 else PARTIAL)
    outcome = call(*arguments(items, chat_server.url))
    assert (outcome.status, outcome.err) == (0, "")
    built = read_items(items.with_name("html_told.json"))
    assert [(item.input, item.output, item.instruction) for item in built] == [(WHOLE, HTML, "Make a table.")]
    asked_again = chat_server.bodies[1]["messages"][2]["content"]
    assert "It lacks these values of the table: 'Boats', 'Boat', 'Red Tern', '1,931'." in asked_again


def test_an_item_whose_text_stays_incomplete_is_named_and_left_out(call: Call, items: Path, chat_server: Any) -> None:
    chat_server.reply = lambda body: chat_server.say(PARTIAL)
    outcome = call(*arguments(items, chat_server.url))
    assert outcome.status == 1
    assert "item 0: " in outcome.err
    assert "1,931" in outcome.err
    assert not items.with_name("html_told.json").exists()
    assert len(chat_server.bodies) == 3


def test_a_text_with_the_table_s_code_is_refused(call: Call, items: Path, chat_server: Any) -> None:
    chat_server.reply = lambda body: chat_server.say(WHOLE if len(body["messages"]) > 1 else f"{WHOLE} <td>")
    assert call(*arguments(items, chat_server.url)).status == 0
    assert len(chat_server.bodies) == 2


@pytest.mark.parametrize(
    ("table", "written", "text", "missing"),
    [
        (r"\begin{tabular}{lr}A & $\gamma$ \\ 1{,}234 & \textbf{x}\end{tabular}", "latex", "A γ 1234 x", []),
        (r"\begin{tabular}{lr}A & B \\ 12 & 5\%\end{tabular}", "latex", "a, b, 112 and 5 percent", ["12"]),
        ("| a | b |\n|---|---|\n| x y | - |", "markdown", "y, then x; b and a", []),
        (HTML, "html", WHOLE, []),
    ],
)
def test_a_value_is_missing_where_a_word_or_number_of_it_is(
    table: str, written: Format, text: str, missing: list[str]
) -> None:
    assert list_missing_values(text, table, written) == missing
