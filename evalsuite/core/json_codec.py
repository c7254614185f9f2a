"""Conversion of frozen dataclasses to plain JSON data and back, for files and for other processes.

Each `encode_*` returns JSON data, and each `decode_*` reads the data back; nothing is ever pickled or evaluated.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import re
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import fields
from fnmatch import fnmatchcase
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, TypeVar

from evalsuite.core.types import Completion, Message, Metric, Record, Request, TokenLogprob, ToolCall, Transcript, Usage

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler, TypeAdapter

Plain = dict[str, Any]
Read = TypeVar("Read")


DEEPEST = 100  # Maximum nesting depth of containers in a record; pydantic reads about 200 levels.


def dumps(value: Any) -> str:
    """Write compact JSON; equal data always gives equal text."""
    try:
        text = _ENCODER.encode(value)
    except (TypeError, ValueError, RecursionError):
        # A scorer may put any data into its facts; data that JSON cannot represent must not end the run.
        text = _ENCODER.encode(_make_encodable(value))
    # A model may write a lone surrogate, which cannot be encoded as UTF-8.
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def refuse_nan_or_infinity(name: str) -> NoReturn:
    """Raise ValueError for NaN or an infinity, which are not JSON; pass this to `json.loads` as `parse_constant`."""
    raise ValueError(f"{name} is not a JSON number")


def parse_json(text: str, default: Any = None) -> Any:
    """Parse JSON; return `default` for a text that is not JSON."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return default


def is_equal_json(wanted: Any, value: Any) -> bool:
    """Compare by the rules of JSON: 1 equals 1.0 but not true, and a tuple equals a list."""
    if isinstance(wanted, bool) or isinstance(value, bool):
        return wanted is value
    if isinstance(wanted, Mapping) and isinstance(value, Mapping):
        return wanted.keys() == value.keys() and all(is_equal_json(wanted[key], value[key]) for key in wanted)
    if isinstance(wanted, list | tuple) and isinstance(value, list | tuple):
        return len(wanted) == len(value) and all(map(is_equal_json, wanted, value))
    return bool(wanted == value)


def digest(value: Any) -> str:
    """Compute a fingerprint of data: 16 hexadecimal digits of the SHA-256 of its JSON."""
    return hashlib.sha256(dumps(value).encode()).hexdigest()[:16]


def _make_encodable(value: Any, outer_containers: frozenset[int] = frozenset()) -> Any:
    """Convert values and keys to JSON's types; write dots for a container that contains itself or is too deep."""
    if value is None or isinstance(value, str | int | float):
        return value
    if id(value) in outer_containers or len(outer_containers) >= DEEPEST:
        return "..."
    outer_containers |= {id(value)}
    if isinstance(value, Mapping):
        return {str(key): _make_encodable(inner, outer_containers) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_make_encodable(inner, outer_containers) for inner in value]
    return _make_encodable(_convert_to_plain(value), outer_containers)


def _convert_to_plain(value: Any) -> Any:
    """Convert a value of a type that JSON lacks; solvers and scorers may put such values into their facts and logs."""
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, AbstractSet):
        return sorted(value, key=str)
    # Numbers and arrays of numpy and similar libraries.
    tolist = None if isinstance(value, type) else getattr(value, "tolist", None)
    return tolist() if callable(tolist) else str(value)


# Created once, because `json.dumps` would create a new encoder for each call.
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), sort_keys=True, default=_convert_to_plain)


def encode_message(message: Message) -> Plain:
    """Write a message in the OpenAI chat format."""
    content = list(message.parts) if message.parts else message.content
    plain: Plain = {**message.extra, "role": message.role, "content": content}
    if message.tool_calls:
        plain["tool_calls"] = [encode_tool_call(call) for call in message.tool_calls]
    if message.tool_call_id is not None:
        plain["tool_call_id"] = message.tool_call_id
    return plain


