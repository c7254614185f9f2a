"""Core data types.

All fields have types that JSON has, so that values can be stored and sent to other processes.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, fields, replace
from operator import add, attrgetter
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self, TypeGuard

from evalsuite.core.redaction import format_public_address, mask_params

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler

Role = Literal["system", "developer", "user", "assistant", "tool"]
Outcome = Literal["passed", "failed", "error", "skipped"]
Target = str | int | float | Sequence[str] | None
TARGET_KINDS = "text, a finite number or a list of these; metadata takes anything else"
CANARY = "canary"
"""The tag of cases that monitor the judge. Such cases have fixed answers, so they are not a random sample."""


def has_canary_tag(tags: Mapping[str, str]) -> bool:
    """Tell whether a case with these tags monitors the judge; a tag `canary` with another value is a user's."""
    return tags.get(CANARY) == "judge"


ASSERTS = "asserts"  # Key in a record's `facts` that tells whether the case's test can fail; by default, it can.
PASS_RATE = "pass_rate"  # noqa: S105 - a metric, no password
"""The metric that every benchmark has: the share of its scored cases whose test passed."""
SIGNATURES = "judge_signatures"  # Key in a record's `facts` with the judge's signature for each judged score.
COUNTED_APART = "_cannot_tell"
"""Suffix of a metric that is 1.0 for each case on which the judge could not tell, else 0.0."""


@dataclass(frozen=True, slots=True)
class LowerBound:
    """The lower bound of a number for pydantic; importing the equivalent class from `annotated_types` is slower."""

    least: int

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> Any:
        """Add the lower bound to the JSON schema of the number."""
        return {**handler(source), "ge": self.least}


Count = Annotated[int, LowerBound(0)]
Amount = Annotated[float, LowerBound(0)]
STRICT_CONFIG = {"strict": True, "allow_inf_nan": False}
"""Settings with which pydantic reads these types: it converts no value, and it accepts only finite numbers."""


def _check_fields(value: object, **kinds: type | tuple[type]) -> None:
    """Check that fields have these types, because a record with another type in a field could not be read again.

    A tuple of a type stands for a sequence whose members have this type.
    """
    for name, kind in kinds.items():
        found = getattr(value, name)
        if isinstance(kind, tuple):
            is_right = found == () or (_is_list_like(found) and all(isinstance(member, kind) for member in found))
        else:
            is_right = isinstance(found, kind)
        if not is_right:
            words, expected = ("a sequence of type", kind[0]) if isinstance(kind, tuple) else ("of type", kind)
            raise TypeError(f"{type(value).__name__}: {name} is {found!r:.60}; it must be {words} {expected.__name__}")


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call that a model requests through the native function-calling protocol.

    Attributes:
        id: the call's identifier, which the tool's answer repeats.
        name: the tool's name as the model wrote it; perhaps no tool has this name.
        arguments: the arguments as the model wrote them, which should be a JSON object.
        extra: the field `extra_content` of Gemini's compatible API, whose signature the next request must repeat.
    """

    id: str
    name: str
    arguments: str
    extra: Mapping[str, Any] = field(default_factory=dict, hash=False)

    @classmethod
    def from_openai(cls, plain: Mapping[str, Any]) -> Self:
        """Read a call in the OpenAI chat format; arguments that came as an object are written as JSON."""
        function = plain["function"]
        arguments = function.get("arguments") or "{}"
        if not isinstance(arguments, str):
            arguments = json.dumps(arguments, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
        extra = {"extra_content": plain["extra_content"]} if plain.get("extra_content") else {}
        return cls(str(plain.get("id") or ""), str(function["name"]), arguments, extra)


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a conversation, in the roles of the OpenAI chat format.

    Attributes:
        role: the sender's role.
        content: the message's text; if the message has several parts, the joined texts of the parts.
        tool_calls: the calls that an assistant requests.
        tool_call_id: the id of the call that a tool's message answers.
        parts: the parts of content that is not a single text: texts, results of `image`, `audio` and `file`, or any
            other part in the OpenAI format. Empty if `content` is the whole message.
        extra: further fields of the OpenAI format (`name`, `refusal`), sent unchanged.
    """

    role: Role
    content: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    parts: Sequence[str | Mapping[str, Any]] = field(default=(), hash=False)
    extra: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        if not self.content:  # The OpenAI format may have null in place of an empty text.
            object.__setattr__(self, "content", "")
        _check_fields(self, role=str, content=str, tool_calls=(ToolCall,))
        if self.parts:
            parts = tuple({"type": "text", "text": part} if isinstance(part, str) else part for part in self.parts)
            if not all(isinstance(part, Mapping) for part in parts):
                raise TypeError(f"Message: parts are {self.parts!r:.60}; each must be text or a mapping")
            if self.content and self.content != _join_text_parts(parts):
                parts = ({"type": "text", "text": self.content}, *parts)
            object.__setattr__(self, "parts", parts)
            object.__setattr__(self, "content", _join_text_parts(parts))

    @classmethod
    def from_openai(cls, plain: Mapping[str, Any]) -> Self:
        """Read a message in the OpenAI chat format.

        Raises:
            KeyError: the message has no role, or a call does not name a function.
        """
        content = plain.get("content") or ""
        return cls(
            plain["role"],
            content if isinstance(content, str) else "",
            tuple(ToolCall.from_openai(call) for call in plain.get("tool_calls") or ()),
            plain.get("tool_call_id"),
            () if isinstance(content, str) else tuple(content),
            {name: value for name, value in plain.items() if name not in MESSAGE_FIELDS and value is not None},
        )

    @classmethod
    def __get_pydantic_core_schema__(cls, _source: Any, _handler: Any) -> Any:
        """Tell pydantic to read messages in the OpenAI chat format."""
        from pydantic_core import core_schema

        def read_message(plain: Mapping[str, Any]) -> Message:
            try:
                return cls.from_openai(plain)
            except (KeyError, TypeError, AttributeError) as error:
                raise ValueError(f"not a message in the OpenAI chat format: {error!r}") from error

        return core_schema.no_info_after_validator_function(
            read_message, core_schema.dict_schema(core_schema.str_schema())
        )


