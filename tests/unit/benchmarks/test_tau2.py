"""tau2-bench: tasks in their published form, and a conversation scored by hand."""

from __future__ import annotations

import asyncio
import dataclasses
import json
from typing import TYPE_CHECKING, Any

import pytest

from evalsuite.benchmarks.tau2 import TAU2
from evalsuite.core.errors import DatasetError, ScoringError, SettingsError
from evalsuite.core.protocols import Setup
from evalsuite.core.types import Completion, Message, Score, ToolCall, Transcript
from evalsuite.tools import Scripted, tool

if TYPE_CHECKING:
    from pathlib import Path

    from evalsuite.core.types import Sample

TASK = {
    "id": "7",
    "user_scenario": {
        "persona": "You are in a hurry.",
        "instructions": {
            "task_instructions": "Insist once.",
            "domain": "rail",
            "reason_for_call": "You want to cancel R1.",
            "known_info": "You are Ada.",
            "unknown_info": None,
        },
    },
    "initial_state": None,
    "evaluation_criteria": {
        "actions": [
            {"action_id": "7_0", "name": "look", "arguments": {"number": "R1"}},
            {"name": "cancel", "arguments": {"number": "R1", "why": "asked"}, "compare_args": ["number"]},
            {"action_id": "7_2", "name": "restart", "arguments": {}, "requestor": "user"},
        ],
        "communicate_info": ["1,250"],
        "reward_basis": ["DB", "COMMUNICATE"],
    },
}


class Rail:
    def __init__(self, sample: Sample) -> None:
        self.tickets = {"R1": "booked", "R2": "booked"}

    @tool
    def look(self, number: str) -> str:
        """Looks a ticket up."""
        return self.tickets[number]

    @tool
    def cancel(self, number: str, why: str = "") -> str:
        """Cancels a ticket."""
        self.tickets[number] = "cancelled"
        return "done"

    @tool
    def restart(self) -> str:
        """Restarts the customer's phone."""
        self.power = "on"
        return "restarted"

    def turn_off(self, since: str) -> None:
        self.power = f"off since {since}"

    def assert_power(self, power: str) -> bool:
        return self.power == power

    power = "unknown"

    def state(self) -> dict[str, str]:
        return self.tickets


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "tasks.json").write_text(json.dumps([TASK]))
    (tmp_path / "policy.md").write_text("Be kind.")
    return tmp_path


def setup(folder: Path, **more: Any) -> Setup:
    return Setup("m", data=folder, args={"world": Rail, "user_tools": ["restart"], **more})


def test_a_task_becomes_a_customer_and_what_is_expected_of_the_agent(folder: Path) -> None:
    (sample,) = TAU2.load(setup(folder)).samples
    assert (sample.id, sample.input) == ("7", "You are in a hurry.\n\nYou want to cancel R1.\n\nInsist once.")
    assert sample.metadata["knows"] == "You are Ada."
    assert [action["name"] for action in sample.metadata["actions"]] == ["look", "cancel", "restart"]
    solver: Any = TAU2.solver(setup(folder))
    agent: Any = solver.agent
    assert (agent.protocol.system, solver.max_turns) == ("Be kind.", 30)


def episode(state: dict[str, str], *tools: str, text: str = "You get $1250 back.") -> Transcript:
    events = tuple(
        {"kind": "user_call", "tool": name, "arguments": {}}
        if name == "restart"
        else {"kind": "call", "tool": name, "arguments": {"number": "R1"}}
        for name in tools
    )
    return Transcript(text, (Message("assistant", text),), events=events, facts={"state": state})


LEFT = {"R1": "cancelled", "R2": "booked"}


@pytest.mark.parametrize(
    ("transcript", "db", "communicate", "actions", "reward"),
    [
        (episode(LEFT, "look", "cancel", "restart"), 1, 1, 1, 1),
        # The world counts, and not how it came about.
        (episode(LEFT, "cancel"), 1, 1, 0, 1),
        (episode({"R1": "booked", "R2": "booked"}, "look"), 0, 1, 0, 0),
        (episode(LEFT, "look", "cancel", text="Done."), 1, 0, 0, 0),
    ],
)
def test_a_conversation_is_rewarded_as_its_task_says(
    folder: Path, transcript: Transcript, db: int, communicate: int, actions: int, reward: int
) -> None:
    (sample,) = TAU2.load(setup(folder)).samples
    (scorer,) = TAU2.scorers(setup(folder))
    scores: Any = asyncio.run(scorer(sample, transcript))  # type: ignore[arg-type, operator]
    assert scores == {"db": db, "communicate": communicate, "actions": actions, "reward": Score(reward)}


