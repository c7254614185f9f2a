"""Reads OpenTelemetry spans with attributes of OpenTelemetry's GenAI conventions, OpenInference or LangSmith.

The same code reads recorded traces that are scored later, and spans that an application under test exports during a
run, by OTLP over HTTP or within the process.
"""

import json
import threading
from base64 import b64decode
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

from evalsuite.applications.call_log import LoggedCall, TraceSpan
from evalsuite.applications.chat_api import BadRequest, HttpAnswer, make_json_answer
from evalsuite.core.errors import SettingsError, SolverError
from evalsuite.core.json_codec import refuse_nan_or_infinity
from evalsuite.core.types import Completion, Message, ToolCall, Usage

SPAN_ERRORS = (BadRequest, KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError, RecursionError)
"""Exceptions that reading a malformed trace may raise."""
KEPT = ("gen_ai.", "llm.", "openinference.", "retrieval.", "langsmith.", "request_data", "response_data", "tool.name")
"""Prefixes of the attributes that are read; other attributes, such as HTTP headers, are dropped."""
OPERATIONS = {"agent": "invoke_agent", "llm": "chat", "tool": "execute_tool", "retriever": "retrieval"}
"""GenAI operations by the kinds of spans of OpenInference and LangSmith."""
NAMES = {"tool": ("gen_ai.tool.name", "tool.name"), "agent": ("gen_ai.agent.name",)}
EXECUTION_VALUES = {"execute_tool": ("input.value", "output.", "tool.parameters"), "invoke_agent": ("output.",)}
"""Attributes that hold arguments and results, by operation; spans of other operations repeat messages in them."""
ROLES = {"tool-call": "assistant", "tool-response": "user"}
"""Roles that smolagents has in its own messages, and the roles that it sends to a model instead."""
LONGEST_NAME = 200  # Maximum characters of a name in a span, such as the name of its operation, tool or agent.
LATEST = 2**64  # Upper bound of times, in nanoseconds since 1970 (OTLP's unit); later times are refused.


