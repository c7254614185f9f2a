"""Applications that report OpenTelemetry spans: each case's transcript has its own, and a replay has them again."""

from __future__ import annotations

import asyncio
import json
import sys
import threading
from typing import TYPE_CHECKING, Any

import pytest

from evalsuite.applications import spans
from evalsuite.applications.case_api import CaseApi
from evalsuite.applications.case_model import CaseModel
from evalsuite.applications.chat_api import BadRequest
from evalsuite.applications.spans import SpanCollector
from evalsuite.core.errors import SettingsError, SolverError
from evalsuite.solvers import application

if TYPE_CHECKING:
    from tests.plugin.conftest import Suite

AGENT = """
import threading

from opentelemetry.sdk.trace import TracerProvider
from pydantic_ai import Agent
from pydantic_ai.models.instrumented import InstrumentationSettings
from pydantic_ai.models.test import TestModel

from evalsuite import Sample, benchmark, contains
from evalsuite.solvers import application

PROVIDER = TracerProvider()
TRACER = PROVIDER.get_tracer("own")


async def answer(question):
    agent = Agent(TestModel(custom_output_text=question), name="guide")
    agent.instrument = InstrumentationSettings(tracer_provider=PROVIDER)

    @agent.tool_plain
    def weather(city: str) -> str:
        with TRACER.start_as_current_span("look up", attributes={"gen_ai.operation.name": "retrieval"}) as span:
            span.set_attribute("gen_ai.retrieval.documents", '[{"id": "d1", "content": "sunny"}]')
            span.set_attribute("http.request.header.authorization", "Bearer secret-of-the-agent")
        return f"sunny in {city}"

    return (await agent.run(question)).output


SAMPLES = [Sample(id=name, input=name, target=name) for name in ("Oslo", "Rome", "Bern")]


@benchmark("guide", SAMPLES, solver=application(answer, spans=True), scorers=[contains()])
def test_guide(scores):
    assert scores["contains"] == 1.0
"""

PROGRAM = """
import json, sys, urllib.request

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
message = lambda role, text: [{"role": role, "parts": [{"type": "text", "content": text}]}]
with provider.get_tracer("own").start_as_current_span("chat") as span:
    span.set_attribute("gen_ai.operation.name", "chat")
    span.set_attribute("gen_ai.input.messages", json.dumps(message("user", "Hi")))
    span.set_attribute("gen_ai.output.messages", json.dumps(message("assistant", "Ho")))
    span.set_attribute("gen_ai.usage.input_tokens", 7)
provider.shutdown()
print(sys.stdin.read())
"""

PROGRAM_CASES = """
import sys
from evalsuite import Sample, benchmark, contains
from evalsuite.solvers import application

PROGRAM = application([sys.executable, "program.py"], spans=True)

@benchmark("program", [Sample(id="a", input="Hi", target="Hi")], solver=PROGRAM, scorers=[contains()])
def test_program(scores):
    assert scores["contains"] == 1.0
"""


def spans_of(record: dict[str, Any]) -> list[dict[str, Any]]:
    return [event for event in record["transcript"]["events"] if event["kind"] == "span"]


def test_an_instrumented_function_yields_its_spans_and_a_replay_has_them_again(suite: Suite) -> None:
    pytest.importorskip("pydantic_ai")
    (suite.path / "test_capitals.py").write_text(AGENT, "utf-8")
    suite.run("--run=first").assert_outcomes(passed=3)
    suite.run("--replay=first", "--run=again").assert_outcomes(passed=3)
    first = suite.records("first")
    for record in first:
        spans = spans_of(record)
        agent, call, tool, found, last = spans
        assert [span["operation"] for span in spans] == [*("invoke_agent", "chat", "execute_tool", "retrieval", "chat")]
        assert (agent["agent"], tool["tool"], found["documents"]) == ("guide", "weather", ["sunny"])
        assert (found["parent"], call["parent"], last["parent"]) == (tool["id"], agent["id"], agent["id"])
        assert agent["begin"] == 0 <= call["begin"] <= tool["begin"] <= found["begin"] <= last["begin"]
        # The model calls did not pass the gateway; the transcript is made from the spans.
        turn, made, said = (event for event in record["transcript"]["events"] if event["kind"] != "span")
        assert (made["tool"], made["observation"], said["thought"]) == ("weather", "sunny in a", record["sample"])
        assert turn["usage"]["prompt_tokens"] > 0
        assert record["transcript"]["messages"][0]["content"] == record["sample"]
    assert [record["transcript"] for record in suite.records("again")] == [record["transcript"] for record in first]
    assert b"secret-of-the-agent" not in (suite.path / "reports" / "first" / "journal.sqlite").read_bytes()


def test_a_program_exports_its_spans_by_otlp(suite: Suite) -> None:
    (suite.path / "program.py").write_text(PROGRAM, "utf-8")
    (suite.path / "test_capitals.py").write_text(PROGRAM_CASES, "utf-8")
    suite.run().assert_outcomes(passed=1)
    (record,) = suite.records()
    turn, span = record["transcript"]["events"]
    assert (turn["thought"], turn["usage"]["prompt_tokens"], span["name"]) == ("Ho", 7, "chat")