MESSAGE_FIELDS = frozenset({"role", "content", "tool_calls", "tool_call_id"})


def _join_text_parts(parts: Sequence[Any]) -> str:
    return "\n".join(part["text"] for part in parts if isinstance(part.get("text"), str))


Prompt = str | Sequence[Message | Mapping[str, Any]]
"""A user's message, or a whole conversation, whose messages may be given in the OpenAI format."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One item of a dataset.

    Attributes:
        id: unique within the benchmark, short and stable, because it becomes part of the case's id. A number becomes
            text.
        input: the question, or a whole conversation, whose messages may also be given in the OpenAI format.
        target: the right answer, or several acceptable answers; None if the sample has no reference answer.
        tags: strings to group by in reports and gates (`region`: `eu`); other values become text.
        metadata: plain JSON data for solvers and scorers.
    """

    id: str
    input: str | tuple[Message, ...]
    target: Target = None
    tags: Mapping[str, str] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)

    if TYPE_CHECKING:

        def __init__(
            self,
            id: str | int,  # noqa: A002 - the field's name
            input: Prompt,  # noqa: A002 - likewise
            target: Target = None,
            tags: Mapping[str, object] = ...,
            metadata: Mapping[str, Any] = ...,
        ) -> None: ...

    def __post_init__(self) -> None:
        # A lone surrogate cannot be written to a file.
        object.__setattr__(self, "id", str(self.id).encode("utf-8", "replace").decode("utf-8"))
        if not is_valid_target(self.target):
            raise TypeError(f"sample {self.id!r:.60}: target is {self.target!r:.60}; it must be {TARGET_KINDS}")
        if isinstance(several := _convert_collection(self.target), list):
            object.__setattr__(self, "target", several)
        if _is_list_like(self.target) and not all(isinstance(each, str) for each in self.target):
            object.__setattr__(self, "target", [str(each) for each in self.target])
        if not isinstance(self.input, str):
            if isinstance(self.input, Mapping | bytes) or not isinstance(self.input, Iterable):
                raise TypeError(f"sample {self.id!r:.60}: input is {self.input!r:.60}; it must be text or messages")
            object.__setattr__(self, "input", tuple(map(convert_message, self.input)))
        if not all(isinstance(value, str) for value in self.tags.values()):
            object.__setattr__(self, "tags", {name: str(value) for name, value in self.tags.items()})