def list_spans(item: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield each span of one OTLP export as JSON data, which `read_span` can read."""
    for resource in item["resourceSpans"]:
        for scope in resource.get("scopeSpans", ()):
            for span in scope.get("spans", ()):
                begin, end = int(span.get("startTimeUnixNano", 0)), int(span.get("endTimeUnixNano", 0))
                if not 0 <= begin < LATEST or end >= LATEST:
                    raise ValueError(f"times from {begin:.3g} to {end:.3g}")
                attributes = {
                    str(pair["key"]): _decode_attribute_value(pair.get("value")) for pair in span.get("attributes", ())
                }
                kept = KEPT + EXECUTION_VALUES.get(_find_operation_name(attributes), ())
                yield {
                    "trace": str(span["traceId"]),
                    "id": str(span.get("spanId", "")),
                    "parent": str(span.get("parentSpanId", "")),
                    "name": str(span.get("name", ""))[:LONGEST_NAME],
                    "begin": begin,
                    "seconds": max(0, end - begin) / 1e9,
                    "failed": (span.get("status") or {}).get("code") in {2, "STATUS_CODE_ERROR"},
                    "attributes": {name: value for name, value in attributes.items() if name.startswith(kept)},
                }


def read_span(plain: Mapping[str, Any]) -> TraceSpan:
    """Convert one span from the JSON data that `list_spans` yields."""
    attributes = plain["attributes"]
    operation = _find_operation_name(attributes)
    event = {
        "kind": "span",
        "operation": operation[:LONGEST_NAME],
        **{name: plain[name] for name in ("name", "id", "parent", "seconds", "failed")},
    }
    for field, names in NAMES.items():
        found = [str(attributes[name])[:LONGEST_NAME] for name in names if name in attributes]
        event |= {field: found[0]} if found else {}
    is_text = attributes.get("output.mime_type", "text/plain") == "text/plain"
    if documents := list(_list_documents(attributes)):
        event["documents"] = documents
    return TraceSpan(
        plain["begin"],
        event,
        _convert_model_call(attributes, operation, plain["seconds"]),
        _read_tool_execution(attributes) if operation == "execute_tool" and "tool" in event else None,
        attributes.get("output.value") if operation == "invoke_agent" and is_text else None,
    )


def _find_operation_name(attributes: Mapping[str, Any]) -> str:
    kind = str(attributes.get("openinference.span.kind") or attributes.get("langsmith.span.kind") or "").lower()
    return str(attributes.get("gen_ai.operation.name") or OPERATIONS.get(kind, kind))


def _read_tool_execution(attributes: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
    """Return the arguments and result of a tool's span; the arguments are {} if the span has no JSON object."""
    given = attributes.get("gen_ai.tool.call.arguments", attributes.get("input.value"))
    result = attributes.get("gen_ai.tool.call.result", attributes.get("output.value", ""))
    with suppress(ValueError):
        given = _parse_json_if_text(given)
    if not isinstance(given, dict):
        given = {}
    if {"args", "kwargs"} <= given.keys():
        # Convert `args` and `kwargs`, which the instrumentation of smolagents stores, to named arguments.
        names = _parse_json_if_text(attributes.get("tool.parameters") or "{}")
        given = {**dict(zip(names, given["args"], strict=False)), **given["kwargs"]}
    return given, _encode_json_unless_text(result)


def _list_documents(attributes: Mapping[str, Any]) -> Iterator[str]:
    """List the texts of retrieved documents, or the ids of documents without text."""
    numbered = {
        int(name.split(".")[2]): str(value)
        for name, value in attributes.items()
        if name.startswith("retrieval.documents.") and name.endswith(".document.content")
    }
    yield from (text for _, text in sorted(numbered.items()))
    for document in _parse_json_if_text(attributes.get("gen_ai.retrieval.documents")) or ():
        yield str(document.get("content") or document.get("id") or "")


def _parse_json_if_text(value: Any) -> Any:
    return json.loads(value) if isinstance(value, str) else value


def _decode_attribute_value(value: Any) -> Any:
    """Decode an attribute's value from OTLP's JSON; return None if it has no value."""
    match value:
        case {"intValue": number}:
            return int(number)
        case {"arrayValue": {"values": list(values)}}:
            return [_decode_attribute_value(one) for one in values]
        case {"kvlistValue": {"values": list(pairs)}}:
            return {str(pair["key"]): _decode_attribute_value(pair.get("value")) for pair in pairs}
        case dict() if value:
            return next(iter(value.values()))
    return None


def _convert_model_call(attributes: Mapping[str, Any], operation: str, seconds: float) -> LoggedCall | None:
    """Convert the attributes of a model call's span; return None if the span is not a model call."""
    # Skip agents' spans, because they may repeat the messages of their model calls.
    if operation in {"invoke_agent", "create_agent", "execute_tool"}:
        return None
    if "gen_ai.output.messages" in attributes:
        sent = [
            *_read_genai_messages(attributes, "gen_ai.system_instructions"),
            *_read_genai_messages(attributes, "gen_ai.input.messages"),
        ]
        said = list(_read_genai_messages(attributes, "gen_ai.output.messages"))
    else:
        sent, said = (_read_openinference_messages(attributes, f"llm.{side}_messages.") for side in ("input", "output"))
    if not said:
        return None
    names = (
        ("gen_ai.usage.input_tokens", "llm.token_count.prompt"),
        ("gen_ai.usage.output_tokens", "llm.token_count.completion"),
    )
    read, written = (next((int(attributes[name]) for name in pair if name in attributes), 0) for pair in names)
    if min(read, written) < 0:
        raise ValueError(f"{read} and {written} tokens")
    model = str(attributes.get("gen_ai.response.model") or attributes.get("llm.model_name") or "")
    usage = Usage(calls=1, prompt_tokens=read, completion_tokens=written, unpriced=1)
    completion = Completion(said[-1].content, tool_calls=said[-1].tool_calls, usage=usage)
    return LoggedCall(model, tuple(sent), completion, seconds)


def _read_genai_messages(attributes: Mapping[str, Any], name: str) -> Iterator[Message]:
    """Read the messages of one attribute by the GenAI conventions; each message is a list of parts."""
    items = _parse_json_if_text(attributes.get(name) or [])
    if name.endswith("instructions"):
        items = [{"role": "system", "parts": items}] if items else []
    for item in items:
        parts = item["parts"]
        text = "\n".join(str(part["content"]) for part in parts if part.get("type") == "text")
        calls = tuple(
            ToolCall(str(part.get("id") or ""), part["name"], _encode_json_unless_text(part.get("arguments") or {}))
            for part in parts
            if part.get("type") == "tool_call"
        )
        results = [part for part in parts if part.get("type") == "tool_call_response"]
        for part in results:
            result = part.get("response", part.get("result", ""))
            yield Message("tool", _encode_json_unless_text(result), tool_call_id=str(part.get("id") or ""))
        if text or calls or not results:
            yield Message(item["role"], text, calls)


def _encode_json_unless_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _read_openinference_messages(attributes: Mapping[str, Any], prefix: str) -> list[Message]:
    """Read OpenInference's messages: one attribute per field, with the message's number in its name."""
    messages: dict[int, dict[str, Any]] = {}
    calls: defaultdict[int, defaultdict[int, dict[str, str]]] = defaultdict(partial(defaultdict, dict))
    for name, value in attributes.items():
        if name.startswith(prefix):
            number, _, rest = name.removeprefix(prefix).partition(".message.")
            made, _, field = rest.removeprefix("tool_calls.").partition(".tool_call.")
            messages.setdefault(int(number), {})
            if field:
                calls[int(number)][int(made)][field] = _encode_json_unless_text(value)
            else:
                messages[int(number)][rest] = value
    read: list[Message] = []
    for place, message in sorted(messages.items()):
        role = message.get("role", "user")
        text = str(message.get("content") or "")
        if not text:
            # Each text of a message with several contents is an attribute, with the content's number in its name.
            names = [name for name in message if name.endswith(".message_content.text")]
            text = "\n".join(str(message[name]) for name in sorted(names, key=lambda name: int(name.split(".")[1])))
        requested = tuple(
            ToolCall(call.get("id", ""), call.get("function.name", ""), call.get("function.arguments", "{}"))
            for _, call in sorted(calls[place].items())
        )
        if role == "tool-call" and read and read[-1].role == "assistant":
            # Join a text and its tool calls, because smolagents sends them to the model as one message.
            read[-1] = Message("assistant", f"{read[-1].content}\n{text}".lstrip("\n"))
        else:
            read.append(Message(ROLES.get(role, role), text, requested, message.get("tool_call_id")))
    return read


LARGEST_TRACE = 32 * 2**20  # Maximum bytes of spans that one case may export.
MOST_SPANS = 10_000  # Maximum spans of one case.


def require_opentelemetry(feature: str) -> None:
    """Raise `SettingsError` if the packages of the extra `otel` are missing."""
    try:
        import opentelemetry.exporter.otlp.proto.common
        import opentelemetry.sdk  # noqa: F401 - only whether it is there
    except ImportError as error:
        message = f"{feature} needs the packages of OpenTelemetry: pip install 'evalsuite[otel]'"
        raise SettingsError(message) from error


class SpanCollector:
    """Collects the spans that an application exports while it answers one question."""

    def __init__(self, trace: str) -> None:
        self.trace = trace  # The trace id (32 hexadecimal digits) of spans that end in this process.
        self._spans: dict[tuple[str, str], dict[str, Any]] = {}
        self._size = 0
        self._refusal = ""
        self._changing = threading.Lock()

    def receive_export(self, content: bytes) -> HttpAnswer:
        """Receive an OTLP export in JSON or protobuf; raise BadRequest if it is malformed, or exceeds a limit."""
        with self._changing:
            try:
                self._size += len(content)
                if self._size > LARGEST_TRACE:
                    raise ValueError(f"more than {LARGEST_TRACE >> 20} MiB for one question")
                is_text = content.lstrip()[:1] == b"{"
                if is_text:
                    export = json.loads(content, parse_constant=refuse_nan_or_infinity)
                else:
                    export = _decode_protobuf(content)
                for span in list_spans({"resourceSpans": (), **export}):
                    read_span(span)
                    self._spans[span["trace"], span["id"]] = span
                if len(self._spans) > MOST_SPANS:
                    raise ValueError(f"more than {MOST_SPANS:,} spans for one question")
            except SPAN_ERRORS as error:
                words = f"{type(error).__name__}: {error}"[:200]
                self._refusal = self._refusal or f"the application's spans cannot be read: {words}"
                raise BadRequest(self._refusal) from error
        return make_json_answer({}) if is_text else HttpAnswer(200, b"", "application/x-protobuf")

    async def get_spans(self) -> list[dict[str, Any]]:
        """Return the spans as JSON data for `read_span`; raise SolverError if an export was refused."""
        if self._refusal:
            raise SolverError(self._refusal)
        return list(self._spans.values())

    def make_environment_variables(self, base_url: str) -> dict[str, str]:
        """Return environment variables that make the exporters of a process send their spans to a case's endpoint."""
        return {
            "OTEL_EXPORTER_OTLP_ENDPOINT": base_url.removesuffix("/v1"),
            "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": f"{base_url}/traces",
            "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
            "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "http/protobuf",
            "OTEL_TRACES_EXPORTER": "otlp",
            "OTEL_METRICS_EXPORTER": "none",
            "OTEL_LOGS_EXPORTER": "none",
            "TRACEPARENT": f"00-{self.trace}-{self.trace[:16]}-01",
        }

    @contextmanager
    def collect_from_process(self) -> Iterator[None]:
        """Make the trace current in this context, and collect its spans that end in this process."""
        from opentelemetry.context import attach, detach
        from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags, set_span_in_context

        _patch_span_end()
        number = int(self.trace, 16)
        context = SpanContext(number, int(self.trace[:16], 16), is_remote=True, trace_flags=TraceFlags(1))
        _collectors[number] = self
        token = attach(set_span_in_context(NonRecordingSpan(context)))
        try:
            yield
        finally:
            detach(token)
            del _collectors[number]


_collectors: dict[int, SpanCollector] = {}  # The collectors of this process by their trace ids.


def _patch_span_end() -> None:
    """Wrap the SDK's `Span.end` once; unlike a span processor, this covers all tracer providers of an application."""
    from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
    from opentelemetry.sdk.trace import Span

    if Span.end.__module__ == __name__:
        return
    end_span = Span.end

    def end_and_collect_span(self: Span, end_time: int | None = None) -> None:
        end_span(self, end_time)
        collector = _collectors.get(self.get_span_context().trace_id)
        if collector is not None:
            # Suppress the error here, because the collector keeps it and raises it after the application has answered.
            with suppress(BadRequest):
                collector.receive_export(encode_spans([self]).SerializeToString())

    Span.end = end_and_collect_span  # type: ignore[method-assign]


def _decode_protobuf(content: bytes) -> dict[str, Any]:
    from google.protobuf.json_format import MessageToDict  # type: ignore[import-untyped]
    from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    try:
        export: dict[str, Any] = MessageToDict(ExportTraceServiceRequest.FromString(content))
    except DecodeError as error:
        raise ValueError("it is neither JSON nor protobuf of OTLP") from error
    for resource in export.get("resourceSpans", ()):
        for scope in resource.get("scopeSpans", ()):
            for span in scope.get("spans", ()):
                # OTLP's own JSON has ids in hexadecimal, but JSON made from protobuf has them in base64.
                span |= {name: b64decode(span[name]).hex() for name in IDS if name in span}
    return export


IDS = ("traceId", "spanId", "parentSpanId")
