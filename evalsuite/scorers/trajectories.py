"""Scores episodes: compares their tool calls, or the final state of their world (environment), with what is expected.

Precision is the share of the calls made that were expected. Recall is the share of the expected calls that were made.
Each call is matched at most once. An argument may have several accepted values, as in the Berkeley Function-Calling
Leaderboard (Patil et al., "The Berkeley Function Calling Leaderboard", ICML 2025). If the accepted values include `""`,
the argument may be missing.
"""

import difflib
import inspect
import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from evalsuite.core.errors import ScoringError
from evalsuite.core.json_codec import is_equal_json
from evalsuite.core.types import CHANGES, Sample, Score, Transcript
from evalsuite.tools.execution import convert_to_json

CallOrder = Literal["exact", "in_order", "any_order", "subset", "superset"]
ORDERS: tuple[CallOrder, ...] = get_args(CallOrder)
CONTROLS = frozenset({"finish", "ask_to_user"})
"""Tools that episodes add, to finish or to ask the user; calls of these tools count only if they are expected."""


@dataclass(frozen=True, slots=True)
class AnyOf:
    """The accepted values of one argument; see `any_of`."""

    values: tuple[Any, ...]


def any_of(*values: Any) -> AnyOf:
    """Accept any of these values for an argument; if `""` is one of them, the argument may be missing."""
    return AnyOf(values)


@dataclass(frozen=True, slots=True)
class ToolUse:
    """An expected tool call, or a tool call that was made.

    Attributes:
        tool: the tool's name.
        arguments: the arguments by name. In an expected call, each argument is a value, `any_of(...)` or a predicate (a
            function that accepts or rejects). A single predicate in place of the mapping checks all arguments; None
            accepts any arguments.
        partial: whether a matching call may have arguments that are not listed here.
    """

    tool: str
    arguments: Mapping[str, Any] | Callable[[Mapping[str, Any]], bool] | None = None
    partial: bool = False

    def accepts(self, made: "ToolUse") -> bool:
        """Tell whether a call that was made matches this expected call."""
        arguments = made.arguments if isinstance(made.arguments, Mapping) else {}
        if made.tool != self.tool or self.arguments is None:
            return made.tool == self.tool
        if not isinstance(self.arguments, Mapping):
            return bool(self.arguments(arguments))
        if not self.partial and not arguments.keys() <= self.arguments.keys():
            return False
        return all(_is_argument_accepted(wanted, arguments, name) for name, wanted in self.arguments.items())

    def __str__(self) -> str:
        """Write the call like a call in Python."""
        if self.arguments is None:
            return f"{self.tool}(...)"
        if not isinstance(self.arguments, Mapping):
            return f"{self.tool}({_format_expected_value(self.arguments)})"
        inner = [f"{name}={_format_expected_value(value)}" for name, value in sorted(self.arguments.items())]
        return f"{self.tool}({', '.join([*inner, '...'] if self.partial else inner)})"


def call(tool: str, /, **arguments: Any) -> ToolUse:
    """Expect a call that has exactly these arguments; each is a value, `any_of(...)` or a predicate."""
    return ToolUse(tool, arguments)


def _is_argument_accepted(wanted: Any, arguments: Mapping[str, Any], name: str) -> bool:
    if name not in arguments:
        return isinstance(wanted, AnyOf) and "" in wanted.values
    if isinstance(wanted, AnyOf):
        return any(is_equal_json(value, arguments[name]) for value in wanted.values)
    return bool(wanted(arguments[name])) if callable(wanted) else is_equal_json(wanted, arguments[name])


def _format_expected_value(value: Any) -> str:
    if isinstance(value, AnyOf):
        return " | ".join(map(_format_expected_value, value.values))
    if callable(value):
        return f"<{getattr(value, '__name__', type(value).__name__)}>"
    return json.dumps(value, ensure_ascii=False, sort_keys=True, default=str)


def tool_uses(transcript: Transcript, *, controls: Collection[str] = ()) -> list[ToolUse]:
    """List the tool calls of a transcript, in order.

    Args:
        controls: calls of the episode's own tools `finish` and `ask_to_user` are listed only if these names are given.
    """
    return [
        ToolUse(str(event["tool"]), dict(event["arguments"]))
        for event in transcript.events
        if event.get("kind") == "call" and (event["tool"] in controls or not _is_control_call(event))
    ]


