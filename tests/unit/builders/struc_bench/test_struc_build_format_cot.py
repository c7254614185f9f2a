from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any

import pytest

from evalsuite.benchmarks.struc_bench.items import read_items
from evalsuite.builders.struc_bench.texts import ATTEMPTS, EXAMPLES, find_description_problem
from evalsuite.metrics.tables import FORMATS

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from evalsuite.metrics.tables import Format

    Call = Callable[..., Any]
    Write = Callable[[str, Any], Path]

TABLE = "<table><tr><th>Boat</th><th>Built</th></tr><tr><td>{}</td><td>{}</td></tr></table>"
BOATS = [("Tern", 1931), ("Skua", 1962), ("Gull", 1970), ("Loon", 1981)]
ITEMS = [
    {"instruction": "Make a table.", "input": f"The {boat} was built in {year}.", "output": TABLE.format(boat, year)}
    for boat, year in BOATS
]  # fmt: skip
WORDS = "One table of two rows with two cells each; the first row holds header cells named Boat and Built."
COMMAND = "import sys; from evalsuite.cli import main; sys.exit(main())"


@pytest.fixture(autouse=True)
def no_key(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def items(write: Write) -> Path:
    return write("html_test.json", ITEMS)


def arguments(items: Path, url: str, *more: object) -> list[str]:
    to = items.with_name("html_cot.json")
    return ["format-cot", str(items), "--to", str(to), "--model=gpt-4", f"--model-base-url={url}", *map(str, more)]


def test_every_item_gets_its_description_and_is_else_as_it_was(call: Call, items: Path, chat_server: Any) -> None:
    chat_server.reply = lambda body: chat_server.say(f"\n {WORDS}\n")
    outcome = call(*arguments(items, chat_server.url))
    assert (outcome.status, outcome.err) == (0, "")
    built = read_items(items.with_name("html_cot.json"))
    assert {item.format_description for item in built} == {WORDS}
    assert [(item.instruction, item.input, item.output) for item in built] == [tuple(item.values()) for item in ITEMS]
    assert len(chat_server.bodies) == len(ITEMS)
    assert all(item["output"] in asked for item, asked in zip(ITEMS, sorted_asked(chat_server), strict=True))


def sorted_asked(server: Any) -> list[str]:
    """What was asked, in the order of the items."""
    order = [boat for boat, _ in BOATS]
    return sorted(server.asked(), key=lambda asked: next(order.index(boat) for boat in order if boat in asked))


def test_the_instruction_set_has_the_description_in_the_instruction(call: Call, items: Path, chat_server: Any) -> None:
    chat_server.reply = lambda body: chat_server.say(WORDS)
    call(*arguments(items, chat_server.url))
    lines = items.with_name("html_cot.instructions.jsonl").read_text("utf-8").splitlines()
    assert [json.loads(line) for line in lines] == [
        {**item, "instruction": f"Make a table.\n\nThe format of the table:\n{WORDS}"} for item in ITEMS
    ]


def test_no_temporary_file_is_left(call: Call, items: Path, chat_server: Any) -> None:
    chat_server.reply = lambda body: chat_server.say(WORDS)
    call(*arguments(items, chat_server.url))
    assert sorted(path.name for path in items.parent.iterdir()) == [
        "html_cot.answers.sqlite",
        "html_cot.instructions.jsonl",
        "html_cot.json",
        "html_test.json",
    ]


def test_a_description_with_the_code_is_asked_for_again_in_the_same_conversation(
    call: Call, items: Path, chat_server: Any
) -> None:
    chat_server.reply = lambda body: chat_server.say(WORDS if len(body["messages"]) > 1 else "A <table>.")
    assert call(*arguments(items, chat_server.url)).status == 0
    assert len(chat_server.bodies) == 2 * len(ITEMS)
    again = [body["messages"] for body in chat_server.bodies if len(body["messages"]) > 1]
    assert {conversation[1]["content"] for conversation in again} == {"A <table>."}
    assert all("It holds a tag, '<table>'" in conversation[2]["content"] for conversation in again)


@pytest.mark.parametrize(("more", "shown"), [([], True), (["--plain"], False)])
def test_an_example_is_shown_but_for_the_plain_description(
    more: list[str], call: Call, items: Path, chat_server: Any, *, shown: bool
) -> None:
    chat_server.reply = lambda body: chat_server.say(WORDS)
    assert call(*arguments(items, chat_server.url, *more)).status == 0
    assert all(("<example_of_a_table key=" in asked) is shown for asked in chat_server.asked())
    assert all(("tag by tag" in asked) is shown for asked in chat_server.asked())


@pytest.mark.parametrize("written", FORMATS)
def test_the_descriptions_shown_as_examples_pass_their_own_check(written: Format) -> None:
    table, description = EXAMPLES[written]
    assert find_description_problem(description, table, written) == ""


def test_an_item_that_gets_none_is_named_and_the_rest_is_written(call: Call, items: Path, chat_server: Any) -> None:
    chat_server.reply = lambda body: chat_server.say("" if "Skua" in body["messages"][0]["content"] else WORDS)
    outcome = call(*arguments(items, chat_server.url))
    assert outcome.status == 1
    assert f"{items}, item 1: gpt-4 gave no usable answer" in outcome.err
    assert outcome.out.startswith("3 of 4 items with descriptions in ")
    built = read_items(items.with_name("html_cot.json"))
    assert [item.input for item in built] == [item["input"] for item in ITEMS if "Skua" not in item["input"]]
    assert sum("Skua" in body["messages"][0]["content"] for body in chat_server.bodies) == ATTEMPTS


def test_a_refused_request_is_that_items_error_only(call: Call, items: Path, chat_server: Any) -> None:
    chat_server.reply = lambda body: (
        chat_server.say(status=400, body={"error": {"message": "too long"}})
        if "Gull" in body["messages"][0]["content"]
        else chat_server.say(WORDS)
    )
    outcome = call(*arguments(items, chat_server.url))
    assert outcome.status == 1
    assert "item 2: " in outcome.err
    assert "too long" in outcome.err


def test_the_spend_limit_holds_and_what_was_paid_for_is_written(call: Call, items: Path, chat_server: Any) -> None:
    chat_server.reply = lambda body: chat_server.say(WORDS)
    outcome = call(*arguments(items, chat_server.url, "--max-cost=0.03", "--price=gpt-4=0/20"))
    # 1,024 tokens are set aside for an answer, $0.0205, and 5 are paid, $0.0001: one at a time is within the limit.
    assert (outcome.status, chat_server.most) == (0, 1)
    outcome = call(*arguments(items, chat_server.url, "--max-cost=0.01", "--model-param=seed=7"))
    assert outcome.status == 1
    assert outcome.err.count("the spend limit is reached") == 1
    assert "item 0, 1, 2, 3: " in outcome.err
    assert "no item has descriptions" in outcome.out


def test_a_second_build_asks_nothing_that_was_answered(call: Call, items: Path, chat_server: Any) -> None:
    chat_server.reply = lambda body: chat_server.say(WORDS)
    call(*arguments(items, chat_server.url))
    target = items.with_name("html_cot.json")
    first = target.read_bytes()
    target.unlink()
    assert call(*arguments(items, chat_server.url)).status == 0
    assert target.read_bytes() == first
    assert len(chat_server.bodies) == len(ITEMS)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_build_that_is_killed_asks_only_for_what_is_missing_when_it_is_called_again(
    call: Call, items: Path, chat_server: Any, number: signal.Signals
) -> None:
    reached, go_on = threading.Event(), threading.Event()

    def reply(body: dict[str, Any]) -> Any:
        if len(chat_server.bodies) == 3:
            reached.set()
            go_on.wait(60)
        return chat_server.say(WORDS)

    chat_server.reply = reply
    given = arguments(items, chat_server.url, "--max-connections=1")
    command = [sys.executable, "-c", COMMAND, "build", "struc-bench", *given]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert reached.wait(60)
        process.send_signal(number)
        if number == signal.SIGKILL:
            process.wait(60)
        # The call under way is paid for: whoever can waits for it.
        go_on.set()
        _, told = process.communicate(timeout=60)
    assert process.returncode == {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGKILL: -9}[number]
    assert ("run the same command again to continue" in told) == (number == signal.SIGINT)
    assert "Traceback" not in told
    assert not items.with_name("html_cot.json").exists()
    assert call(*given).status == 0
    # A kill loses the call under way, and the answer before it if that was still being written.
    most = 2 if number == signal.SIGKILL else 0
    assert len(ITEMS) <= len(chat_server.bodies) <= len(ITEMS) + most
    assert len(read_items(items.with_name("html_cot.json"))) == len(ITEMS)


def test_a_function_of_the_users_is_found_from_where_the_command_is_called(
    call: Call, items: Path, write: Write
) -> None:
    write("describer_for_test.py", f"def describe(messages):\n    return {WORDS!r}\n")
    target = items.with_name("html_cot.json")
    model = "--model=function:describer_for_test:describe"
    assert call("format-cot", items, "--to", target, model).status == 0
    assert read_items(target)[3].format_description == WORDS


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (["--model=gpt-4"], "needs a key"),
        (["--model=function:no_such_module:f"], "No module named 'no_such_module'"),
        (["--model=local:/no/such.gguf"], "no such file"),
        (["--model=function:"], "names no model"),
        (["--model=gpt-4", "--max-connections=0"], "--max-connections 0"),
        (["--model=gpt-4", "--price=cheap"], "not a price"),
        (["--model=gpt-4", "--model-param=temperature"], "write NAME=VALUE"),
    ],
)
def test_a_model_that_cannot_be_asked_is_one_message_and_leaves_no_file(
    call: Call, items: Path, given: list[str], expected: str
) -> None:
    outcome = call("format-cot", items, "--to", items.with_name("html_cot.json"), *given)
    assert outcome.status == 2
    assert expected in outcome.err
    assert [path.name for path in items.parent.iterdir()] == ["html_test.json"]