def encode_tool_call(call: ToolCall) -> Plain:
    """Write a native function call in the OpenAI chat format."""
    function = {"name": call.name, "arguments": call.arguments}
    return {**call.extra, "id": call.id, "type": "function", "function": function}


COUNTS = ("calls", "prompt_tokens", "completion_tokens", "cost")
RARE_COUNTS = ("estimated", "cached_tokens", "cache_write_tokens", "reasoning_tokens", "unpriced")


def encode_usage(usage: Usage) -> Plain:
    """Convert usage to an object; counts in `RARE_COUNTS` are left out if they are 0."""
    rare = {name: count for name in RARE_COUNTS if (count := getattr(usage, name))}
    return rare | {name: getattr(usage, name) for name in COUNTS}


def decode_usage(plain: Mapping[str, Any]) -> Usage:
    """Convert the data from `encode_usage` back to a usage."""
    return Usage(*(plain[name] for name in COUNTS), *(plain.get(name, 0) for name in RARE_COUNTS))


def encode_request(request: Request) -> Plain:
    """Convert a request to an object; `draw` is left out if it is empty."""
    plain: Plain = {
        "model": request.model,
        "messages": [encode_message(message) for message in request.messages],
        "params": dict(request.params),
        "tools": list(request.tools),
        "base_url": request.base_url,
        "epoch": request.epoch,
    }
    if request.draw:
        plain["draw"] = request.draw
    return plain


def decode_request(plain: Mapping[str, Any]) -> Request:
    """Convert the data from `encode_request` back to a request."""
    return Request(
        plain["model"],
        tuple(Message.from_openai(message) for message in plain["messages"]),
        plain["params"],
        tuple(plain["tools"]),
        plain["base_url"],
        plain["epoch"],
        plain.get("draw", ""),
    )


def encode_completion(completion: Completion) -> Plain:
    """Convert a completion to an object; empty parts are left out."""
    plain: Plain = {
        "text": completion.text,
        "finish_reason": completion.finish_reason,
        "usage": encode_usage(completion.usage),
    }
    if completion.tool_calls:
        plain["tool_calls"] = [encode_tool_call(call) for call in completion.tool_calls]
    if completion.logprobs is not None:
        plain["logprobs"] = [[logprob.token, logprob.logprob, logprob.top] for logprob in completion.logprobs]
    further = {name: getattr(completion, name) for name in ("reasoning", "embeddings", "facts", "response", "seconds")}
    return plain | {name: value for name, value in further.items() if value}


def decode_completion(plain: Mapping[str, Any]) -> Completion:
    """Convert the data from `encode_completion` back to a completion."""
    logprobs = plain.get("logprobs")
    return Completion(
        text=plain["text"],
        tool_calls=tuple(ToolCall.from_openai(call) for call in plain.get("tool_calls", ())),
        finish_reason=plain["finish_reason"],
        usage=decode_usage(plain["usage"]),
        logprobs=None
        if logprobs is None
        else tuple(TokenLogprob(token, logprob, tuple(map(tuple, top))) for token, logprob, top in logprobs),
        embeddings=tuple(plain.get("embeddings", ())),
        **{name: plain[name] for name in ("reasoning", "facts", "response", "seconds") if name in plain},
    )


def encode_transcript(transcript: Transcript) -> Plain:
    """Convert a transcript to an object."""
    return {
        "answer": transcript.answer,
        "messages": [encode_message(message) for message in transcript.messages],
        "reasoning": transcript.reasoning,
        "events": list(transcript.events),
        "facts": dict(transcript.facts),
    }


def encode_record(record: Record) -> Plain:
    """Convert a record to an object: one line of `records.jsonl`."""
    plain: Plain = {item.name: getattr(record, item.name) for item in fields(Record)}
    usages = {name: encode_usage(plain[name]) for name in ("usage", "judge_usage", "simulator_usage")}
    return plain | usages | {"transcript": record.transcript and encode_transcript(record.transcript)}


