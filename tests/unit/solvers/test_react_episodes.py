"""Episodes by scripted models, in both protocols: what is run, what the model reads, how it ends."""

from __future__ import annotations

import asyncio
import json
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

import pytest

from evalsuite.core.errors import CallFailed, SettingsError, ToolError
from evalsuite.core.types import Completion, Message, Sample, ToolCall, Usage
from evalsuite.solvers.conversations import conversation
from evalsuite.solvers.tool_protocols import FORM, REMINDER, react, tool_loop
from evalsuite.tools import World, tool, worlds
from evalsuite.tools.execution import Tool
from evalsuite.tools.simulated import Persona, Scripted, ScriptedUser

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from evalsuite.core.types import Transcript

SAMPLE = Sample(id="s", input="How much is it?", metadata={"user": ["In euros."]})


@tool
def add(a: int, b: int = 1) -> int:
    """Adds.

    Args:
        a: first number.
        b: second number.
    """
    return a + b


@tool
def repeat(text: str, times: int) -> str:
    """Repeats a text."""
    return text * times


@tool
def fail() -> None:
    """Fails."""
    raise LookupError("nothing there")


@dataclass
class Says:
    """A model that says what it is told to, and keeps what it was asked."""

    said: list[str | Completion | Exception]
    asked: list[list[Message]] = field(default_factory=list)
    offered: list[Sequence[Mapping[str, Any]]] = field(default_factory=list)
    params: dict[str, Any] = field(default_factory=dict)
    name: str = "scripted"
    overrides: dict[str, Any] = field(default_factory=dict)

    async def chat(self, prompt: Any, *, tools: Any = (), **params: Any) -> Completion:
        self.asked.append(list(prompt))
        self.offered.append(tools)
        self.params = params
        await asyncio.sleep(0)
        said = self.said.pop(0)
        if isinstance(said, Exception):
            raise said
        return said if isinstance(said, Completion) else Completion(said)

    def peer(self, name: str, base_url: str | None = None, *, epoch: int | None = None) -> Says:
        raise NotImplementedError


def act(name: str, arguments: str = "{}", thought: str = "so") -> str:
    return f"Thought: {thought}\nAction: {name}\nAction Input: {arguments}"


def native(*calls: tuple[str, str], text: str = "so", ids: Sequence[str] = ()) -> Completion:
    named = [*ids, *(f"id{number}" for number in range(len(ids), len(calls)))]
    written = [ToolCall(id_, *call) for id_, call in zip(named, calls, strict=True)]
    return Completion(text, tool_calls=tuple(written))


def play(solver: Any, *said: str | Completion | Exception) -> tuple[Transcript, Says]:
    model = Says(list(said))
    return asyncio.run(solver(SAMPLE, model)), model


def tool_calls(transcript: Transcript) -> list[tuple[Any, ...]]:
    return [
        (event["tool"], event["executor"], event["observation"], event["failed"])
        for event in transcript.events
        if event["kind"] == "call"
    ]


def test_a_model_calls_reads_and_finishes() -> None:
    transcript, model = play(react([add]), act("add", '{"a": 2, "b": 3}'), act("finish", '{"answer": "It is 5."}'))
    assert transcript.answer == "It is 5."
    assert tool_calls(transcript) == [("add", "python", "5", False), ("finish", "episode", "It is 5.", False)]
    assert transcript.facts == {
        "turns": 2,
        "valid_turns": 2,
        "calls": 2,
        "ended": "finish",
        "faults": {},
        "executors": {"episode": 1, "python": 1},
    }
    system, *rest = model.asked[1]
    assert "add(a, b): Adds." in system.content
    assert "finish(answer)" in system.content
    assert "ask_to_user" not in system.content
    assert [message.content for message in rest] == [
        "How much is it?",
        act("add", '{"a": 2, "b": 3}'),
        "Observation: 5",
    ]
    assert model.offered == [(), ()]


def test_the_paper_s_parameters_hold_unless_others_are_given() -> None:
    done = act("finish", '{"answer": ""}')
    assert play(react([add]), done)[1].params == {"temperature": 0.3, "top_p": 0.5}
    assert play(react([add], top_p=1.0, max_tokens=9), done)[1].params == {
        "temperature": 0.3,
        "top_p": 1.0,
        "max_tokens": 9,
    }