@pytest.mark.parametrize(("ended", "reward"), [("user", 1), ("exchange limit", 0), ("turn limit", 0)])
def test_a_conversation_that_the_customer_did_not_end_has_the_reward_0(folder: Path, ended: str, reward: int) -> None:
    (sample,) = TAU2.load(setup(folder)).samples
    (scorer,) = TAU2.scorers(setup(folder))
    played = episode(LEFT, "cancel")
    transcript = dataclasses.replace(played, facts={**played.facts, "ended": ended})
    scores: Any = asyncio.run(scorer(sample, transcript))  # type: ignore[arg-type, operator]
    assert (scores["db"], scores["communicate"], scores["reward"].value) == (1, 1, reward)
    assert scores["reward"].note == ("" if reward else f"the customer did not end the conversation: {ended}")


def test_a_task_that_is_rewarded_for_more_has_no_reward(folder: Path) -> None:
    task = {
        **TASK,
        "evaluation_criteria": {
            "actions": [],
            "nl_assertions": ["It is kind."],
            "reward_basis": ["DB", "NL_ASSERTION"],
        },
    }
    (folder / "tasks.json").write_text(json.dumps([task]))
    (sample,) = TAU2.load(setup(folder)).samples
    (scorer,) = TAU2.scorers(setup(folder))
    transcript = episode({"R1": "booked", "R2": "booked"})
    scores: Any = asyncio.run(scorer(sample, transcript))  # type: ignore[arg-type, operator]
    assert scores == {"db": 1, "communicate": 1, "actions": 1}


@pytest.mark.parametrize("world", ["Rail", Rail(None), type("Stateless", (Rail,), {"state": None})])  # type: ignore[arg-type]
def test_a_world_without_a_state_is_refused_before_a_call_is_paid(folder: Path, world: Any) -> None:
    with pytest.raises(SettingsError, match=r"was given world=.* a class that has @tool methods and a state\(\)"):
        TAU2.load(setup(folder, world=world))


def test_what_is_missing_is_named(folder: Path) -> None:
    with pytest.raises(SettingsError, match="world=None, but it needs the tools of its domain"):
        TAU2.load(Setup("m", data=folder))
    with pytest.raises(SettingsError, match="no shipped tasks"):
        TAU2.load(Setup("m", args={"world": Rail}))
    with pytest.raises(DatasetError, match=r"airline/tasks\.json"):
        TAU2.load(setup(folder, domain="airline"))
    (folder / "tasks.json").write_text('[{"id": "1"}]')
    with pytest.raises(DatasetError, match="task 1: found only the fields 'id', expected the field 'user_scenario'"):
        TAU2.load(setup(folder))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"criteria": {"communicate_info": "1,250"}}, """field 'communicate_info': found "1,250", expected a list"""),
        ({"criteria": {"reward_basis": "DB"}}, """field 'reward_basis': found "DB", expected a list"""),
        ({"criteria": {"actions": [{"tool": "look"}]}}, "field 'actions', element 1: found only the fields 'tool'"),
        ({"criteria": {"env_assertions": [7]}}, "field 'env_assertions', element 1: found 7, expected an object"),
        ({"initial_state": [1]}, "field 'initial_state': found"),
        ({"initial_state": {"message_history": [{"content": "Hello"}]}}, "expected the field 'role'"),
        ({"user_scenario": {"instructions": {"known_info": 7}}}, "field 'known_info': found 7, expected a string"),
    ],
)
def test_a_field_of_another_type_is_named_with_its_task(folder: Path, fields: dict[str, Any], message: str) -> None:
    with pytest.raises(DatasetError) as error:
        load_with(folder, **fields)
    assert "tasks.json, task 1" in str(error.value)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("message", "fault"),
    [
        (
            {"role": "asistant"},
            "field 'message_history', element 1, field 'role': found 'asistant', expected one of system, dev",
        ),
        ({"role": "tool", "content": "done"}, "found only the fields 'role', 'content', expected the field 'id'"),
        (
            {"role": "assistant", "tool_calls": [{"name": "look"}]},
            "field 'message_history', element 1, field 'tool_calls', element 1: found only the fields 'name'",
        ),
    ],
)
def test_a_message_of_the_history_that_cannot_be_sent_is_named_with_its_task(
    folder: Path, message: dict[str, Any], fault: str
) -> None:
    with pytest.raises(DatasetError) as error:
        load_with(folder, initial_state={"message_history": [message]})
    assert "tasks.json, task 1" in str(error.value)
    assert fault in str(error.value)


