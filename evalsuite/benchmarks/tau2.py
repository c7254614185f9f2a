"""tau2-bench: an agent with tools serves a simulated customer under a policy.

Barres et al., "tau2-bench", arXiv 2506.07982. A domain's published files (`tasks.json`, `policy.md`) are read from
`--data`. A domain's tools are Python code, which is not among the published files. The user passes the tools as a
world: a class with `@tool` methods and a method `state()`.

    @benchmark("tau2", world=Airline)

In some domains, the customer also has tools. The world contains the tools of both sides, and `user_tools` names the
customer's tools.
"""

import inspect
import math
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from copy import copy, deepcopy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self, get_args

from evalsuite.core.errors import ScoringError, SettingsError
from evalsuite.core.json_codec import dumps
from evalsuite.core.keywords import read_options
from evalsuite.core.protocols import Benchmark, Dataset, Model, Setup, Solver
from evalsuite.core.types import SHARE, Message, Role, Sample, Score, ToolCall, Transcript
from evalsuite.judges.asking import ask_until_parsed
from evalsuite.judges.criteria import Checklist
from evalsuite.judges.judgements import sign_scores, write_signature
from evalsuite.judges.prompts import mark_sections
from evalsuite.samples.items import SourceItem, read_json, read_json_records, read_text
from evalsuite.tools.execution import ToolFailure, convert_to_json
from evalsuite.tools.worlds import EpisodeWorld, World, open_tools

TASKS, POLICY, SPLITS = "tasks.json", "policy.md", "split_tasks.json"
DEFAULT_BASIS = ["DB", "COMMUNICATE"]  # The criteria that are rewarded if a task names none.
DATA_METHODS = {"agent_data": "update_db", "user_data": "update_user_db"}
"""The methods of a world that get the parts of a task's `initialization_data`."""


@dataclass(frozen=True, slots=True)
class Tau2Options:
    """The arguments of `@benchmark("tau2", ...)`."""

    world: Any = None  # A class with the domain's tools, or a function that makes an object with them for a sample.
    user_tools: Sequence[str] = ()  # Names of the tools that only the customer may call.
    domain: str | None = None  # The domain's folder within the data folder, as in the published repository.
    max_turns: int = 30  # Maximum number of the customer's messages.
    split: str | None = None  # A name in the domain's `split_tasks.json`; None loads all tasks.
    policy: str | None = None  # The agent's policy; None reads the domain's `policy.md`.

    @classmethod
    def from_setup(cls, setup: Setup) -> Self:
        """Read and check the options of a run."""
        options = read_options("tau2", cls, setup.args)
        make = options.world.make if isinstance(options.world, World) else options.world
        # Check the state before any call is paid for; the state of a function's object is known only later.
        if not callable(make) or (isinstance(make, type) and not callable(getattr(make, "state", None))):
            raise SettingsError(
                f"tau2 was given world={make!r:.80}, but it needs the tools of its domain, which are not published as "
                "data: @benchmark('tau2', world=Airline) with a class that has @tool methods and a state()"
            )
        return options

    def make_world(self) -> World:
        """Make a world that starts in a task's initial state; unless the user passed a `World`, set `outside=False`."""
        world = copy(self.world) if isinstance(self.world, World) else World(self.world, outside=False)
        world.prepare = run_initial_calls
        return world


async def run_initial_calls(world: Any, sample: Sample) -> None:
    """Run the method calls that bring a world into a task's initial state."""
    # Copy the arguments, because a world may store these objects in its state and change them.
    for name, data, arguments, is_tool in deepcopy(sample.metadata["initial_calls"]):
        method = _find_public_method(world, name)
        if method is None and is_tool:
            continue
        if method is None:
            raise SettingsError(f"tau2: task {sample.id} begins with {name!r}, and the world has no such method")
        try:
            result = method(*data, **arguments)
            await result if inspect.isawaitable(result) else None
        except Exception:
            # Ignore failing tool calls, because they failed in the published conversation, too.
            if not is_tool:
                raise


def _find_public_method(world: Any, name: str) -> Callable[..., Any] | None:
    method = None if name.startswith("_") else getattr(world, name, None)
    return method if callable(method) else None


def _read_objects(item: SourceItem, name: str, key: str) -> list[Mapping[str, Any]]:
    """Read an optional list of objects that each have a text in the field `key`."""
    objects = item.read_items(name, optional=True)
    for one in objects:
        one.read(key, str)
        one.read_optional("arguments", dict)
    return [one.fields for one in objects]