def test_a_malformed_turn_runs_nothing_gets_the_reminder_and_counts() -> None:
    redundant = act("add", '{"a": 2}') + "\nObservation: 3"
    transcript, model = play(react([add]), redundant, "hm", act("finish", '{"answer": "3"}'))
    assert tool_calls(transcript) == [("finish", "episode", "3", False)]
    assert transcript.facts["faults"] == {"keywords": 1, "redundant": 1}
    assert (transcript.facts["turns"], transcript.facts["valid_turns"]) == (3, 1)
    for asked in model.asked[1:]:
        assert asked[-1].role == "user"
        assert FORM in asked[-1].content


def test_an_episode_ends_after_nine_turns_without_an_answer() -> None:
    transcript, model = play(react([add]), *[act("add", '{"a": 1}')] * 12)
    assert (transcript.facts["turns"], transcript.facts["ended"], transcript.answer) == (9, "turn limit", "")
    assert len(model.said) == 3


def test_a_last_turn_may_finish() -> None:
    transcript, _ = play(react([add], max_turns=2), act("add", '{"a": 1}'), act("finish", '{"answer": "2"}'))
    assert transcript.facts["ended"] == "finish"


def test_patience_ends_with_malformed_turns_in_a_row_alone() -> None:
    good = act("add", '{"a": 1}')
    transcript, _ = play(react([add], patience=2), "hm", good, "hm", "hm", good)
    assert (transcript.facts["turns"], transcript.facts["ended"]) == (4, "patience")
    unlimited, _ = play(react([add], max_turns=4), *["hm"] * 4)
    assert (unlimited.facts["turns"], unlimited.facts["ended"]) == (4, "turn limit")


@pytest.mark.parametrize(
    ("written", "words", "faults"),
    [
        (act("subtract"), "no tool is named 'subtract'; there are add, repeat, fail, finish", ["unknown_tool"]),
        (act("ad\\_d", '{"a": 1}'), "without backslashes", ["unknown_tool", "escaped_name"]),
        (act("add"), "needs the parameter 'a'", ["missing_parameter"]),
        (act("add", '{"a": 1, "c": 2}'), "has no parameter 'c'", ["unknown_parameter"]),
        (act("add", '{"a": "x"}'), "is not of type 'integer'", ["wrong_type"]),
        (act("finish"), "needs the parameter 'answer'", ["missing_parameter"]),
        (act("ask_to_user", '{"question": "?"}'), "no tool is named 'ask_to_user'", ["unknown_tool"]),
    ],
)
def test_a_wrong_call_is_not_run_and_its_fault_is_the_observation(written: str, words: str, faults: list[str]) -> None:
    transcript, model = play(react([add, repeat, fail]), written, act("finish", '{"answer": "?"}'))
    event = next(event for event in transcript.events if event["kind"] == "call")
    assert (event["faults"], event["executor"], event["failed"]) == (faults, "", True)
    assert model.asked[1][-1].content.startswith("Observation: Error: ")
    assert words in model.asked[1][-1].content
    assert transcript.facts["faults"] == dict.fromkeys(faults, 1)


def test_a_failing_tool_returns_its_error_as_observation() -> None:
    transcript, model = play(react([fail]), act("fail"), act("finish", '{"answer": "?"}'))
    assert model.asked[1][-1].content == "Observation: Error: LookupError: nothing there"
    assert transcript.facts["faults"] == {"tool_failed": 1}
    assert transcript.facts["valid_turns"] == 2


def test_long_observations_are_cut_to_the_stated_length() -> None:
    long = act("repeat", '{"text": "x", "times": 10000000}')
    transcript, model = play(react([repeat], observation_limit=80), long, act("finish", '{"answer": "?"}'))
    seen = model.asked[1][-1].content.removeprefix("Observation: ")
    assert len(seen) == 80
    assert seen.endswith("[cut: 10,000,000 characters in all]")
    assert tool_calls(transcript)[0][2] == seen


def test_questions_go_to_the_user_where_there_is_one() -> None:
    ask = act("ask_to_user", '{"question": "In which currency?"}')
    transcript, model = play(react([add], user=ScriptedUser()), ask, ask, act("finish", '{"answer": "5"}'))
    assert "ask_to_user(question)" in model.asked[0][0].content
    assert [came for _, _, came, _ in tool_calls(transcript)[:2]] == [
        "In euros.",
        "I have nothing to add; please go on with what I told you.",
    ]
    assert transcript.facts["executors"] == {"episode": 1, "scripted user": 2}


def test_an_answer_that_is_no_text_is_written_as_json() -> None:
    assert play(react([add]), act("finish", '{"answer": [1, 2]}'))[0].answer == "[1, 2]"