def _is_control_call(event: Mapping[str, Any]) -> bool:
    """Tell whether a call used the episode's own `finish` or `ask_to_user`; other tools may also have these names."""
    executor = event.get("executor")
    own = executor is not None and (executor in {"", "episode"} or executor.endswith(" user"))
    return own and event["tool"] in CONTROLS


def match_calls(expected: Sequence[ToolUse], made: Sequence[ToolUse]) -> list[int | None]:
    """Return for each expected call the index of the made call that matches it, or None.

    Match as many calls as possible (Kuhn's algorithm).
    """
    taken_by: dict[int, int] = {}

    def try_to_match_call(number: int, tried: set[int]) -> bool:
        for at, use in enumerate(made):
            if at not in tried and expected[number].accepts(use):
                tried.add(at)
                if at not in taken_by or try_to_match_call(taken_by[at], tried):
                    taken_by[at] = number
                    return True
        return False

    for number in range(len(expected)):
        try_to_match_call(number, set())
    made_for = {number: at for at, number in taken_by.items()}
    return [made_for.get(number) for number in range(len(expected))]


def are_calls_accepted(order: CallOrder, expected: Sequence[ToolUse], made: Sequence[ToolUse]) -> bool:
    """Tell whether the calls that were made agree with the expected calls.

    Args:
        order: the required kind of agreement. `exact`: the same calls in the same order. `in_order`: all expected calls
            in their order, possibly with others between them. `any_order`: the same calls in any order. `subset`: no
            other calls than expected. `superset`: all expected calls, and possibly others.
    """
    if order == "exact":
        return len(expected) == len(made) and all(map(ToolUse.accepts, expected, made))
    if order == "in_order":
        rest = iter(made)
        return all(any(wanted.accepts(use) for use in rest) for wanted in expected)
    paired = sum(at is not None for at in match_calls(expected, made))
    enough = {"any_order": paired == len(expected) == len(made), "subset": paired == len(made)}
    return enough.get(order, paired == len(expected))


def format_difference(expected: Iterable[ToolUse], made: Sequence[ToolUse]) -> list[str]:
    """Write the lines of a diff: `- ` before an expected call that is missing, `+ ` before an unexpected call."""
    # Write a matched call like its expected call, because the diff should show only calls without a match.
    expected = list(expected)
    written = [str(use) for use in made]
    for wanted, at in zip(expected, match_calls(expected, made), strict=True):
        if at is not None:
            written[at] = str(wanted)
    lines = difflib.ndiff([str(wanted) for wanted in expected], written)
    return [line.rstrip() for line in lines if not line.startswith("?")]


ExpectedCalls = Callable[["Sample"], Sequence["ToolUse | Mapping[str, Any] | str"]]


@dataclass(frozen=True, slots=True)
class Calls:
    """Scores the tool calls of an episode by comparing them with expected calls; the function `tool_calls` makes it."""

    order: CallOrder
    expected: ExpectedCalls | Sequence[ToolUse | Mapping[str, Any] | str] | None
    repeats: bool = True

    def __call__(self, sample: Sample, transcript: Transcript) -> dict[str, Score]:
        wanted_calls = self.expected(sample) if callable(self.expected) else self.expected
        if wanted_calls is None:
            wanted_calls = sample.metadata.get("calls")
        if wanted_calls is None:
            raise ScoringError(
                f"tool_calls(...): nothing says which calls sample {sample.id!r} should make; give it "
                "metadata={'calls': [...]}, or give tool_calls(expected=...); an empty list expects none"
            )
        expected = list(map(read_call, wanted_calls))
        named = {wanted.tool for wanted in expected}
        made = tool_uses(transcript, controls=named)
        if not self.repeats:
            made = [use for at, use in enumerate(made) if use not in made[:at]]
        paired = sum(at is not None for at in match_calls(expected, made))
        right = are_calls_accepted(self.order, expected, made)
        counts = f"{paired} of {len(expected)} expected calls among {len(made)} made"
        note = counts if expected else f"no call was expected, {len(made)} made"
        log = [{"role": "calls", "content": "\n".join(format_difference(expected, made))}]
        return {
            "calls": Score(float(right), "" if right else note, log=log),
            "calls_precision": Score(paired / len(made) if made else float(not expected)),
            "calls_recall": Score(paired / len(expected) if expected else float(not made)),
        }