def is_valid_target(value: object) -> bool:
    """Tell whether a record can store a value as its target; an object that JSON lacks is stored as text."""
    given, value = value, _convert_collection(value)
    if value is None:
        return given is None  # NumPy converts its missing dates to None.
    if _is_list_like(value):
        return all(isinstance(each, str | int | float) and is_valid_target(each) for each in value)
    if isinstance(value, bool | bytes | Mapping):
        return False
    try:
        # Missing values do not equal themselves; comparing pandas.NA raises a TypeError, and a frame a ValueError.
        return math.isfinite(value) if isinstance(value, float) else bool(value == value)  # noqa: PLR0124
    except (TypeError, ValueError):
        return False


def _convert_collection(value: object) -> object:
    """Convert a set, or an array, column or number of NumPy or pandas, to plain Python objects."""
    if isinstance(value, AbstractSet):
        return sorted(value, key=str)
    convert = getattr(value, "tolist", None)
    return convert() if callable(convert) else value


def _is_list_like(value: object) -> TypeGuard[Sequence[object]]:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def convert_message(message: Message | Mapping[str, Any]) -> Message:
    """Convert a message in the OpenAI chat format; a `Message` is returned unchanged."""
    if isinstance(message, Message):
        return message
    try:
        return Message.from_openai(message)
    except (KeyError, TypeError, AttributeError) as error:
        raise TypeError(f"{message!r:.60} is not a message in the OpenAI chat format: {error!r}") from error


@dataclass(frozen=True, slots=True)
class Usage:
    """Number, tokens and cost of one or several calls.

    Attributes:
        calls: number of completions.
        prompt_tokens: tokens read.
        completion_tokens: tokens that the model wrote, reasoning included.
        cost: US dollars; 0.0 if the calls are free or unpriced.
        estimated: calls whose numbers of tokens are estimates, because the server did not count the tokens.
        cached_tokens: tokens among `prompt_tokens` that the server read from its cache.
        cache_write_tokens: tokens among `prompt_tokens` that the server wrote into its cache.
        reasoning_tokens: tokens of reasoning among `completion_tokens`.
        unpriced: calls whose cost is missing in `cost`, because no price of their model is known.
    """

    __pydantic_config__: ClassVar[Mapping[str, Any]] = STRICT_CONFIG

    calls: Count = 0
    prompt_tokens: Count = 0
    completion_tokens: Count = 0
    cost: Amount = 0.0
    estimated: Count = 0
    cached_tokens: Count = 0
    cache_write_tokens: Count = 0
    reasoning_tokens: Count = 0
    unpriced: Count = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(*map(add, _amounts(self), _amounts(other)))

    def __sub__(self, part: Usage) -> Usage:
        """Subtract a part of the usage; a negative cost that comes from rounding becomes 0."""
        return Usage(*(max(0, whole - taken) for whole, taken in zip(_amounts(self), _amounts(part), strict=True)))


_amounts = attrgetter(*(amount.name for amount in fields(Usage)))


@dataclass(frozen=True, slots=True)
class Request:
    """One request to one model.

    Attributes:
        model: the model's name as the user wrote it (`gpt-4`, `local:smollm2`, `function:app:answer`).
        messages: the conversation so far.
        params: generation parameters by their OpenAI names (`max_tokens`, `temperature`, `logprobs`, ...).
        tools: descriptions of the available tools, in the OpenAI format.
        base_url: the model's address; None means the backend's usual address.
        epoch: the case's repetition, from 1; requests of different repetitions are different.
        draw: the case and a counter of its equal requests, so that each request gets its own answer; empty if equal
            requests share one answer.
    """

    model: str
    messages: tuple[Message, ...]
    params: Mapping[str, Any] = field(default_factory=dict)
    tools: tuple[Mapping[str, Any], ...] = ()
    base_url: str | None = None
    epoch: int = 1
    draw: str = ""

    def __repr__(self) -> str:
        """Leave out logins, queries and secret parameters, because a repr ends up in tracebacks and logs."""
        base_url = self.base_url and format_public_address(self.base_url)
        return (
            f"Request(model={self.model!r}, messages={self.messages!r}, params={mask_params(self.params)!r}, "
            f"tools={self.tools!r}, base_url={base_url!r}, epoch={self.epoch})"
        )