def _read_message_history(state: SourceItem) -> list[Mapping[str, Any]]:
    """Read the messages with which a task begins; check their roles, and the ids that `read_history` needs."""
    for message in state.read_items("message_history", optional=True):
        if (role := message.read("role", str)) not in get_args(Role):
            raise message.make_error(repr(role), f"one of {', '.join(get_args(Role))}", "role")
        if role == "tool":
            message.read("id", str)
        _read_objects(message, "tool_calls", "name")
        for call in message.read_items("tool_calls", optional=True) if role == "assistant" else ():
            call.read("id", str)
    return _read_objects(state, "message_history", "role")


def _find_domain_folder(setup: Setup) -> Path:
    if setup.data is None:
        raise SettingsError("tau2 has no shipped tasks; name a domain's folder with --data=DIR (DIR/tau2)")
    domain = Tau2Options.from_setup(setup).domain
    return setup.data / domain if domain else setup.data


def load_dataset(setup: Setup) -> Dataset:
    """Load one sample per task."""
    path = _find_domain_folder(setup) / TASKS
    options = Tau2Options.from_setup(setup)
    chosen = None
    if options.split is not None:
        splits = path.with_name(SPLITS)
        chosen = set(SourceItem(read_json(splits, dict), splits, "the splits").read_list(options.split, str))
    samples, left_out = [], []
    for task in read_json_records(path, "task"):
        sample = _make_sample(task)
        if chosen is not None and sample.id not in chosen:
            continue
        users = {action["name"] for action in sample.metadata["actions"] if action.get("requestor") == "user"}
        if users <= set(options.user_tools):
            samples.append(sample)
        else:
            left_out.append(f"{sample.id} ({', '.join(sorted(users - set(options.user_tools)))})")
    note = f"; left out, because user_tools lacks the customer's tools: {', '.join(left_out)}" if left_out else ""
    return Dataset(samples, f"{path.parent.name}/{path.name}{note}")


def _make_sample(task: SourceItem) -> Sample:
    state = task.read_item("initial_state", optional=True)
    history = _read_message_history(state)
    given = state.read_optional("initialization_data", dict)
    initial_actions = _read_objects(state, "initialization_actions", "func_name")
    written = [call for message in history for call in message.get("tool_calls") or []]
    criteria = task.read_item("evaluation_criteria", optional=True)
    basis = criteria.read_list("reward_basis", str, optional=True)
    if criteria.fields and "reward_basis" not in criteria.fields:
        basis = list(DEFAULT_BASIS)
    goal, knowledge = _write_customer_goal_and_knowledge(task.read_item("user_scenario"))
    return Sample(
        id=str(task.fields.get("id", task.where.removeprefix("task "))),
        input=goal,
        tags={"basis": " and ".join(basis or ["nothing"])},
        metadata={
            "knows": knowledge,
            "actions": _read_objects(criteria, "actions", "name"),
            "communicate": criteria.read_list("communicate_info", str, optional=True),
            "basis": basis,
            "env_assertions": _read_objects(criteria, "env_assertions", "func_name"),
            "nl_assertions": criteria.read_list("nl_assertions", str, optional=True),
            # The customer's tools in this task; None means all of the customer's tools.
            "user_tools": task.fields.get("user_tools"),
            # The world's initial data, initial actions and past tool calls, as calls of its methods: the method's name,
            # positional and named arguments, and True if the call is a tool call.
            "initial_calls": [
                *((method, [given[name]], {}, False) for name, method in DATA_METHODS.items() if given.get(name)),
                *((call["func_name"], [], call.get("arguments") or {}, False) for call in initial_actions),
                *((call["name"], [], call.get("arguments") or {}, True) for call in written),
            ],
            # The agent sees neither the customer's calls nor their results.
            "history": [
                message
                for message in history
                if message.get("requestor", "assistant") == "assistant"
                and not (message["role"] == "user" and message.get("tool_calls"))
            ],
        },
    )


def _write_customer_goal_and_knowledge(scenario: SourceItem) -> tuple[str, str]:
    persona, written = scenario.read_optional("persona", str), scenario.fields.get("instructions")
    if isinstance(written, str):
        return "\n\n".join([*filter(None, [persona]), written]), "nothing more"
    instructions = scenario.read_item("instructions")
    goal, knowledge = (
        [instructions.read_optional(name, str) for name in names]
        for names in (("reason_for_call", "task_instructions"), ("known_info", "unknown_info"))
    )
    return "\n\n".join(filter(None, [persona, *goal])), "\n\n".join(filter(None, knowledge)) or "nothing more"


