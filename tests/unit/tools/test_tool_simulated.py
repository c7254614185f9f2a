"""Simulated tools and users: one question to the model for each distinct call, in this run and in later ones."""

from __future__ import annotations

import asyncio
import json
import multiprocessing
from typing import TYPE_CHECKING, Any

import pytest

from evalsuite.core.errors import CallFailed, ToolError
from evalsuite.core.types import Completion, Sample
from evalsuite.tools.execution import ToolDocument
from evalsuite.tools.simulated import FILE, NOTHING_TO_ADD, ObservationStore, ScriptedUser, SimulatingModel

if TYPE_CHECKING:
    from pathlib import Path

    from evalsuite.core.types import Request

WEATHER = ToolDocument("weather", "Tells the weather.", {"type": "object", "properties": {}, "required": []})
SAMPLE = Sample(id="s", input="Book me a table.")


def simulator(folder: Path | None = None) -> SimulatingModel:
    return SimulatingModel("player", "http://127.0.0.1:9/v1", ObservationStore(folder))


def test_the_same_call_gives_the_same_observation_with_one_question(backend: Any) -> None:
    answers = iter(["sunny", "rain"])
    asked = backend(lambda _: next(answers))
    tool = simulator()

    async def play() -> list[str]:
        calls: list[tuple[int, dict[str, Any]]] = [
            (1, {"town": "Lima", "day": 1}),
            (2, {"day": 1, "town": "Lima"}),
            (1, {"town": "Oslo"}),
        ]
        return [await tool.run_tool(WEATHER, given, asked.handle(epoch=epoch)) for epoch, given in calls]

    # Neither the order of the arguments nor the case's epoch makes another call.
    assert asyncio.run(play()) == ["sunny", "sunny", "rain"]
    assert len(asked.requests) == 2


def test_the_player_is_shown_document_and_call_and_asked_alike_in_every_epoch(backend: Any) -> None:
    asked = backend(lambda _: "sunny")
    asyncio.run(simulator().run_tool(WEATHER, {"town": "Lima"}, asked.handle(epoch=5)))
    (request,) = asked.requests
    assert (request.model, request.base_url, request.epoch) == ("player", "http://127.0.0.1:9/v1", 1)
    assert request.params["temperature"] == 0
    assert json.dumps(WEATHER.plain()) in request.messages[-1].content
    assert '{"town": "Lima"}' in request.messages[-1].content


def test_a_later_run_gets_the_observation_without_asking(backend: Any, tmp_path: Path) -> None:
    first, later = backend(lambda _: "sunny"), backend(lambda _: "rain")
    for asked in (first, later):
        player = simulator(tmp_path / "reports")
        assert asyncio.run(player.run_tool(WEATHER, {}, asked.handle())) == "sunny"
        player.library.close()
    assert (len(first.requests), len(later.requests)) == (1, 0)


def test_another_document_or_player_is_another_question(backend: Any) -> None:
    asked = backend(lambda request: request.model)
    library = ObservationStore()
    other = ToolDocument("weather", "Tells the weather of stars.", WEATHER.parameters)

    async def play() -> list[str]:
        return [
            await SimulatingModel(player, None, library).run_tool(document, {}, asked.handle())
            for player in ("one", "two")
            for document in (WEATHER, other)
        ]

    assert asyncio.run(play()) == ["one", "one", "two", "two"]
    assert len(asked.requests) == 4


def test_a_player_that_cannot_be_asked_is_an_error_and_nothing_is_kept(backend: Any) -> None:
    def fail(_: Request) -> str:
        raise CallFailed("no answer")

    player = simulator()
    with pytest.raises(CallFailed):
        asyncio.run(player.run_tool(WEATHER, {}, backend(fail).handle()))
    assert asyncio.run(player.run_tool(WEATHER, {}, backend(lambda _: "sunny").handle())) == "sunny"


def test_the_first_observation_stays(tmp_path: Path) -> None:
    one, other = ObservationStore(tmp_path), ObservationStore(tmp_path)
    assert one.store_answer({"q": 1}, "first") == "first"
    assert other.store_answer({"q": 1}, "second") == "first"
    assert other.find_answer({"q": 2}) is None
    assert one.store_answer({"q": 3}, "") == ""
    assert one.find_answer({"q": 3}) == ""
    one.close()
    other.close()


def keep_many(folder: Path, name: str) -> None:
    library = ObservationStore(folder)
    for number in range(20):
        library.store_answer({"q": number}, name)
    library.close()


def test_processes_share_one_library(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=keep_many, args=(tmp_path, name)) for name in ("a", "b")]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert [writer.exitcode for writer in writers] == [0, 0]
    library = ObservationStore(tmp_path)
    assert all(library.find_answer({"q": number}) in ("a", "b") for number in range(20))
    library.close()


def test_a_damaged_library_is_named(tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(b"this is no database at all" * 100)
    with pytest.raises(ToolError, match=rf"{FILE}.*delete it"):
        ObservationStore(tmp_path).find_answer({"q": 1})


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ToolError, match="cannot be used"):
        ObservationStore(tmp_path / "file" / "reports").find_answer({"q": 1})


def test_a_scripted_user_says_its_replies_in_order_and_then_nothing_more(backend: Any) -> None:
    sample = Sample(id="s", input="x", metadata={"user": ["At six.", "For two."]})
    asked = backend(lambda _: "never")

    async def talk() -> list[str]:
        before: list[tuple[str, str]] = []
        for question in ("When?", "For how many?", "Where?"):
            said = await ScriptedUser().reply(sample, question, before, asked.handle())
            before.append((question, said))
        return [said for _, said in before]

    assert asyncio.run(talk()) == ["At six.", "For two.", NOTHING_TO_ADD]
    assert asked.requests == []


def test_a_simulated_user_knows_the_request_and_what_was_said(backend: Any) -> None:
    asked = backend(lambda _: " At seven. ")
    user = simulator()
    said = asyncio.run(user.reply(SAMPLE, "When?", [("For how many?", "For two.")], asked.handle(epoch=3)))
    assert said == "At seven."
    (request,) = asked.requests
    for part in ("Book me a table.", "For how many?", "For two.", "When?"):
        assert part in request.messages[-1].content
    assert request.epoch == 1


@pytest.mark.parametrize(
    ("completion", "words"), [(Completion(""), "is empty"), (Completion("It is", finish_reason="length"), "is cut off")]
)
def test_an_empty_or_cut_answer_is_an_error_and_not_kept(backend: Any, completion: Completion, words: str) -> None:
    player = simulator()
    with pytest.raises(ToolError, match=words):
        asyncio.run(player.reply(SAMPLE, "When?", [], backend(lambda _: completion).handle()))
    whole = backend(lambda _: "It is noon.").handle()
    assert asyncio.run(player.reply(SAMPLE, "When?", [], whole)) == "It is noon."
