"""Each framework's agent has one transcript, whether read from its model calls, its spans, or a stored trace."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from evalsuite.commands import traces

if TYPE_CHECKING:
    from tests.plugin.conftest import Suite

APP = """
import json

import httpx
from openai import AsyncOpenAI


def agent(messages, tools=()):
    if messages[-1]["role"] != "tool":
        call = {"name": "weather", "arguments": json.dumps({"city": messages[-1]["content"]})}
        return {"content": "", "tool_calls": [{"id": "call_1", "type": "function", "function": call}]}
    return "It is " + messages[-1]["content"]


def serve(request):
    said = agent(json.loads(request.content)["messages"])
    message = {"content": said} if isinstance(said, str) else said
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", **message}}
    usage = {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}
    plain = {"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], "usage": usage}
    return httpx.Response(200, json=plain)


def past_the_gateway():
    transport = httpx.AsyncClient(transport=httpx.MockTransport(serve))
    return AsyncOpenAI(api_key="k", base_url="http://past/v1", http_client=transport)
"""

CASES = """
import json
from pathlib import Path

from app import past_the_gateway
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from evalsuite import Sample, benchmark, contains
from evalsuite.solvers import application

EXPORTER, PROVIDER = InMemorySpanExporter(), TracerProvider()
PROVIDER.add_span_processor(SimpleSpanProcessor(EXPORTER))
SAMPLES = [Sample(id="a", input="Oslo", target="sunny in Oslo")]

FRAMEWORK

async def by_wire(question, client):
    return await ask(question, client)


async def by_spans(question):
    EXPORTER.clear()
    answer = await ask(question, past_the_gateway())
    from google.protobuf.json_format import MessageToDict
    from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans

    Path("otlp.json").write_text(json.dumps(MessageToDict(encode_spans(EXPORTER.get_finished_spans()))))
    return answer


@benchmark("wire", SAMPLES, solver=application(by_wire), scorers=[contains()])
def test_wire(scores):
    assert scores["contains"] == 1.0


@benchmark("spans", SAMPLES, solver=application(by_spans, spans=True), scorers=[contains()])
def test_spans(scores):
    assert scores["contains"] == 1.0
"""

FRAMEWORKS = {
    "pydantic_ai": """
from pydantic_ai import Agent
from pydantic_ai.models.instrumented import InstrumentationSettings
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider


async def ask(question, client):
    agent = Agent(OpenAIChatModel("m", provider=OpenAIProvider(openai_client=client)))
    agent.instrument = InstrumentationSettings(tracer_provider=PROVIDER)

    @agent.tool_plain
    def weather(city: str) -> str:
        return f"sunny in {city}"

    return (await agent.run(question)).output
""",
    "agents": """
from agents import Agent, OpenAIChatCompletionsModel, Runner, function_tool
from openinference.instrumentation.openai_agents import OpenAIAgentsInstrumentor

OpenAIAgentsInstrumentor().instrument(tracer_provider=PROVIDER)


@function_tool
def weather(city: str) -> str:
    return f"sunny in {city}"


async def ask(question, client):
    agent = Agent(name="guide", tools=[weather], model=OpenAIChatCompletionsModel("m", client))
    return (await Runner.run(agent, question)).final_output
""",
    "langgraph": """
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from openinference.instrumentation.langchain import LangChainInstrumentor

LangChainInstrumentor().instrument(tracer_provider=PROVIDER)


@tool
def weather(city: str) -> str:
    '''The weather.'''
    return f"sunny in {city}"


async def ask(question, client):
    bound = ChatOpenAI(model="m", api_key="k", async_client=client.chat.completions, root_async_client=client)
    bound = bound.bind_tools([weather])

    async def assistant(state):
        return {"messages": [await bound.ainvoke(state["messages"])]}

    graph = StateGraph(MessagesState)
    graph.add_node("assistant", assistant)
    graph.add_node("tools", ToolNode([weather]))
    graph.add_edge(START, "assistant")
    graph.add_conditional_edges("assistant", tools_condition)
    graph.add_edge("tools", "assistant")
    return (await graph.compile().ainvoke({"messages": [("user", question)]}))["messages"][-1].content
""",
}


def outline(transcript: dict[str, Any]) -> tuple[list[Any], list[Any]]:
    """Return the messages with their calls, and the calls with their observations."""
    messages = [
        (one["role"], one["content"], [call["function"] for call in one.get("tool_calls") or ()])
        for one in transcript["messages"]
    ]
    calls = [event for event in transcript["events"] if event["kind"] == "call"]
    return messages, [(call["tool"], call["arguments"], call["observation"]) for call in calls]


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_model_calls_spans_and_stored_traces_give_one_transcript(suite: Suite, framework: str) -> None:
    pytest.importorskip(framework)
    if framework != "pydantic_ai":
        name = {"agents": "openai_agents", "langgraph": "langchain"}[framework]
        pytest.importorskip(f"openinference.instrumentation.{name}")
    (suite.path / "app.py").write_text(APP, "utf-8")
    (suite.path / "test_capitals.py").write_text(CASES.replace("FRAMEWORK", FRAMEWORKS[framework]), "utf-8")
    suite.model = ("--model=function:app:agent",)
    # One case after the other, so that the stored trace is the second one's alone.
    suite.run("--run=first", "--max-connections=1").assert_outcomes(passed=2)
    by_benchmark = {record["benchmark"]: record["transcript"] for record in suite.records("first")}
    wire, spans = by_benchmark["wire"], by_benchmark["spans"]
    (stored,) = traces.read_traces(suite.path / "otlp.json")
    messages, calls = outline(wire)
    assert [role for role, *_ in messages] == ["user", "assistant", "tool", "assistant"]
    assert calls == [("weather", {"city": "Oslo"}, "sunny in Oslo")]
    assert outline(spans) == (messages, calls)
    assert outline(stored["transcript"]) == (messages, calls)
    assert wire["answer"] == spans["answer"] == stored["answer"] == "It is sunny in Oslo"