def test_an_empty_observation_is_said_to_be_empty_and_an_empty_answer_stays_empty() -> None:
    nothing = act("repeat", '{"text": "", "times": 3}')
    transcript, model = play(react([repeat]), nothing, act("finish", '{"answer": ""}'))
    assert model.asked[1][-1].content == "Observation: (the tool returned nothing)"
    assert (transcript.answer, transcript.facts["ended"]) == ("", "finish")


def test_examples_are_turns_before_the_request() -> None:
    example = (Message("user", "one"), Message("assistant", act("look")), Message("user", "Observation: it"))
    transcript, model = play(react([add], examples=[example, example]), act("finish", '{"answer": ""}'))
    assert tuple(model.asked[0][1:]) == (*example, *example, Message("user", "How much is it?"))
    assert transcript.facts["turns"] == 1


@pytest.mark.parametrize(
    ("solver", "said"),
    [(react([add]), act("finish", '{"answer": "3"}')), (tool_loop([add]), native(("finish", '{"answer": "3"}')))],
)
def test_a_conversation_can_be_gone_on_with(solver: Any, said: str | Completion) -> None:
    talk = (Message("user", "Hello"), Message("assistant", "Hi"), Message("user", "Add 1 and 2"))
    model = Says([said])
    assert asyncio.run(solver(Sample(id="t", input=talk), model)).answer == "3"
    assert tuple(model.asked[0][1:4]) == talk


def test_a_failed_model_call_is_the_case_s_error() -> None:
    with pytest.raises(CallFailed):
        play(react([add]), act("add", '{"a": 1}'), CallFailed("the server is gone"))


@pytest.mark.parametrize(
    "options",
    [
        *({"max_turns": 0}, {"patience": 0}, {"observation_limit": 0}, {"max_turns": "3"}, {"max_turns": None}),
        *({"tokens": 1.5}, {"seconds": float("nan")}, {"dollars": "1"}, {"user": "me"}, {"user": ScriptedUser}),
    ],
)
def test_limits_and_users_that_are_none_are_refused(options: dict[str, Any]) -> None:
    for solver in (react, tool_loop):
        with pytest.raises(SettingsError, match=f"was given {next(iter(options))}="):
            solver([add], **options)


def test_a_user_without_a_kind_is_refused() -> None:
    class User:
        async def reply(self) -> str:
            return ""

    with pytest.raises(SettingsError, match=r"or an object with its `kind` and `reply`"):
        tool_loop([], user=User())  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "options",
    [
        *({"user": "hi"}, {"user": Persona}, {"user": Scripted(["hi"]), "max_turns": 2.5}),
        *({"user": Scripted(["hi"]), "until": "bye"}, {"agent": add, "user": Scripted(["hi"])}),
    ],
)
def test_a_conversation_refuses_what_is_not_its_kind_of_argument(options: dict[str, Any]) -> None:
    with pytest.raises(SettingsError, match="was given"):
        conversation(**options)


def test_a_single_text_is_not_a_script() -> None:
    with pytest.raises(SettingsError, match="give a list of messages"):
        Scripted("hi")


class Purse:
    def __init__(self, sample: Sample) -> None:
        self.coins: list[str] = []
        self.sample = sample

    @tool
    def put(self, coin: str) -> list[str]:
        """Puts a coin in."""
        self.coins.append(coin)
        return self.coins


def test_episodes_at_the_same_time_cannot_see_each_other() -> None:
    solver = react([Purse])
    coins = [f"coin {number}" for number in range(6)]
    models = [
        Says([act("put", json.dumps({"coin": coin}))] * 2 + [act("finish", '{"answer": ""}')])  # type: ignore[arg-type] # lists are invariant
        for coin in coins
    ]

    async def all_at_once() -> list[Transcript]:
        return list(await asyncio.gather(*(solver(SAMPLE, model) for model in models)))

    for coin, transcript in zip(coins, asyncio.run(all_at_once()), strict=True):
        assert [json.loads(came) for _, _, came, _ in tool_calls(transcript)[:2]] == [[coin], [coin, coin]]


def test_native_calls_are_run_and_answered_by_their_ids() -> None:
    transcript, model = play(
        tool_loop([add], user=ScriptedUser()),
        native(("add", '{"a": 2}'), ("add", '{"a": 3}'), ids=("x", "y")),
        native(("finish", '{"answer": "3 and 4"}')),
    )
    assert transcript.answer == "3 and 4"
    assert [entry["function"]["name"] for entry in model.offered[0]] == ["add", "finish", "ask_to_user"]
    assert model.asked[1][-3:] == [
        Message("assistant", "so", (ToolCall("x", "add", '{"a": 2}'), ToolCall("y", "add", '{"a": 3}'))),
        Message("tool", "3", tool_call_id="x"),
        Message("tool", "4", tool_call_id="y"),
    ]
    assert (transcript.facts["turns"], transcript.facts["calls"]) == (2, 3)


