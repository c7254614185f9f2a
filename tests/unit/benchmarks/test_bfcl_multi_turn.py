"""BFCL's multi-turn categories, with classes of a package of the test's own."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import TYPE_CHECKING, Any

import pytest

from evalsuite.benchmarks.bfcl import BFCL
from evalsuite.benchmarks.bfcl_multi_turn import MORE_FUNCTIONS, MOST_STEPS
from evalsuite.core.errors import DatasetError, SettingsError
from evalsuite.core.protocols import Setup
from evalsuite.core.types import Completion, Request, ToolCall, Transcript
from evalsuite.gateway.handle import ModelHandle

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CLASSES = """
class Shelf:
    def _load_scenario(self, config, long_context=False):
        self.books, self._secret = config["books"], object()

    def add(self, titles):
        self.books += titles
        return {"books": len(self.books)}

    def lend(self, title):
        self.books.remove(title)
        return "lent"

class Counting:
    def plus(self, a, b):
        return a + b
"""


def document(name: str, **types: str) -> dict[str, Any]:
    schema = {"type": "dict", "properties": {key: {"type": kind} for key, kind in types.items()}, "required": []}
    return {"name": name, "description": name, "parameters": schema}


def ask(text: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": text}]


RECORD = {
    "id": "multi_turn_miss_func_0",
    "question": [ask("Add Ulysses."), ask("Lend Emma."), [], ask("Sum up.")],
    "initial_config": {"Shelf": {"books": ["Emma"]}},
    "involved_classes": ["Counting", "Shelf"],
    "missed_function": {"2": ["lend"]},
}
TRUTH = [["add(titles=['Ulysses'])"], [], ["lend('Emma')"], ["plus(a=1, b=2)"]]


@pytest.fixture
def setup(tmp_path: Path) -> Iterator[Setup]:
    package = tmp_path / "borrowed_classes"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "books.py").write_text(CLASSES)
    (package / "broken.py").write_text("class Other: pass\nraise ImportError('this module is never needed')\n")
    for path, *lines in (
        ("BFCL_v4_multi_turn_miss_func.json", RECORD),
        ("possible_answer/BFCL_v4_multi_turn_miss_func.json", {"id": RECORD["id"], "ground_truth": TRUTH}),
        ("multi_turn_func_doc/books.json", document("add", titles="array"), document("lend", title="string"),
         document("plus", a="float", b="float")),
    ):  # fmt: skip
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    sys.path.insert(0, str(tmp_path))
    yield Setup("m", data=tmp_path, args={"classes": "borrowed_classes"})
    sys.path.remove(str(tmp_path))
    for name in [name for name in sys.modules if name.startswith("borrowed_classes")]:
        del sys.modules[name]


class Backend:
    """Answers with the calls of each step, then with text."""

    def __init__(self, *turns: list[tuple[str, dict[str, Any]]]) -> None:
        self.turns, self.asked = turns, list[Request]()

    async def ask(self, request: Request) -> Completion:
        self.asked.append(request)
        number = sum(message.role == "user" for message in request.messages)
        if request.messages[-1].role != "user":
            return Completion("Done.")
        calls = [ToolCall(str(n), name, json.dumps(given)) for n, (name, given) in enumerate(self.turns[number - 1])]
        return Completion("" if calls else "Cannot.", tool_calls=tuple(calls))


ADD = ("add", {"titles": ["Ulysses"]})
LEND = ("lend", {"title": "Emma"})
PLUS = ("plus", {"a": 1, "b": 2})


def play(setup: Setup, backend: Any) -> tuple[Transcript, float, str]:
    async def run() -> tuple[Transcript, float, str]:
        (sample,) = BFCL.load(setup).samples
        solver: Any = BFCL.solver(setup)
        transcript = await solver(sample, ModelHandle(backend, "m"))
        one, several = BFCL.scorers(setup)
        assert one(sample, transcript) == {}  # type: ignore[operator]
        scores: Any = await several(sample, transcript)  # type: ignore[operator, misc]
        return transcript, scores["correct"].value, scores["correct"].note

    return asyncio.run(run())


@pytest.mark.parametrize(
    ("turns", "note"),
    [
        ([[ADD], [], [LEND], [PLUS]], ""),
        # A result may come before the turn that asks for it, and a turn without right calls is not compared.
        ([[ADD, PLUS], [], [LEND], [PLUS, PLUS]], ""),
        ([[ADD, PLUS], [("nothing", {})], [LEND], [("plus", {"a": 3, "b": 0})]], ""),
        ([[ADD], [], [], [PLUS]], "turn 3: nothing was called"),
        ([[ADD, ADD], [], [LEND], [PLUS]], "turn 1: the state differs in Shelf.books"),
        ([[ADD], [], [LEND], [("plus", {"a": 2, "b": 2})]], "turn 4: no call returned 3"),
        ([[ADD], [], [LEND], [("plus", {"a": "x", "b": 2})]], "turn 4: no call returned 3"),
    ],
)
def test_the_state_and_the_results_after_each_turn_count(setup: Setup, turns: list[Any], note: str) -> None:
    transcript, value, said = play(setup, Backend(*turns))
    assert (value, said) == (float(not note), note)
    assert [event["text"] for event in transcript.events if event["kind"] == "user"] == [
        *("Add Ulysses.", "Lend Emma.", MORE_FUNCTIONS, "Sum up.")
    ]
    # `add` keeps the list that it was given, and changes it in later calls.
    assert transcript.events[2]["arguments"] == {"titles": ["Ulysses"]}


def test_a_missing_function_is_offered_from_its_turn_on(setup: Setup) -> None:
    backend = Backend([ADD], [LEND], [LEND], [PLUS])
    transcript, *_ = play(setup, backend)
    assert [len(request.tools) for request in backend.asked] == [2, 2, 2, 2, 3, 3, 3, 3]
    refused = next(event for event in transcript.events if event.get("tool") == "lend")
    assert refused["faults"] == ["unknown_tool"]


def test_a_model_that_never_answers_is_stopped(setup: Setup) -> None:
    class Endless(Backend):
        async def ask(self, request: Request) -> Completion:
            self.asked.append(request)
            return Completion("", tool_calls=(ToolCall("0", "plus", '{"a": 1, "b": 2}'),))

    backend = Endless()
    _, value, note = play(setup, backend)
    assert (value, note, len(backend.asked)) == (0.0, "the model was stopped in turn 1 of 4", MOST_STEPS)


def test_a_request_without_messages_is_named_with_its_line(setup: Setup) -> None:
    file = setup.data / "BFCL_v4_multi_turn_miss_func.json"  # type: ignore[operator]
    file.write_text(json.dumps({**RECORD, "question": [[{"content": "Add Ulysses."}]]}))
    with pytest.raises(DatasetError, match=r"miss_func\.json, line 1, field 'question': .* expected messages"):
        BFCL.load(setup)


def test_the_authors_code_is_imported_only_if_it_is_named(setup: Setup) -> None:
    plain = Setup("m", data=setup.data, args={"categories": ["multi_turn_miss_func"]})
    with pytest.raises(SettingsError, match="name their package, which is then imported"):
        BFCL.load(plain)
    with pytest.raises(SettingsError, match="classes='no_such_package' cannot be imported as a package"):
        BFCL.load(Setup("m", data=setup.data, args={"classes": "no_such_package"}))