def load_with(folder: Path, **fields: Any) -> Sample:
    criteria = {"actions": [], "reward_basis": ["DB"], **fields.pop("criteria", {})}
    (folder / "tasks.json").write_text(json.dumps([{**TASK, "evaluation_criteria": criteria, **fields}]))
    (sample,) = TAU2.load(setup(folder)).samples
    return sample


class Assertable(Rail):
    def assert_ticket(self, number: str, status: str) -> bool:
        return self.tickets[number] == status

    async def assert_quiet(self) -> bool:
        return False


def assertion(name: str, *, wanted: bool = True, **arguments: str) -> dict[str, Any]:
    return {"env_type": "assistant", "func_name": name, "arguments": arguments, "assert_value": wanted}


CANCELLED = assertion("assert_ticket", number="R1", status="cancelled")


@pytest.mark.parametrize(
    ("assertions", "tools", "expected"),
    [
        ([CANCELLED, assertion("assert_quiet", wanted=False)], ["cancel", "unknown"], 1.0),
        ([CANCELLED], ["look"], 0.0),
        ([CANCELLED, assertion("assert_quiet")], ["cancel"], 0.0),
    ],
)
def test_assertions_are_made_of_the_world_after_the_conversation(
    folder: Path, assertions: list[Any], tools: list[str], expected: float
) -> None:
    sample = load_with(folder, criteria={"env_assertions": assertions, "reward_basis": ["ENV_ASSERTION"]})
    (scorer,) = TAU2.scorers(setup(folder, world=Assertable))
    scores: Any = asyncio.run(scorer(sample, episode(LEFT, *tools)))  # type: ignore[arg-type, operator]
    assert (scores["env_assertions"], scores["reward"].value) == (expected, expected)


@pytest.mark.parametrize("name", ["assert_nothing", "__init__"])
def test_an_assertion_that_the_world_lacks_is_an_error(folder: Path, name: str) -> None:
    sample = load_with(folder, criteria={"env_assertions": [assertion(name)], "reward_basis": ["ENV_ASSERTION"]})
    (scorer,) = TAU2.scorers(setup(folder))
    with pytest.raises(ScoringError, match=f"no method '{name}', which task 7 asserts by"):
        asyncio.run(scorer(sample, episode(LEFT)))  # type: ignore[arg-type, operator]


class Judge:
    name = "judge"
    overrides: dict[str, Any] = {}  # noqa: RUF012

    def __init__(self, *verdicts: str) -> None:
        self.verdicts, self.asked = verdicts, ""

    async def chat(self, prompt: Any, **params: Any) -> Completion:
        self.asked = prompt[0].content
        answers = [{"criterion": at, "reason": "so", "verdict": one} for at, one in enumerate(self.verdicts, 1)]
        return Completion(json.dumps({"answers": answers}))


@pytest.mark.parametrize(("verdicts", "true"), [(("yes", "yes"), 1.0), (("yes", "no"), 0.0)])
def test_a_judge_decides_statements_about_the_conversation(
    folder: Path, verdicts: tuple[str, ...], true: float
) -> None:
    claims = {"nl_assertions": ["It is kind.", "It refuses."], "reward_basis": ["DB", "NL_ASSERTION"]}
    sample = load_with(folder, criteria=claims)
    judged: Any = TAU2.scorers(dataclasses.replace(setup(folder), judge="judge"))[1]
    judge = Judge(*verdicts)
    transcript = episode({"R1": "booked", "R2": "booked"}, text="I refuse.")
    scores = asyncio.run(judged.judged(sample, transcript, judge))
    assert {name: score.value for name, score in scores.items()} == {"nl_assertions": true, "reward": true}
    assert "agent: I refuse." in judge.asked