@dataclass(frozen=True, slots=True)
class TokenLogprob:
    """One generated token with its natural-log probability and the most likely alternatives."""

    token: str
    logprob: float
    top: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Completion:
    """A model's answer to one request.

    Attributes:
        text: the answer without reasoning.
        reasoning: the text that a reasoning model wrote before its answer.
        tool_calls: calls requested through the native protocol.
        finish_reason: `stop`, `length`, `tool_calls` or another value from the server.
        usage: tokens and cost of the call that made this completion.
        logprobs: one entry per generated token; None if the backend sends none.
        embeddings: the vectors of an embedding request, one per text, encoded by `vectors.encode_vector`.
        facts: plain data that an application returned beside its answer, such as retrieved passages.
        response: the server's id, status and output items, if the model was called through the Responses API.
        seconds: time from sending the request to the answer; 0 if unknown.
    """

    text: str
    reasoning: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    finish_reason: str = "stop"
    usage: Usage = field(default_factory=Usage)
    logprobs: tuple[TokenLogprob, ...] | None = None
    embeddings: tuple[str, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)
    response: Mapping[str, Any] = field(default_factory=dict)
    seconds: float = field(default=0.0, compare=False)

    def with_distinct_call_ids(self, prefix: str = "call") -> Self:
        """Renumber the tool calls' ids if an id is missing or occurs twice, because some servers send such ids."""
        ids = {call.id for call in self.tool_calls}
        if all(ids) and len(ids) == len(self.tool_calls):
            return self
        calls = (replace(call, id=f"{prefix}_{number}") for number, call in enumerate(self.tool_calls))
        return replace(self, tool_calls=tuple(calls))


@dataclass(frozen=True, slots=True)
class Transcript:
    """All messages, programs and tool calls for one sample, and the final answer.

    Attributes:
        answer: the answer that is scored.
        messages: the conversation, the model's own messages included.
        reasoning: the reasoning behind the last answer, if the model gave any.
        events: programs and tool calls that were run, as plain JSON objects, each with a `kind`.
        facts: small plain data by which reports group or count cases (turns taken, reason for ending).
    """

    __pydantic_config__: ClassVar[Mapping[str, Any]] = STRICT_CONFIG

    answer: str
    messages: tuple[Message, ...] = ()
    reasoning: str = ""
    events: tuple[Mapping[str, Any], ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _check_fields(self, answer=str, reasoning=str, facts=Mapping, messages=(Message,), events=(Mapping,))


CHANGES = "state_changes"
"""The fact that lists the changes of a world's state. A record that contains this fact omits the fact `state`."""


@dataclass(frozen=True, slots=True)
class Metric:
    """A score's range, unit and direction.

    A scorer declares all of its scores or none, by name, in an attribute `metrics`. `Benchmark.metrics` declares
    further scores and derived metrics. If every scorer declares its scores, a gate on an undeclared name is refused
    before the first model call.

    By default, a loss compared with a baseline matters if it is at least 0.02 of the metric's range. Confidence
    intervals of a metric stay within its range. Without a range, a score with values other than 0 and 1 is compared
    with a baseline only if a gate states which loss matters.

    Attributes:
        range: the least and the greatest value; None if the metric is unbounded.
        better: the direction of improvement, used unless a gate states a direction.

    Raises:
        ValueError: the range is empty, or the direction is unknown.
    """

    range: tuple[float, float] | None = None
    better: Literal["higher", "lower"] = "higher"

    def __post_init__(self) -> None:
        if self.range is not None:
            low, high = self.range
            if not (math.isfinite(low) and math.isfinite(high) and low < high):
                raise ValueError(f"a metric's range needs two numbers, low below high; got {self.range}")
        if self.better not in {"higher", "lower"}:
            raise ValueError(f"better is 'higher' or 'lower'; got {self.better!r}")


SHARE = Metric(range=(0.0, 1.0))  # a score from 0 to 1; higher is better


def are_outcomes(scores: Iterable[float], declared: tuple[float, float] | None) -> bool:
    """Tell whether scores can only be 0 or 1: all of them are, and no range other than 0 to 1 is declared."""
    return (declared is None or tuple(declared) == SHARE.range) and all(score in {0.0, 1.0} for score in scores)


@dataclass(frozen=True, slots=True)
class Score:
    """A score with an explanation for readers; a score without an explanation can be a plain float.

    Attributes:
        value: the score, a finite number.
        note: one line that explains the value.
        facts: small plain data by which reports group or count cases, such as the winner of a comparison.
        log: long plain data for readers, such as a judge's answer or a debate.
        signature: one line that states how a judge made the value, to be cited with the value; empty if no judge made
            the value.
    """

    value: float
    note: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)
    log: Sequence[Mapping[str, Any]] = ()
    signature: str = ""

    def __post_init__(self) -> None:
        _check_fields(self, note=str, facts=Mapping, signature=str, log=(Mapping,))


