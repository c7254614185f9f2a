"""The solver: protocols, executors and users of a run, and what its records say about them."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

from evalsuite.benchmarks.tool_eyes import TOOL_EYES
from evalsuite.benchmarks.tool_eyes.dataset import load_dataset
from evalsuite.core.errors import SettingsError, ToolError
from evalsuite.core.json_codec import encode_transcript
from evalsuite.core.protocols import Setup
from evalsuite.core.types import Completion, ToolCall

if TYPE_CHECKING:
    from pathlib import Path

    from evalsuite.core.types import Request

WEATHER = {
    "name": "weather",
    "description": "Tells the weather.",
    "parameters": {
        "type": "object",
        "properties": {"town": {"type": "string", "description": "the town"}},
        "required": ["town"],
    },
}
CONTROLS = [
    {
        "name": name,
        "description": "A published control.",
        "parameters": {"type": "object", "properties": {given: {"type": "string"}}, "required": [given]},
    }
    for name, given in (("ask_to_user", "question"), ("finish", "answer"))
]
TURNS = [
    'Thought: a\nAction: weather\nAction Input: {"town": "Lima"}',
    'Thought: b\nAction: ask_to_user\nAction Input: {"question": "Which day?"}',
    'Thought: c\nAction: finish\nAction Input: {"answer": "Sunny."}',
]


@pytest.fixture
def published(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    subject = folder / "Tool_Library" / "Weather" / "One"
    subject.mkdir(parents=True)
    (subject / "config_gpt4.json").write_text(json.dumps([WEATHER, *CONTROLS]))
    query = {"query": "What is it like in Lima?", "path": "ToolEyes/Tool_Library/Weather/One", "scenario": "RS"}
    (folder / "scenario_data_raw.json").write_text(json.dumps([query]))
    return folder


def setup(data: Path | None = None, **more: Any) -> Setup:
    modes = more.pop("modes", ("paper",))
    names = {name: more.pop(name) for name in ("judge", "judge_base_url", "reports") if name in more}
    return Setup("tested", data=data, modes=modes, args=more, **names)


def world(request: Request) -> str:
    """The model under test by its script; any player by one line."""
    if request.messages[0].content.startswith("You help a user"):
        return TURNS[sum(message.role == "assistant" for message in request.messages)]
    return "On Monday." if "Which day?" in request.messages[-1].content else '{"sky": "clear"}'


def run(given: Setup, backend: Any, epoch: int = 1) -> tuple[Any, Any]:
    (sample,) = load_dataset(given).samples[:1]
    asked = backend(world)

    async def solve() -> Any:
        solver: Any = TOOL_EYES.solver(given)
        try:
            return await solver(sample, asked.handle(epoch=epoch))
        finally:
            await solver.aclose()

    return asyncio.run(solve()), asked


def ran(transcript: Any) -> list[tuple[str, str, str]]:
    return [
        (event["tool"], event["executor"], event["observation"])
        for event in transcript.events
        if event["kind"] == "call"
    ]


def test_published_tools_and_users_are_simulated_by_the_judge(published: Path, backend: Any) -> None:
    transcript, asked = run(setup(published, judge="judge", judge_base_url="http://judge/v1"), backend)
    assert ran(transcript) == [
        ("weather", "simulated", '{"sky": "clear"}'),
        ("ask_to_user", "simulated user", "On Monday."),
        ("finish", "episode", "Sunny."),
    ]
    assert transcript.facts["simulator"] == "judge"
    assert transcript.facts["executors"] == {"episode": 1, "simulated": 1, "simulated user": 1}
    players = [(r.model, r.base_url) for r in asked.requests if r.model != "tested"]
    assert players == [("judge", "http://judge/v1")] * 2


def test_without_a_judge_the_model_plays_its_own_tools_and_the_record_says_so(published: Path, backend: Any) -> None:
    transcript, asked = run(setup(published), backend)
    assert transcript.facts["simulator"] == "tested"
    assert {request.model for request in asked.requests} == {"tested"}


def test_the_published_controls_are_offered_in_their_own_words(published: Path, backend: Any) -> None:
    _, asked = run(setup(published), backend)
    system = asked.requests[0].messages[0].content
    assert system.count("A published control.") == 2
    assert system.count("finish(answer)") == 1


def test_a_second_run_observes_the_same_without_asking(published: Path, backend: Any, tmp_path: Path) -> None:
    given = setup(published, judge="judge", reports=tmp_path / "reports")
    first, asked = run(given, backend)
    second, later = run(given, backend, epoch=2)
    assert ran(first) == ran(second)
    assert sum(request.model == "judge" for request in asked.requests) == 2
    assert sum(request.model == "judge" for request in later.requests) == 0


def recorded_run(folder: Path, transcript: Any) -> Path:
    folder.mkdir()
    record = {"input": "What is it like in Lima?", "transcript": encode_transcript(transcript)}
    (folder / "records.jsonl").write_text(json.dumps(record) + "\n")
    return folder


def test_a_recording_gives_the_same_episode_without_any_player(published: Path, backend: Any, tmp_path: Path) -> None:
    first, _ = run(setup(published, judge="judge"), backend)
    recording = recorded_run(tmp_path / "run", first)
    again, asked = run(setup(published, executor="recorded", recording=str(recording)), backend)
    assert [came for _, _, came in ran(again)] == [came for _, _, came in ran(first)]
    assert again.facts["executors"] == {"episode": 1, "recorded": 1, "recorded user": 1}
    assert "simulator" not in again.facts
    assert len(asked.requests) == 3


def test_a_call_outside_the_recording_is_the_case_s_error(published: Path, backend: Any, tmp_path: Path) -> None:
    (tmp_path / "records.jsonl").write_text("")
    with pytest.raises(ToolError, match="does not hold"):
        run(setup(published, executor="recorded", recording=str(tmp_path)), backend)


def test_a_live_tool_receives_values_as_the_model_wrote_them(
    published: Path, play: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    (published / "Tool_Library" / "Weather" / "One" / "tool.py").write_text("")
    received: list[Any] = []

    def echo(_: Any, call: bytes) -> dict[str, Any]:
        received.append(json.loads(call)["arguments"]["town"])
        return {"result": "clear"}

    monkeypatch.setattr("evalsuite.tools.live.LiveExecutor._run_in_bubblewrap", echo)
    written = [[10, 10, 2022], 3, "3", {"days": None}]
    turns = [f"Thought: a\nAction: weather\nAction Input: {json.dumps({'town': value})}" for value in written]
    given = setup(published, executor="live", library=str(published / "Tool_Library"), allow_network=True)
    play(load_dataset(given).samples[0], [*turns, TURNS[-1]], given)
    assert received == written


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"executor": "python"}, "executor='python'"),
        ({"executor": "recorded"}, "needs recording=<folder>"),
        ({"executor": "live"}, "needs library=<folder>"),
        ({"executor": "live", "library": "."}, "allow_network=True"),
        ({"executor": "magic"}, "has no executor 'magic'"),
    ],
)
def test_executors_that_cannot_be_are_refused(published: Path, options: dict[str, Any], words: str) -> None:
    with pytest.raises(SettingsError, match=words):
        TOOL_EYES.solver(setup(published, **options))


def test_the_shipped_tools_are_python_and_nothing_else() -> None:
    with pytest.raises(SettingsError, match="shipped tools are Python"):
        TOOL_EYES.solver(setup(executor="simulated"))


def test_each_mode_speaks_its_own_protocol(backend: Any) -> None:
    asked = backend(
        lambda request: (
            Completion("so", tool_calls=(ToolCall("1", "finish", '{"answer": "x"}'),))
            if request.tools
            else 'Thought: so\nAction: finish\nAction Input: {"answer": "x"}'
        )
    )
    given = setup(modes=("paper", "paper_5shot", "functions"))

    async def solve() -> list[Any]:
        solver: Any = TOOL_EYES.solver(given)
        return [await solver(sample, asked.handle()) for sample in load_dataset(given).samples[:3]]

    assert [transcript.answer for transcript in asyncio.run(solve())] == ["x"] * 3
    react, five_shot, native = asked.requests
    assert not react.tools
    assert (len(react.messages), len(five_shot.messages)) == (2, 2 + 24)
    assert five_shot.messages[-1] == react.messages[-1]
    assert [tool["function"]["name"] for tool in native.tools][-2:] == ["finish", "ask_to_user"]
    assert all(request.params["temperature"] == 0.3 for request in asked.requests)


def test_an_episode_is_given_up_after_as_many_malformed_turns_as_patience_allows(play: Any) -> None:
    sample = load_dataset(setup()).samples[0]
    short = setup(patience=2)
    for given, turns, ended in ((short, 2, "patience"), (setup(), 9, "turn limit")):
        transcript = play(sample, ["hm"] * 9, given)
        assert (transcript.facts["turns"], transcript.facts["ended"]) == (turns, ended)