def write_record(record: Record) -> str:
    """Write a record as a line of `records.jsonl`, with dots in place of containers that are nested too deeply."""
    plain = encode_record(record)
    line = dumps(plain)
    # Measure the depth only of a line that has enough brackets, because measuring is slow.
    is_deep = line.count("[") + line.count("{") > DEEPEST and _is_deeper_than(DEEPEST, plain)
    return dumps(_make_encodable(plain)) if is_deep else line


def _is_deeper_than(levels: int, value: Any) -> bool:
    inner = value.values() if isinstance(value, Mapping) else value if isinstance(value, list | tuple) else ()
    return levels < 0 or any(_is_deeper_than(levels - 1, each) for each in inner)


def decode_record(line: str | bytes) -> Record:
    """Read a line of `records.jsonl`; fields that a later version added are ignored."""
    return _read_and_validate_json(_make_record_reader(), line)


def parse_json_as(kind: type[Read], text: str | bytes) -> Read:
    """Read JSON as a dataclass, without converting any value."""
    reader: TypeAdapter[Read] = _make_type_adapter(kind)  # type: ignore[arg-type] # mypy: a class is hashable
    return _read_and_validate_json(reader, text)


def _read_and_validate_json(reader: TypeAdapter[Read], text: str | bytes) -> Read:
    from pydantic import ValidationError

    try:
        return reader.validate_json(text, strict=True)
    except ValidationError as error:
        problems = (
            f"{'.'.join(map(str, problem['loc'])) or 'the line'}: {problem['msg']}, not {problem['input']!r:.60}"
            for problem in error.errors(include_url=False, include_context=False)
        )
        raise ValueError("; ".join(problems)) from None


@cache
def _make_type_adapter(kind: Any) -> TypeAdapter[Any]:
    from pydantic import TypeAdapter

    return TypeAdapter(kind)


def make_record_schema() -> Plain:
    """Describe a line of `records.jsonl` as a JSON Schema, with descriptions from the types' docstrings."""
    schema = _make_record_reader().json_schema()
    for record_type in (Record, Transcript, Usage):
        plain = schema["$defs"].get(record_type.__name__, schema)
        head, _, attributes = inspect.cleandoc(record_type.__doc__ or "").partition("\n\nAttributes:\n")
        plain["description"] = head.partition("\n")[0]
        for name, text in re.findall(r"^    (\w+): (.*(?:\n {8}.*)*)", attributes, re.MULTILINE):
            plain["properties"][name]["description"] = " ".join(text.split())
    schema["required"] = [name for name in schema["properties"] if name in {*schema["required"], *WRITTEN}]
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": "urn:evalsuite:record:1"} | schema


@cache
def _make_record_reader() -> TypeAdapter[Record]:
    from pydantic import GetPydanticSchema, TypeAdapter

    return TypeAdapter(Annotated[Record, GetPydanticSchema(_make_schema_requiring_usage)])


WRITTEN = ("tags", "scores", "error", "usage", "seconds")
"""Fields that every line has, although `Record` declares defaults for them."""


def _make_schema_requiring_usage(source: Any, handler: GetCoreSchemaHandler) -> Any:
    """Return pydantic's schema of `Record`, changed so that `usage` is required."""
    schema = handler(source)
    for argument in handler.resolve_ref_schema(schema)["schema"]["fields"]:
        if argument["name"] == "usage":  # Require usage, because a record without usage would seem free.
            argument["schema"] = argument["schema"]["schema"]
    return schema


def decode_metric(plain: Mapping[str, Any]) -> Metric:
    """Read a metric's declaration from its fields as JSON data."""
    return Metric(tuple(plain["range"]) if plain["range"] else None, plain["better"])


def find_declared_range(declared: Mapping[str, Plain], score: str) -> tuple[float, float] | None:
    """Find a score's range among encoded metrics, by its name or the longest matching pattern; None if it has none."""
    matching = (pattern for pattern in declared if fnmatchcase(score, pattern))
    name = score if score in declared else max(matching, key=len, default="")
    low_and_high = declared.get(name, {}).get("range")
    return tuple(low_and_high) if low_and_high else None