def test_a_server_that_is_not_there_leaves_no_file(call: Call, items: Path) -> None:
    outcome = call(*arguments(items, "http://127.0.0.1:9/v1"))
    assert outcome.status == 1
    assert "item 0, 1, 2, 3: cannot connect to http://127.0.0.1:9/v1" in outcome.err
    assert [path.name for path in items.parent.iterdir()] == ["html_test.json"]


def test_names_must_tell_the_same_format(call: Call, items: Path, write: Write) -> None:
    outcome = call("format-cot", items, "--to", items.with_name("latex_cot.json"), "--model=gpt-4")
    assert outcome.status == 2
    assert "call it html_test.json or similar" in outcome.err
    outcome = call("format-cot", write("x.json", ITEMS), "--to", items.with_name("y.json"), "--model=gpt-4")
    assert outcome.status == 2
    assert "a name that shows no format" in outcome.err


LATEX = "\\begin{tabular}{lr}\nShop & Loaves \\\\\n\\end{tabular}"
RAW = "Team:\n| | Wins | Points |\n| Otters | 12 | 98 |"


@pytest.mark.parametrize(
    ("written", "table", "description", "leaks"),
    [
        ("html", ITEMS[0]["output"], WORDS, False),
        ("html", ITEMS[0]["output"], "Rows are fewer than 3 (n < 3).", False),
        ("html", ITEMS[0]["output"], "It opens with <table border=1>", True),
        ("html", ITEMS[0]["output"], "and ends with </td", True),
        ("latex", LATEX, "One tabular, left and right; a hline macro; a percent sign \\% stands in it.", False),
        ("latex", LATEX, "```\n\\begin {tabular}{lr}", True),
        ("latex", LATEX, "The row Shop & Loaves \\\\ comes first.", True),
        ("latex", LATEX, "Cells are separated by & and rows end in \\\\.", False),
        ("latex", LATEX, "Rows look like name & number \\\\ throughout.", False),
        ("latex", LATEX, "Use <td> cells", True),
        ("markdown", RAW, "A table Team, columns Wins and Points, row Otters, cells between | signs.", False),
        ("markdown", RAW, "Rows as: | Otters | 12 | 98 |", True),
        ("markdown", RAW, "The columns are\n| | Wins | Points |", True),
        ("markdown", RAW, "a row such as | name | value |", False),
        ("markdown", RAW, "  \n", True),
    ],
)
def test_code_in_a_description_is_seen(written: Format, table: str, description: str, *, leaks: bool) -> None:
    assert bool(find_description_problem(description, table, written)) is leaks