def read_history(sample: Sample) -> list[Message]:
    """Read the messages with which a task's conversation begins; leave out the customer's tool calls."""
    return [
        Message(
            message["role"],
            message.get("content") or "",
            tuple(
                ToolCall(call["id"], call["name"], dumps(call.get("arguments") or {}))
                for call in message.get("tool_calls") or ()
                if message["role"] == "assistant"
            ),
            message["id"] if message["role"] == "tool" else None,
        )
        for message in sample.metadata["history"]
    ]


CALLS = ("call", "user_call")  # The kinds of events that are calls: by the agent, and by the customer.
JUDGED_BASIS = "NL_ASSERTION"
BASES = {
    "DB": "db",
    "COMMUNICATE": "communicate",
    "ACTION": "actions",
    "ENV_ASSERTION": "env_assertions",
    JUDGED_BASIS: "nl_assertions",
}
"""The score for each criterion of a task; only `nl_assertions` needs a judge."""
JUDGE_PARAMETERS: Mapping[str, Any] = {"temperature": 0, "max_tokens": 2048}
LEAD = (
    "Below is a conversation between an agent and a customer. Each criterion is a statement about it; the verdict is "
    "yes if the statement is true."
)


@dataclass(frozen=True, slots=True)
class Reward:
    """Scores a conversation: its effects must equal the effects of the task's own actions in a new world."""

    world: World

    async def __call__(self, sample: Sample, transcript: Transcript) -> dict[str, float | Score]:
        """Return a score per criterion, and `reward`: the product of the scores that the task rewards.

        The criterion `db` requires that the final state equals the state after the task's actions. The criterion
        `communicate` requires that the agent told the customer all required information. The criterion `actions`
        requires that all of the task's actions were taken. The criterion `env_assertions` requires that the method
        calls that the task lists return the expected values.
        """
        if "state" not in transcript.facts:
            raise ScoringError("the world of tau2 has no method `state()`, so it cannot be compared with")
        actions = [(action["name"], action.get("arguments") or {}) for action in sample.metadata["actions"]]
        async with self._open_replayed_world(sample, actions) as world:
            wanted = convert_to_json(await world.read_final_state())
        scores = {
            "db": float(transcript.facts["state"] == wanted),
            "communicate": float(_has_told_information(sample, transcript)),
            "actions": float(all(_has_taken_action(action, transcript) for action in sample.metadata["actions"])),
        }
        if sample.metadata["env_assertions"]:
            scores["env_assertions"] = float(await self.are_assertions_true(sample, transcript))
        return {**scores, **compute_reward(sample, transcript, scores)}

    async def are_assertions_true(self, sample: Sample, transcript: Transcript) -> bool:
        """Repeat the transcript's calls in a new world, and tell whether all assertions of the task are then true."""
        # Leave out calls of unknown tools, because such calls had no effect.
        known = {document.name for document in self.world.documents}
        calls = [(event["tool"], event["arguments"]) for event in transcript.events if event["kind"] in CALLS]
        made_calls = [call for call in calls if call[0] in known or not known]
        async with self._open_replayed_world(sample, made_calls) as world:
            made = await world.get_world_object()
            for assertion in sample.metadata["env_assertions"]:
                name = str(assertion["func_name"])
                method = _find_public_method(made, name)
                if method is None:
                    raise ScoringError(f"the world of tau2 has no method {name!r}, which task {sample.id} asserts by")
                value = method(**(assertion.get("arguments") or {}))
                value = await value if inspect.isawaitable(value) else value
                if bool(value) != bool(assertion.get("assert_value", True)):
                    return False
        return True

    @asynccontextmanager
    async def _open_replayed_world(
        self, sample: Sample, calls: Sequence[tuple[str, Any]]
    ) -> AsyncIterator[EpisodeWorld]:
        nobody: Any = None
        async with open_tools([self.world], sample) as opened:
            tools = {tool.document.name: tool for tool in opened.tools}
            for name, arguments in calls:
                tool = tools.get(name)
                if tool is None:
                    raise ScoringError(f"the world of tau2 has no tool {name!r}, which task {sample.id} uses")
                try:
                    await tool.executor.run_tool(tool.document, arguments, nobody)
                except ToolFailure:
                    continue
            yield opened.worlds[0]


