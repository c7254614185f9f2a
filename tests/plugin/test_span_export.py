"""`--otel`: a collector receives the spans of cases, calls and scores."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import TYPE_CHECKING, Any

import pytest
from aiohttp import web

from evalsuite.applications.spans import SpanCollector
from evalsuite.engine.span_export import ENDPOINTS, RunSpanExporter

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.plugin.conftest import Suite

JUDGED = """
from evalsuite import Sample, benchmark, exact_match, generate
from evalsuite.judges import single

def refuse(sample, model):
    raise ValueError("no luck")

SAMPLES = [Sample(id="a", input="Paris", target="Paris")]

@benchmark("judged", SAMPLES, solver=generate(temperature=0.5), scorers=[exact_match(), single()], epochs=2)
def test_judged(scores):
    pass

@benchmark("broken", SAMPLES, solver=refuse, scorers=[exact_match()])
def test_broken(scores):
    pass
"""
APP = """
def echo(messages):
    return "Paris"

def judge(messages):
    return "quality: 7"
"""


class Collector:
    """A loopback server that reads spans by the package's own receiver."""

    def __init__(self) -> None:
        self.received = SpanCollector("1" * 32)
        self.bodies: list[bytes] = []
        self.status = 200
        self.loop = asyncio.new_event_loop()
        self.url = ""

    async def take(self, request: web.Request) -> web.Response:
        self.bodies.append(await request.read())
        answer = self.received.receive_export(self.bodies[-1])
        return web.Response(status=self.status, body=answer.body)

    async def start(self) -> web.AppRunner:
        made = web.Application()
        made.router.add_post("/v1/traces", self.take)
        runner = web.AppRunner(made, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        return runner

    @property
    def spans(self) -> list[dict[str, Any]]:
        return list(self.received._spans.values())

    @property
    def evaluations(self) -> dict[str, float]:
        """The scores in the events of all spans."""
        from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

        exports = [ExportTraceServiceRequest.FromString(body) for body in self.bodies]
        spans = [
            span
            for export in exports
            for resource in export.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]
        found = {}
        for event in (event for span in spans for event in span.events):
            assert event.name == "gen_ai.evaluation.result"
            values = {pair.key: pair.value for pair in event.attributes}
            name = values["gen_ai.evaluation.name"].string_value
            found[name] = values["gen_ai.evaluation.score.value"].double_value
        return found


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    server = Collector()
    runner = server.loop.run_until_complete(server.start())
    thread = threading.Thread(target=server.loop.run_forever)
    thread.start()
    monkeypatch.setenv(ENDPOINTS[1], server.url)
    yield server
    asyncio.run_coroutine_threadsafe(runner.cleanup(), server.loop).result()
    server.loop.call_soon_threadsafe(server.loop.stop)
    thread.join()
    server.loop.close()


def test_a_collector_receives_cases_with_their_calls_and_scores(
    suite: Suite, collector: Collector, workers: tuple[str, ...]
) -> None:
    (suite.path / "app.py").write_text(APP, "utf-8")
    (suite.path / "test_capitals.py").write_text(JUDGED, "utf-8")
    result = suite.run("--otel", "--judge-model=function:app:judge", *workers)
    assert "--otel" not in result.stdout.str()
    cases = {span["id"]: span for span in collector.spans if span["name"].startswith("case ")}
    calls = [span for span in collector.spans if span["id"] not in cases]
    assert sorted(span["name"] for span in cases.values()) == ["case broken", "case judged", "case judged"]
    assert [span["failed"] for span in cases.values() if span["name"] == "case broken"] == [True]
    assert sorted(call["name"] for call in calls) == [
        *(["chat function:app:echo"] * 2),
        *(["chat function:app:judge"] * 2),
    ]
    for call in calls:
        assert (call["parent"] in cases, cases[call["parent"]]["trace"]) == (True, call["trace"])
        assert call["attributes"]["gen_ai.provider.name"] == "function"
    assert {call["attributes"].get("gen_ai.request.temperature") for call in calls} == {0.5, 0.0}
    assert collector.evaluations == {"exact_match": 1.0, "quality": 7.0}
    assert not any(b"Answer" in body for body in collector.bodies)


def test_a_replay_makes_no_calls(suite: Suite, collector: Collector) -> None:
    suite.run("--run=first")
    suite.run("--replay=first", "--otel", model=False)
    assert [span["name"] for span in collector.spans] == ["case capitals"] * 3


def test_a_collector_that_refuses_is_told_and_changes_nothing(suite: Suite, collector: Collector) -> None:
    collector.status = 400
    result = suite.run("--otel", "--log-level=CRITICAL")
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(["*--otel: the collector did not accept 6 spans*"])


def test_without_an_address_nothing_runs(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ENDPOINTS:
        monkeypatch.delenv(name, raising=False)
    result = suite.run("--otel")
    assert result.ret
    assert "no address to send spans to" in result.stdout.str() + result.stderr.str()


def test_embeddings_and_shared_calls_have_spans_of_their_own(collector: Collector) -> None:
    from evalsuite.core.types import Completion, Request, Usage

    export = RunSpanExporter("run")
    export.export_call(Request("embed", (), {"api": "embeddings"}), Completion("", usage=Usage(1, 3, 0)))
    assert export.flush_spans() == ""
    (span,) = collector.spans
    assert (span["name"], span["parent"]) == ("embeddings embed", "")
    assert span["attributes"]["gen_ai.usage.input_tokens"] == 3
    assert json.dumps(span)


def test_an_unknown_cost_and_the_result_of_a_skipped_case_are_not_sent(collector: Collector) -> None:
    from evalsuite.core.json_codec import write_record
    from evalsuite.core.types import Record, Usage

    export = RunSpanExporter("run")
    export.export_case(write_record(Record("a", "b", "priced", 1, "m", "passed", usage=Usage(1))))
    export.export_case(write_record(Record("c", "b", "unpriced", 1, "m", "skipped", usage=Usage(1, unpriced=1))))
    assert export.flush_spans() == ""
    sent = b"".join(collector.bodies)
    assert [sent.count(name) for name in (b"evalsuite.sample", b"evalsuite.cost", b"test.case.result.status")] == [
        2,
        1,
        1,
    ]