def read_call(written: ToolUse | Mapping[str, Any] | str) -> ToolUse:
    """Read an expected call: `call(...)`, a tool's name, `{"tool": ..., "arguments": ...}`, or a call in BFCL's form.

    The form of BFCL (Berkeley Function-Calling Leaderboard) is `{"name": {"argument": [accepted, values]}}`.
    """
    if isinstance(written, ToolUse):
        return written
    if isinstance(written, str):
        return ToolUse(written)
    if isinstance(written.get("tool"), str):
        return ToolUse(written["tool"], written.get("arguments"), bool(written.get("partial", False)))
    if len(written) == 1:
        ((tool, accepted),) = written.items()
        if isinstance(accepted, Mapping) and all(isinstance(values, list) for values in accepted.values()):
            return ToolUse(tool, {name: AnyOf(tuple(values)) for name, values in accepted.items()})
    raise ScoringError(
        f"{str(written)[:200]} is not an expected call; write call('tool', argument=value), 'tool', "
        "{'tool': ..., 'arguments': {...}}, or BFCL's {'tool': {'argument': [accepted values]}}"
    )


def tool_calls(
    order: CallOrder = "any_order",
    *,
    expected: ExpectedCalls | Sequence[ToolUse | Mapping[str, Any] | str] | None = None,
    repeats: bool = True,
) -> Calls:
    """Score tool calls against the expected calls: `calls` (0 or 1), `calls_precision` and `calls_recall`.

    All three scores are 1 if no call is expected and none is made. Precision is 0 if calls are expected but none is
    made.

    Args:
        order: the kind of agreement for which `calls` is 1: `exact`, `in_order`, `any_order`, `subset` or `superset`;
            `are_calls_accepted` describes them.
        expected: the expected calls, or a function of the sample that returns them; by default `calls` in the sample's
            metadata. `read_call` describes how a call may be written.
        repeats: whether identical calls count again. If False, only the first of identical calls counts.

    Raises:
        ScoringError: `order` is not one of the five kinds.
    """
    if order not in ORDERS:
        raise ScoringError(f"tool_calls({order!r}): no such order; there are {', '.join(ORDERS)}")
    return Calls(order, expected, repeats)


@dataclass(frozen=True, slots=True)
class ExpectState:
    """Scores the final state of a world (the object whose methods are the tools); made by `expect_state`."""

    expected: Mapping[str, Any] | Callable[..., bool] | None = None

    def __call__(self, sample: Sample, transcript: Transcript) -> Mapping[str, float]:
        if "state" not in transcript.facts:
            reason = (
                "the record keeps only its changes" if CHANGES in transcript.facts else "the world has no `state()`"
            )
            raise ScoringError(f"expect_state: the final state is unknown, because {reason}")
        state = transcript.facts["state"]
        if callable(self.expected):
            arguments = (state, sample) if len(inspect.signature(self.expected).parameters) > 1 else (state,)
            return {"state": float(bool(self.expected(*arguments)))}
        expected = sample.metadata.get("state") if self.expected is None else self.expected
        if expected is None:
            raise ScoringError(f"expect_state: sample {sample.id} has no expected `state` in its metadata")
        # The state has become JSON data, in which a tuple is a list and a date is text.
        wanted = convert_to_json(expected, "expect_state: the expected state")
        return {"state": float(_is_part_of_state(wanted, state))}


def _is_part_of_state(expected: Any, state: Any) -> bool:
    if isinstance(expected, dict) and isinstance(state, dict):
        return all(name in state and _is_part_of_state(value, state[name]) for name, value in expected.items())
    if isinstance(expected, list) and isinstance(state, list):
        return len(expected) == len(state) and all(map(_is_part_of_state, expected, state))
    return is_equal_json(expected, state)


def expect_state(expected: Mapping[str, Any] | Callable[..., bool] | None = None) -> ExpectState:
    """Score `state`: 1.0 if the world has the expected state at the end of the episode, otherwise 0.0.

    Args:
        expected: the expected state. If it is a mapping, only the keys in it are compared, at every depth. If it is a
            function, it gets the state and, if it has a second parameter, the sample. If it is None, `state` in the
            sample's metadata is expected.
    """
    return ExpectState(expected)