def compute_reward(sample: Sample, transcript: Transcript, scores: Mapping[str, Any]) -> dict[str, Score]:
    """Return `reward`, the product of the scores that the task rewards; return {} if such a score is missing.

    As in tau2-bench, the reward is 0 if a limit ended the conversation.
    """
    # Without assertions in the task, the criteria about assertions are fulfilled.
    fulfilled = {name: 1.0 for name in ("env_assertions", "nl_assertions") if not sample.metadata[name]}
    scored = {**fulfilled, **scores}
    names = [BASES.get(name, name) for name in sample.metadata["basis"]]
    if not names or not set(names) <= set(scored):
        return {}
    ended = transcript.facts.get("ended", "user")
    if ended != "user":
        return {"reward": Score(0.0, f"the customer did not end the conversation: {ended}")}
    return {"reward": Score(math.prod(scored[name] for name in names))}


@dataclass(frozen=True, slots=True)
class JudgedReward:
    """Asks a judge whether a task's statements about the conversation are true."""

    rules: Reward

    async def judged(self, sample: Sample, transcript: Transcript, judge: Model) -> dict[str, float | Score]:
        """Return the scores `nl_assertions` (1 if all statements are true) and `reward`.

        Return {} if the task has no statements or does not reward them.
        """
        claims = sample.metadata["nl_assertions"]
        if JUDGED_BASIS not in sample.metadata["basis"] or not claims:
            return {}
        checklist = Checklist(dict.fromkeys(map(str, claims), 1.0))
        said = [
            f"{'agent' if message.role == 'assistant' else 'customer'}: {message.content}"
            for message in transcript.messages
            if message.role in {"user", "assistant"} and message.content
        ]
        prompt = "\n\n".join(
            [LEAD, mark_sections([("conversation", "\n\n".join(said))]), checklist.write_answer_request()]
        )
        judgement = await ask_until_parsed(judge, prompt, checklist.read_answer, **JUDGE_PARAMETERS)
        true = float(judgement.value.value == 1.0)
        scores = {**await self.rules(sample, transcript), "nl_assertions": true}
        reward = compute_reward(sample, transcript, scores)
        note = Score(true, judgement.value.reason, log=judgement.log)
        return sign_scores({"nl_assertions": note, **reward}, write_signature("tau2", [judge], LEAD, JUDGE_PARAMETERS))


def _has_taken_action(action: Mapping[str, Any], transcript: Transcript) -> bool:
    """Tell whether an action was taken, either by the agent or by the customer.

    As in tau2-bench, only the arguments named in an action's `compare_args` are compared. Without `compare_args`, all
    arguments of the call that was made are compared.
    """
    wanted, names = action.get("arguments") or {}, action.get("compare_args")
    for event in transcript.events:
        if event["kind"] in CALLS and event["tool"] == action["name"]:
            given = event["arguments"]
            compared = given.keys() if names is None else names
            one, other = ({name: side[name] for name in compared if name in side} for side in (wanted, given))
            if one == other:
                return True
    return False


def _has_told_information(sample: Sample, transcript: Transcript) -> bool:
    """Tell whether each piece of information occurs in the agent's messages, ignoring case and commas."""
    told = [message.content.lower().replace(",", "") for message in transcript.messages if message.role == "assistant"]
    return all(
        any(str(piece).lower().replace(",", "") in text for text in told) for piece in sample.metadata["communicate"]
    )


def _make_solver(setup: Setup) -> Solver:
    from evalsuite.solvers.conversations import conversation
    from evalsuite.tools.simulated import Persona

    options = Tau2Options.from_setup(setup)
    persona = Persona(tools=tuple(options.user_tools))
    policy = read_text(_find_domain_folder(setup) / POLICY) if options.policy is None else options.policy
    talk = conversation(user=persona, world=options.make_world(), policy=policy, max_turns=options.max_turns)
    return replace(talk, history=read_history)


def _make_scorers(setup: Setup) -> Sequence[Any]:
    rules = Reward(Tau2Options.from_setup(setup).make_world())
    return [rules, JudgedReward(rules)] if setup.judge else [rules]


TAU2 = Benchmark(
    name="tau2",
    title="tau2-bench",
    load=load_dataset,
    solver=_make_solver,
    scorers=_make_scorers,
    metrics={"*": SHARE},
    primary="reward",
)
