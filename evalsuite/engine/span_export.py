"""`--otel`: exports a run as OpenTelemetry spans, one trace per case, by the GenAI semantic conventions.

Each case is a span with an event `gen_ai.evaluation.result` per score; each of its answered model calls is a child
span. Prompts and answers are not exported.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from evalsuite.applications.spans import require_opentelemetry
from evalsuite.core.errors import SettingsError, write_count
from evalsuite.core.json_codec import decode_record
from evalsuite.gateway.concealment import remove_epoch_mark

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.sdk.trace.export import SpanExportResult

    from evalsuite.core.types import Completion, Request, Usage

ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
LONGEST_TEXT = 1000  # Maximum characters of an explanation or an error.
NANOSECONDS = 1e9


class RunSpanExporter:
    """Exports the spans of one run in the background; an OpenTelemetry collector that fails does not affect the run.

    Args:
        run: the run's name, by which its traces differ from those of other runs.

    Raises:
        SettingsError: the packages or the endpoint are missing.
    """

    def __init__(self, run: str) -> None:
        require_opentelemetry("--otel")
        if not any(map(os.environ.get, ENDPOINTS)):
            raise SettingsError(
                f"--otel: no address to send spans to; set {ENDPOINTS[1]}, for example to http://127.0.0.1:4318"
            )
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

        class CountingExporter(SpanExporter):
            """Exports spans, and counts the spans that the collector did not accept."""

            lost = 0

            def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
                self.lost += len(spans)
                result: SpanExportResult = sender.export(spans)
                self.lost -= len(spans) if result is SpanExportResult.SUCCESS else 0
                return result

            def shutdown(self) -> None:
                sender.shutdown()

        sender: Any = OTLPSpanExporter()
        self._exporter, self._run = CountingExporter(), run
        self._processor: Any = BatchSpanProcessor(self._exporter, max_queue_size=2**16)
        self._resource = Resource.create({"service.name": "evalsuite", "evalsuite.run": run})
        self._calls = 0

    def export_case(self, line: str) -> None:
        record = decode_record(line)
        key = "gen_ai.evaluation.explanation"
        notes = {name: {key: note[:LONGEST_TEXT]} for name, note in record.notes.items() if note}
        events = [
            {"gen_ai.evaluation.name": name, "gen_ai.evaluation.score.value": value, **notes.get(name, {})}
            for name, value in record.scores.items()
        ]
        status = "pass" if record.outcome == "passed" else "fail"
        attributes = {
            "test.case.name": record.case,
            # The conventions have no status for a skipped test.
            **({"test.case.result.status": status} if record.outcome != "skipped" else {}),
            "test.suite.name": record.benchmark,
            "evalsuite.sample": record.sample,
            "evalsuite.outcome": record.outcome,
            "gen_ai.request.model": record.model,
            **_make_usage_attributes(record.usage),
            **({"error.type": record.cause} if record.cause else {}),
        }
        error = (record.error or "")[:LONGEST_TEXT] if record.outcome == "error" else None
        self._export_span(f"case {record.benchmark}", record.case, "", record.seconds, attributes, events, error)

    def export_call(self, request: Request, completion: Completion) -> None:
        """Export a model call as a span; call this right after the answer, because the span ends now."""
        self._calls += 1
        operation = "embeddings" if request.params.get("api") == "embeddings" else "chat"
        kind, colon, _ = request.model.partition(":")
        attributes = {
            "gen_ai.operation.name": operation,
            "gen_ai.provider.name": kind if colon else "openai",
            "gen_ai.request.model": request.model,
            **{
                f"gen_ai.request.{name}": value
                for name, value in request.params.items()
                if name in {"temperature", "top_p", "max_tokens", "seed"} and isinstance(value, int | float)
            },
            "gen_ai.response.finish_reasons": (completion.finish_reason,),
            **_make_usage_attributes(completion.usage),
        }
        case = remove_epoch_mark(request.draw.rpartition(" #")[0])
        self._export_span(f"{operation} {request.model}", case, f"call {self._calls}", completion.seconds, attributes)

    def _export_span(
        self,
        name: str,
        case: str,
        part: str,
        seconds: float,
        attributes: Mapping[str, Any],
        events: Sequence[Mapping[str, Any]] = (),
        error: str | None = None,
    ) -> None:
        """Export a span that ends now; its ids are hashes of the names of run, case and part."""
        from opentelemetry.sdk.trace import Event, ReadableSpan
        from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags

        def make_span_context(suffix: str) -> SpanContext:
            texts = f"{self._run}\n{case}", f"{self._run}\n{case}\n{suffix}"
            trace, span = (sha256(text.encode("utf-8", "replace")).digest() for text in texts)
            numbers = int.from_bytes(trace[:16]), int.from_bytes(span[:8])
            return SpanContext(*numbers, is_remote=False, trace_flags=TraceFlags(TraceFlags.SAMPLED))

        end = time.time_ns()
        self._processor.on_end(
            ReadableSpan(
                name,
                make_span_context(part),
                make_span_context("") if part and case else None,
                self._resource,
                attributes,
                [Event("gen_ai.evaluation.result", event, end) for event in events],
                kind=SpanKind.CLIENT if part else SpanKind.INTERNAL,
                status=Status() if error is None else Status(StatusCode.ERROR, error),
                start_time=end - round(seconds * NANOSECONDS),
                end_time=end,
            )
        )

    def flush_spans(self) -> str:
        """Send the remaining spans; return a message for the terminal, or "" if the collector accepted all."""
        self._processor.shutdown()
        lost = write_count(self._exporter.lost, "span")
        message = f"--otel: the collector did not accept {lost}; is {ENDPOINTS[1]} right?"
        return message if self._exporter.lost else ""


def _make_usage_attributes(usage: Usage) -> dict[str, Any]:
    return {
        "gen_ai.usage.input_tokens": usage.prompt_tokens,
        "gen_ai.usage.output_tokens": usage.completion_tokens,
        # A cost without a known price would count as free in a sum.
        **({} if usage.unpriced else {"evalsuite.cost": usage.cost}),
    }
