"""Receives the spans that an application under test exports, by OTLP over HTTP or within the process."""

from __future__ import annotations

import json
import threading
from base64 import b64decode
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from typing import Any

from evalsuite.applications.chat_api import BadRequest, HttpAnswer, make_json_answer
from evalsuite.applications.spans import SPAN_ERRORS, list_spans, read_span
from evalsuite.core.errors import SettingsError, SolverError
from evalsuite.core.json_codec import refuse_nan_or_infinity

LARGEST_TRACE = 32 * 2**20  # Maximum bytes of spans that one case may export.
MOST_SPANS = 10_000  # Maximum spans of one case.
OPEN_TELEMETRY = "opentelemetry.exporter.otlp.proto.common"


def require_opentelemetry(feature: str) -> None:
    """Raise `SettingsError` if the packages of the extra `otel` are missing."""
    try:
        is_there = find_spec(OPEN_TELEMETRY) is not None and find_spec("opentelemetry.sdk") is not None
    except ModuleNotFoundError:
        is_there = False
    if not is_there:
        raise SettingsError(f"{feature} needs the packages of OpenTelemetry: pip install 'evalsuite[otel]'")


class SpanCollector:
    """Collects the spans that an application exports while it answers one question.

    Args:
        trace: the trace id (32 hexadecimal digits) of spans that end in this process.
    """

    def __init__(self, trace: str) -> None:
        self.trace = trace
        self._spans: dict[tuple[str, str], dict[str, Any]] = {}
        self._size = 0
        self._refusal = ""
        self._changing = threading.Lock()

    def receive_export(self, content: bytes) -> HttpAnswer:
        """Receive one OTLP export of spans, in JSON or protobuf.

        Raises:
            BadRequest: the export is malformed, or the case's exports exceed a limit.
        """
        with self._changing:
            try:
                is_text = self._add_exported_spans(content)
            except SPAN_ERRORS as error:
                words = f"{type(error).__name__}: {error}"[:200]
                self._refusal = self._refusal or f"the application's spans cannot be read: {words}"
                raise BadRequest(self._refusal) from error
        return make_json_answer({}) if is_text else HttpAnswer(200, (), "application/x-protobuf")

    def _add_exported_spans(self, content: bytes) -> bool:
        """Add an export's spans; return True for an export in JSON, False for one in protobuf."""
        self._size += len(content)
        if self._size > LARGEST_TRACE:
            raise ValueError(f"more than {LARGEST_TRACE >> 20} MiB for one question")
        is_text = content.lstrip()[:1] == b"{"
        export = json.loads(content, parse_constant=refuse_nan_or_infinity) if is_text else _decode_protobuf(content)
        for span in list_spans({"resourceSpans": (), **export}):
            read_span(span)
            self._spans[span["trace"], span["id"]] = span
        if len(self._spans) > MOST_SPANS:
            raise ValueError(f"more than {MOST_SPANS:,} spans for one question")
        return is_text

    async def get_spans(self) -> list[dict[str, Any]]:
        """Return the collected spans as JSON data for `read_span`.

        Raises:
            SolverError: an export was refused, so that the spans are incomplete.
        """
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