def test_a_task_without_statements_needs_no_judge(folder: Path) -> None:
    sample = load_with(folder, criteria={"reward_basis": ["DB", "NL_ASSERTION"]})
    scorers: Any = TAU2.scorers(dataclasses.replace(setup(folder), judge="judge"))
    transcript = episode({"R1": "booked", "R2": "booked"})
    assert asyncio.run(scorers[1].judged(sample, transcript, Judge())) == {}
    scores: Any = asyncio.run(scorers[0](sample, transcript))
    assert scores["reward"].value == 1.0


HISTORY: list[dict[str, Any]] = [
    {"role": "assistant", "content": "Hello."},
    {"role": "user", "content": "Look R1 up."},
    {"role": "assistant", "content": None, "tool_calls": [{"id": "c", "name": "look", "arguments": {"number": "R1"}}]},
    {"role": "tool", "id": "c", "content": "booked", "requestor": "assistant"},
    {"role": "tool", "id": "u", "content": "restarted", "requestor": "user"},
]


@pytest.mark.parametrize(("kept", "spoken"), [(4, []), (1, ["user"])])
def test_a_conversation_goes_on_from_its_history(folder: Path, kept: int, spoken: list[str]) -> None:
    history = HISTORY[:kept] if kept < 4 else HISTORY
    sample = load_with(folder, initial_state={"message_history": history})
    conversation: Any = TAU2.solver(setup(folder))
    solver = dataclasses.replace(conversation, user=Scripted(["", "Bye."]), max_turns=1)
    agent = Judge()
    transcript = asyncio.run(solver(sample, agent))
    sent = [message.role for message in transcript.messages]
    assert sent == ["system", *(one["role"] for one in HISTORY[:kept]), *spoken, "assistant"]
    if kept == 4:
        assert transcript.messages[3].tool_calls == (ToolCall("c", "look", '{"number":"R1"}'),)
        assert transcript.messages[4].tool_call_id == "c"


def test_an_action_that_the_world_does_not_know_is_an_error(folder: Path) -> None:
    task = json.loads(json.dumps(TASK))
    task["evaluation_criteria"]["actions"][0]["name"] = "fly"
    (folder / "tasks.json").write_text(json.dumps([task]))
    (sample,) = TAU2.load(setup(folder)).samples
    (scorer,) = TAU2.scorers(setup(folder))
    with pytest.raises(ScoringError, match="has no tool 'fly', which task 7 uses"):
        asyncio.run(scorer(sample, episode(LEFT)))  # type: ignore[arg-type, operator]


def test_tasks_that_need_the_customer_s_tools_are_left_out_by_name(folder: Path) -> None:
    dataset = TAU2.load(Setup("m", data=folder, args={"world": Rail}))
    assert list(dataset.samples) == []
    assert dataset.source.endswith("left out, because user_tools lacks the customer's tools: 7 (restart)")


STATE = {
    "initialization_actions": [
        {"env_type": "user", "func_name": "turn_off", "arguments": {"since": "noon"}},
        {"env_type": "assistant", "func_name": "cancel", "arguments": {"number": "R2"}},
    ]
}


class Players:
    """Plays the agent and the customer, whose model has its tool alone."""

    name, overrides, user_model = "agent", dict[str, Any](), ("customer", None)

    def __init__(self, role: str = "agent", asked: list[Any] | None = None) -> None:
        self.role: str = role
        self.asked: list[Any] = [] if asked is None else asked

    def peer(self, name: str, base_url: str | None = None, *, epoch: int | None = None) -> Players:
        assert base_url is None and epoch is None  # noqa: PT018 - how a player is asked for
        return Players(name, self.asked)

    async def chat(self, prompt: Any, *, tools: Any = (), **_: Any) -> Completion:
        offered = [entry["function"]["name"] for entry in tools]
        self.asked.append((self.role, offered, [message.role for message in prompt], prompt[-1].content))
        last = prompt[-1].content
        if self.role == "agent":
            return Completion("Please restart." if last == "It is off." else "You get 1250 back.")
        if last == "Please restart.":
            return Completion("", tool_calls=(ToolCall("u", "restart", "{}"),))
        return Completion({"Hello, how can I help you?": "It is off.", "restarted": "It is on."}.get(last, "###END###"))