def test_calls_after_finish_are_not_run() -> None:
    transcript, _ = play(tool_loop([add]), native(("finish", '{"answer": "done"}'), ("add", '{"a": 2}')))
    assert tool_calls(transcript)[1:] == [("add", "", "Error: the episode has ended", True)]
    assert transcript.facts["faults"] == {"after_finish": 1}
    assert transcript.facts["calls"] == 2


def test_calls_of_one_turn_run_side_by_side() -> None:
    both = threading.Barrier(2, timeout=20)

    @tool
    def meet(name: str) -> str:
        """Waits for the other call."""
        both.wait()
        return name

    script = (native(("meet", '{"name": "a"}'), ("meet", '{"name": "b"}')), native(("finish", '{"answer": "x"}')))
    transcript, _ = play(tool_loop([meet]), *script)
    assert [observation for _, _, observation, _ in tool_calls(transcript)] == ["a", "b", "x"]


def test_a_tool_that_hangs_is_a_failure_that_the_model_reads() -> None:
    @tool
    def hang() -> None:
        """Waits for ever."""
        threading.Event().wait()

    transcript, _ = play(react([hang], tool_seconds=0.05), act("hang"), act("finish", '{"answer": "x"}'))
    assert tool_calls(transcript)[0] == ("hang", "python", "Error: no answer within 0.05 s", True)


def test_an_episode_ends_when_its_tools_have_used_up_their_time() -> None:
    @tool
    async def hang() -> None:
        """Waits for ever."""
        await asyncio.Event().wait()

    transcript, _ = play(react([hang], seconds=0.05), act("hang"), act("hang"))
    assert (transcript.facts["ended"], transcript.facts["turns"]) == ("time limit", 1)


class Bed:
    """A world whose calls take their time."""

    def __init__(self, _: Sample) -> None: ...

    @tool(seconds=0.5)
    async def nap(self) -> str:
        """Sleeps."""
        await asyncio.sleep(0.05)
        return "slept"


def test_a_call_does_not_use_up_its_time_while_it_waits_for_the_world_s_other_calls() -> None:
    done = native(("finish", '{"answer": "x"}'))
    transcript, _ = play(tool_loop([Bed], tool_seconds=0.5, seconds=5), native(*[("nap", "{}")] * 20), done)
    assert [came for _, _, came, _ in tool_calls(transcript)] == [*["slept"] * 20, "x"]


def test_no_call_s_time_limit_covers_the_making_of_its_world() -> None:
    seen: list[str] = []

    class Hostel(Bed):
        async def __aenter__(self) -> Self:
            seen.append("opens")
            await asyncio.sleep(0.6)
            return self

        async def __aexit__(self, *_: object) -> None:
            seen.append("closes")

    naps = [act("nap")] * 3
    transcript, _ = play(react([Hostel], tool_seconds=0.5, seconds=0.5), *naps, act("finish", '{"answer": "x"}'))
    assert [came for _, _, came, _ in tool_calls(transcript)] == [*["slept"] * 3, "x"]
    assert seen == ["opens", "closes"]


def test_a_world_that_is_not_made_in_time_is_the_cases_error(monkeypatch: pytest.MonkeyPatch) -> None:
    class Hostel(Bed):
        async def __aenter__(self) -> Self:
            await asyncio.sleep(60)
            return self

        async def __aexit__(self, *_: object) -> None:
            pass

    monkeypatch.setattr(worlds, "LONGEST_MAKING", 0.05)
    with pytest.raises(ToolError, match=r"not made within 0\.05 s"):
        play(react([Hostel]), act("nap"))


def test_a_call_that_is_made_slow_exceeds_the_tool_s_time_limit() -> None:
    transcript, _ = play(react([World(Bed).slow("nap", seconds=60)]), act("nap"), act("finish", '{"answer": "x"}'))
    assert tool_calls(transcript)[0] == ("nap", "python", "Error: no answer within 0.5 s", True)


class Played:
    """Runs a tool as a model that plays it would: time limits do not apply."""

    kind = "simulated"

    async def run_tool(self, *_: Any) -> str:
        await asyncio.sleep(0.1)
        return "played"