@dataclass(frozen=True, slots=True)
class Record:
    """The result of one case: one line of `records.jsonl`.

    Attributes:
        case: pytest's node id, equal on every worker.
        benchmark: name of the benchmark.
        sample: the sample's id.
        epoch: repetition, from 1.
        model: the model's name as the user wrote it.
        outcome: the case's outcome; `error` counts neither as a score nor as a pass.
        source: the origin of the samples as text (`shipped samples`, `head_to_tail.json`).
        declared: the place of the benchmark's declaration; empty if reading the record needs no code.
        scores: finite numbers by metric name.
        error: one message, if the outcome is `error` or `failed`; otherwise None.
        cause: the kind of error, for grouping; None if no error occurred.
        excused: the reason why a failed case does not fail the run by itself (`gate`, `epochs`, `quarantine`, `xfail`);
            otherwise None.
        notes: explanations from scorers, by metric name.
        facts: small plain data by which reports group or count cases, collected from the transcript and the scores.
        usage: the usage of all calls of the case, including the judge's and the simulator's calls.
        judge_usage: the judge's part of `usage`.
        simulator_usage: the part of `usage` that belongs to models that simulated users or tools.
        seconds: wall time of solving and scoring.
        solving_seconds: time until the answer was complete, minus the time that calls waited before they were sent.
        input: the sample's input as text.
        target: the expected answer.
        transcript: see `Transcript`; None if solving failed.
        logs: long plain data of scorers, by metric name.
        fingerprints: hashes by name, 16 hexadecimal digits each. `input` and `target` are hashes of the sample's
            fields; `model`, `judge` and `user` of names, addresses and parameters; `scorers` of scorers and versions;
            `programs` of the versions of Python and packages, if the model writes programs; `prompt` (messages and
            tools) and `params` of the first request; `requests` of all requests.
    """

    __pydantic_config__: ClassVar[Mapping[str, Any]] = STRICT_CONFIG

    case: str
    benchmark: str
    sample: str
    epoch: Annotated[int, LowerBound(1)]
    model: str
    outcome: Outcome
    tags: Mapping[str, str] = field(default_factory=dict)
    source: str = ""
    declared: str = ""
    scores: Mapping[str, float] = field(default_factory=dict)
    error: str | None = None
    cause: str | None = None
    excused: str | None = None
    notes: Mapping[str, str] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)
    usage: Usage = field(default_factory=Usage)
    judge_usage: Usage = field(default_factory=Usage)
    simulator_usage: Usage = field(default_factory=Usage)
    seconds: Amount = 0.0
    solving_seconds: Amount = 0.0
    input: str = ""
    target: Target = None
    transcript: Transcript | None = None
    logs: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)
    fingerprints: Mapping[str, str] = field(default_factory=dict)