ROLES = ("user", "assistant", "user")


def test_the_customer_s_model_uses_its_own_tools(folder: Path) -> None:
    on = [assertion("assert_power", power="on")]
    criteria = {
        "actions": [{"name": "restart", "arguments": {}, "requestor": "user"}],
        "env_assertions": on,
        "reward_basis": ["DB", "ENV_ASSERTION", "ACTION"],
    }
    sample = load_with(folder, initial_state=STATE, criteria=criteria)
    players = Players()
    solver: Any = TAU2.solver(setup(folder))
    transcript = asyncio.run(solver(sample, players))
    assert transcript.facts["state"] == {"R1": "booked", "R2": "cancelled"}
    assert [event["kind"] for event in transcript.events] == ["user", "turn", "user_call", "user", "turn"]
    assert players.asked == [
        ("customer", ["restart"], ["system", "user"], "Hello, how can I help you?"),
        ("agent", ["look", "cancel"], ["system", "user"], "It is off."),
        ("customer", ["restart"], ["system", *ROLES], "Please restart."),
        ("customer", ["restart"], ["system", *ROLES, "assistant", "tool"], "restarted"),
        ("agent", ["look", "cancel"], ["system", *ROLES], "It is on."),
        ("customer", ["restart"], ["system", *ROLES, "assistant", "tool", "assistant", "user"], "You get 1250 back."),
    ]
    (scorer,) = TAU2.scorers(setup(folder))
    scores: Any = asyncio.run(scorer(sample, transcript))  # type: ignore[arg-type, operator]
    assert (scores["db"], scores["env_assertions"], scores["actions"], scores["reward"].value) == (1, 1, 1, 1)
    silent = dataclasses.replace(transcript, events=transcript.events[:2])
    scores = asyncio.run(scorer(sample, silent))  # type: ignore[arg-type, operator]
    assert (scores["db"], scores["env_assertions"], scores["actions"], scores["reward"].value) == (1, 0, 0, 0)


def test_calls_of_the_history_are_made_before_the_conversation(folder: Path) -> None:
    calls = [{"id": "f", "name": "fly"}, {"id": "c", "name": "cancel", "arguments": {"number": "R1"}}]
    called = {"role": "assistant", "tool_calls": calls}
    state = {"message_history": [{"role": "user", "content": "Cancel R1."}, called, {"role": "tool", "id": "c"}]}
    sample = load_with(folder, initial_state=state)
    solver: Any = TAU2.solver(setup(folder))
    transcript = asyncio.run(dataclasses.replace(solver, user=Scripted([]))(sample, Players()))
    assert transcript.facts["state"] == LEFT
    unknown = load_with(folder, initial_state={"initialization_actions": [{"func_name": "fly"}]})
    with pytest.raises(SettingsError, match="task 7 begins with 'fly', and the world has no such method"):
        asyncio.run(solver(unknown, Players()))


def test_initial_data_is_given_to_the_world(folder: Path) -> None:
    class Depot(Rail):
        def update_db(self, changed: dict[str, str]) -> None:
            self.tickets |= changed

    state = {"initialization_data": {"agent_data": {"R3": "booked"}, "user_data": None}}
    sample = load_with(folder, initial_state=state)
    solver: Any = TAU2.solver(setup(folder, world=Depot))
    transcript = asyncio.run(dataclasses.replace(solver, user=Scripted([]))(sample, Players()))
    assert transcript.facts["state"] == {"R1": "booked", "R2": "booked", "R3": "booked"}
    with pytest.raises(SettingsError, match="task 7 begins with 'update_db', and the world has no such method"):
        asyncio.run(dataclasses.replace(TAU2.solver(setup(folder)), user=Scripted([]))(sample, Players()))  # type: ignore[type-var]