@pytest.mark.parametrize("content", ["{", "['resourceSpans']", '{"resourceSpans": [{"scopeSpans": 3}]}', "\\xff"])
def test_spans_that_cannot_be_read_are_the_cases_error(suite: Suite, content: str) -> None:
    program = (
        "import os, urllib.request, urllib.error\n"
        "address = os.environ['OTEL_EXPORTER_OTLP_ENDPOINT'] + '/v1/traces'\n"
        f'try: urllib.request.urlopen(address, data=b"""{content}""")\n'
        "except urllib.error.HTTPError as error: print('Hi', error.code)\n"
    )
    (suite.path / "program.py").write_text(program, "utf-8")
    (suite.path / "test_capitals.py").write_text(PROGRAM_CASES, "utf-8")
    result = suite.run()
    (record,) = suite.records()
    assert (record["outcome"], record["error"].count("the application's spans cannot be read")) == ("error", 1)
    assert "Traceback" not in result.stdout.str()


def one_span(**more: Any) -> dict[str, Any]:
    return {"resourceSpans": [{"scopeSpans": [{"spans": [{"traceId": "t", **more}]}]}]}


def attributes(**named: Any) -> list[dict[str, Any]]:
    return [{"key": name.replace("__", "."), "value": value} for name, value in named.items()]


SAID = '[{"role": "assistant", "parts": []}]'


@pytest.mark.parametrize(
    ("export", "words"),
    [
        (one_span(startTimeUnixNano="-1"), "times from -1"),
        (one_span(endTimeUnixNano=2**80), "times from 0"),
        (one_span(startTimeUnixNano="9" * 5000), "ValueError"),
        (one_span(status=[]) | {"resourceSpans": 7}, "TypeError"),
        (
            one_span(
                attributes=attributes(
                    gen_ai__output__messages={"stringValue": SAID}, gen_ai__usage__input_tokens={"intValue": "-5"}
                )
            ),
            "-5 and 0 tokens",
        ),
        (one_span(attributes=attributes(gen_ai__output__messages={"stringValue": "["})), "JSONDecodeError"),
        (one_span(attributes=attributes(gen_ai__x={"doubleValue": float("nan")})), "NaN is not a JSON number"),
    ],
)
def test_a_hostile_export_is_refused_with_one_message(export: Any, words: str) -> None:
    collector = SpanCollector("1" * 32)
    with pytest.raises(BadRequest, match=words):
        collector.receive_export(json.dumps(export).encode())
    with pytest.raises(SolverError, match=words):
        asyncio.run(collector.get_spans())


def test_nested_and_enormous_exports_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(BadRequest, match="RecursionError"):
        SpanCollector("1" * 32).receive_export(b'{"a":' * 100_000)
    with pytest.raises(BadRequest, match="more than 32 MiB"):
        SpanCollector("1" * 32).receive_export(b" " * (spans.LARGEST_TRACE + 1))
    monkeypatch.setattr(spans, "MOST_SPANS", 1)
    collector = SpanCollector("1" * 32)
    collector.receive_export(json.dumps(one_span(spanId="a")).encode())
    collector.receive_export(json.dumps(one_span(spanId="a")).encode())
    with pytest.raises(BadRequest, match="more than 1 spans"):
        collector.receive_export(json.dumps(one_span(spanId="b")).encode())


def test_spans_of_other_threads_and_traces_find_their_collector() -> None:
    from opentelemetry import context
    from opentelemetry.sdk.trace import TracerProvider

    tracer = TracerProvider().get_tracer("own")
    with tracer.start_as_current_span("outside"):
        pass
    collector = SpanCollector("1" * 32)
    with collector.collect_from_process():
        here = context.get_current()
        thread = threading.Thread(target=lambda: tracer.start_span("thread", context=here).end())
        thread.start()
        thread.join()
        tracer.start_span("another trace", context=context.Context()).end()
        # A span that cannot be read must not break the application; the case fails in the end.
        tracer.start_span("bad", attributes={"gen_ai.output.messages": "["}).end()
    with pytest.raises(SolverError, match="cannot be read"):
        asyncio.run(collector.get_spans())
    assert [span["name"] for span in collector._spans.values()] == ["thread"]


def test_an_endpoint_without_the_switch_takes_no_spans() -> None:
    api = CaseApi(CaseModel.__new__(CaseModel))
    assert asyncio.run(api.answer_request("POST", "/traces", b"{}")).status == 404


def test_the_switch_is_refused_where_it_cannot_work(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SettingsError, match="a service has its own exporter"):
        application(url="http://127.0.0.1:1/ask", spans=True)
    for missing in ("opentelemetry.exporter.otlp.proto.common", "opentelemetry.sdk"):
        monkeypatch.setitem(sys.modules, missing, None)
        with pytest.raises(SettingsError, match=r"pip install 'evalsuite\[otel\]'"):
            application("true", spans=True)