def test_a_fault_in_another_call_does_not_subject_a_played_tool_to_time_limits() -> None:
    world = World(lambda _: [Tool(add.document, Played())]).fails("add", at=2)
    turns = act("add", '{"a": 1}'), act("finish", '{"answer": "x"}')
    transcript, _ = play(react([world], tool_seconds=0.05), *turns)
    assert tool_calls(transcript)[0] == ("add", "simulated", "played", False)


@pytest.mark.parametrize(("limit", "ended"), [({"tokens": 30}, "token limit"), ({"dollars": 0.05}, "cost limit")])
def test_an_episode_ends_when_the_model_has_used_up_its_tokens_or_dollars(limit: dict[str, Any], ended: str) -> None:
    turn = Completion(act("add", '{"a": 1}'), usage=Usage(1, 10, 5, 0.03))
    transcript, _ = play(react([add], **limit), turn, turn)
    assert (transcript.facts["ended"], transcript.facts["turns"]) == (ended, 2)


def test_an_answer_in_plain_text_ends_an_episode_where_that_is_wanted() -> None:
    solver = tool_loop([add], system="You sell bread.", ending="text")
    transcript, model = play(solver, native(("add", '{"a": 2}')), Completion("It is 3."))
    assert (transcript.answer, transcript.facts["ended"]) == ("It is 3.", "answer")
    assert model.asked[0][0] == Message("system", "You sell bread.")
    assert [entry["function"]["name"] for entry in model.offered[0]] == ["add"]
    assert transcript.facts["faults"] == {}


@pytest.mark.parametrize("make", [tool_loop, react])
def test_tools_that_cannot_be_told_apart_are_refused_when_they_are_declared(make: Any) -> None:
    @tool
    def finish(answer: str) -> str:
        """Ends."""
        return answer

    with pytest.raises(SettingsError, match="'finish'"):
        make([finish])
    with pytest.raises(SettingsError, match="two tools are named 'add'"):
        make([add, add])


@pytest.mark.parametrize(
    ("said", "fault"),
    [
        (Completion("It is 5."), "no_call"),
        (native(("", "{}")), "empty_action"),
        (native(("add", '{"a": 1')), "unparseable"),
        (native(("add", '{"a": 1} {"a": 2}')), "unparseable"),
        (native(("add", "")), "unparseable"),
        (native(("add", '{"a": 1}'), ("add", "[1]")), "unparseable"),
    ],
)
def test_a_malformed_native_turn_runs_nothing_and_is_answered(said: Completion, fault: str) -> None:
    transcript, model = play(tool_loop([add]), said, native(("finish", '{"answer": "?"}')))
    assert transcript.facts["faults"] == {fault: 1}
    assert [name for name, *_ in tool_calls(transcript)] == ["finish"]
    answers = model.asked[1][-max(1, len(said.tool_calls)) :]
    assert all(REMINDER in message.content for message in answers)
    # The protocol wants every call answered, and nothing else.
    assert [message.tool_call_id for message in answers if message.role == "tool"] == [
        call.id for call in said.tool_calls
    ]
    (event,) = [event for event in transcript.events if event.get("fault")]
    assert event["native_calls"] == [[call.name, call.arguments] for call in said.tool_calls]


def test_what_is_sent_again_is_what_servers_accept() -> None:
    bad = native(("no such tool!", "{'a': 1"), ("", '{"a": NaN}'), ("x" * 99, "{'b': 2}"))
    _, model = play(tool_loop([add]), bad, native(("finish", '{"answer": "?"}')))
    sent = next(message for message in model.asked[1] if message.role == "assistant")
    assert [call.name for call in sent.tool_calls] == ["no_such_tool_", "unnamed", "x" * 64]
    assert [json.loads(call.arguments) for call in sent.tool_calls] == [{}, {}, {"b": 2}]


def test_calls_without_ids_of_their_own_get_some() -> None:
    for ids in (("", ""), ("same", "same")):
        _, model = play(
            tool_loop([add]),
            native(("add", '{"a": 2}'), ("add", '{"a": 3}'), ids=ids),
            native(("finish", '{"answer": "?"}')),
        )
        answered = [message.tool_call_id for message in model.asked[1] if message.role == "tool"]
        assert answered == ["call_0", "call_1"]


def test_a_native_thought_is_the_text_or_else_the_reasoning() -> None:
    finish = (ToolCall("1", "finish", '{"answer": "?"}'),)
    for said, thought in (
        (Completion(" text ", "reasons", finish), "text"),
        (Completion("", " reasons ", finish), "reasons"),
    ):
        transcript, _ = play(tool_loop([add]), said)
        assert transcript.events[0]["thought"] == thought