@pytest.mark.parametrize(
    ("wanted", "names", "made", "taken"),
    [
        ({"number": "R1"}, None, {"number": "R1"}, 1),
        ({"number": "R1"}, None, {"number": "R1", "why": "asked"}, 0),
        ({"number": "R1", "why": "asked"}, None, {"number": "R1"}, 1),
        ({"number": "R1"}, ["number", "why"], {"number": "R1", "why": "asked"}, 0),
        ({"number": "R1"}, [], {"number": "R2"}, 1),
    ],
)
def test_the_arguments_of_a_call_are_compared_unless_the_action_names_others(
    folder: Path, wanted: dict[str, str], names: list[str] | None, made: dict[str, str], taken: int
) -> None:
    action = {"name": "cancel", "arguments": wanted} | ({} if names is None else {"compare_args": names})
    sample = load_with(folder, criteria={"actions": [action], "reward_basis": ["ACTION"]})
    (scorer,) = TAU2.scorers(setup(folder))
    transcript = Transcript("", events=({"kind": "call", "tool": "cancel", "arguments": made},), facts={"state": LEFT})
    scores: Any = asyncio.run(scorer(sample, transcript))  # type: ignore[arg-type, operator]
    assert (scores["actions"], scores["reward"].value) == (taken, taken)


def test_a_task_that_names_no_criterion_is_rewarded_for_state_and_information(folder: Path) -> None:
    task: dict[str, Any] = {**TASK, "evaluation_criteria": {"actions": [], "communicate_info": []}}
    (folder / "tasks.json").write_text(json.dumps([task, {**TASK, "id": "8", "evaluation_criteria": None}]))
    basis = [sample.metadata["basis"] for sample in TAU2.load(setup(folder)).samples]
    assert basis == [["DB", "COMMUNICATE"], []]


@pytest.mark.parametrize(("offered", "used"), [(None, ["restart"]), (["restart"], ["restart"]), ([], [])])
def test_a_task_chooses_among_the_customer_s_tools(folder: Path, offered: list[str] | None, used: list[str]) -> None:
    (folder / "tasks.json").write_text(json.dumps([{**TASK, "user_tools": offered}]))
    (sample,) = TAU2.load(setup(folder)).samples
    players = Players()
    solver: Any = TAU2.solver(setup(folder))
    asyncio.run(solver(sample, players))
    tools = {(role, tuple(names)) for role, names, _, _ in players.asked}
    assert tools == {("customer", tuple(used)), ("agent", ("look", "cancel"))}


def test_a_split_chooses_tasks_and_the_policy_may_be_given(folder: Path) -> None:
    (folder / "tasks.json").write_text(json.dumps([{**TASK, "id": name} for name in ("7", "8", "9")]))
    (folder / "split_tasks.json").write_text(json.dumps({"base": ["9", "7"], "test": ["8"]}))
    assert [sample.id for sample in TAU2.load(setup(folder, split="base")).samples] == ["7", "9"]
    with pytest.raises(DatasetError, match=r"split_tasks.json.*'small'"):
        TAU2.load(setup(folder, split="small"))
    (folder / "split_tasks.json").write_text(json.dumps({"base": [["9"]]}))
    with pytest.raises(DatasetError, match=r"field 'base', element 1: found \[\"9\"\], expected a string"):
        TAU2.load(setup(folder, split="base"))
    (folder / "policy.md").unlink()
    solver: Any = TAU2.solver(setup(folder, policy="Be brief."))
    assert solver.agent.protocol.system == "Be brief."


def test_a_world_may_change_the_initial_data_that_it_received(folder: Path) -> None:
    class Depot(Rail):
        def update_db(self, trains: dict[str, list[str]]) -> None:
            self.trains = trains

        @tool
        def couple(self, train: str, car: str) -> None:
            """Couples a car to a train."""
            self.trains[train].append(car)

        def state(self) -> Any:
            return self.trains

    arguments = {"train": "T", "car": "dining"}
    criteria = {"actions": [{"name": "couple", "arguments": arguments}], "reward_basis": ["DB"]}
    sample = load_with(
        folder, initial_state={"initialization_data": {"agent_data": {"T": ["mail"]}}}, criteria=criteria
    )
    (scorer,) = TAU2.scorers(setup(folder, world=Depot))
    transcript = Transcript("", facts={"state": {"T": ["mail", "dining"]}})
    for _ in range(2):
        scores: Any = asyncio.run(scorer(sample, transcript))  # type: ignore[arg-type, operator]
        assert (scores["db"], scores["reward"].value) == (1, 1)
