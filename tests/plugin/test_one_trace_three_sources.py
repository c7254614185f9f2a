"""Each framework's agent has one transcript, whether read from its model calls, its spans, or a stored trace."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from evalsuite.commands import traces
from evalsuite.core.types import Message

if TYPE_CHECKING:
    from tests.plugin.conftest import Suite

APP = """
import json

import httpx
from openai import AsyncOpenAI


def agent(messages, tools=()):
    content = messages[-1]["content"]
    said = content if isinstance(content, str) else content[-1]["text"]
    asks, names = "sunny" not in said, [tool["function"]["name"] for tool in tools]
    if not names:
        code = "print(weather('Oslo'))" if asks else "final_answer('It is sunny in Oslo')"
        return f"<code>\\n{code}\\n</code>"
    if not asks and "final_answer" not in names:
        return "It is " + said
    name, given = ("weather", {"city": "Oslo"}) if asks else ("final_answer", {"answer": "It is sunny in Oslo"})
    call = {"name": name, "arguments": json.dumps(given)}
    return {"content": "", "tool_calls": [{"id": f"call_{len(messages)}", "type": "function", "function": call}]}


def serve(request):
    body = json.loads(request.content)
    said = agent(body["messages"], body.get("tools", ()))
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

async def by_wire(question, CLIENT):
    return await ask(question, CLIENT)


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
SMOLAGENTS = """
import asyncio

import httpx
from app import serve
from openai import AsyncOpenAI
from openinference.instrumentation.smolagents import SmolagentsInstrumentor
from smolagents import CodeAgent, OpenAIModel, ToolCallingAgent, tool

SmolagentsInstrumentor().instrument(tracer_provider=PROVIDER)


@tool
def weather(city: str) -> str:
    '''The weather.

    Args:
        city: the city.
    '''
    return f"sunny in {city}"


async def ask(question, client):
    past = isinstance(client, AsyncOpenAI)
    transport = {"http_client": httpx.Client(transport=httpx.MockTransport(serve))} if past else {}
    model = OpenAIModel("m", api_base=str(client.base_url), api_key=client.api_key, client_kwargs=transport)
    agent = AGENT(tools=[weather], model=model, verbosity_level=0)
    return await asyncio.to_thread(agent.run, question)
"""


def outline(transcript: dict[str, Any]) -> tuple[list[Any], list[Any]]:
    """Return the messages with their calls, and the calls with their observations."""
    messages = [
        (one["role"], Message.from_openai(one).content, [call["function"] for call in one.get("tool_calls") or ()])
        for one in transcript["messages"]
    ]
    calls = [event for event in transcript["events"] if event["kind"] == "call"]
    return messages, [(call["tool"], call["arguments"], call["observation"]) for call in calls]


def read_three_sources(suite: Suite, framework: str, client: str = "client") -> list[dict[str, Any]]:
    """Return the transcripts of an agent from its model calls, from its spans, and from the stored trace."""
    (suite.path / "app.py").write_text(APP, "utf-8")
    cases = CASES.replace("FRAMEWORK", framework).replace("CLIENT", client)
    (suite.path / "test_capitals.py").write_text(cases, "utf-8")
    suite.model = ("--model=function:app:agent",)
    # One case after the other, so that the stored trace is the second one's alone.
    suite.run("--run=first", "--max-connections=1").assert_outcomes(passed=2)
    by_benchmark = {record["benchmark"]: record["transcript"] for record in suite.records("first")}
    (stored,) = traces.read_traces(suite.path / "otlp.json")
    found = [by_benchmark["wire"], by_benchmark["spans"], stored["transcript"]]
    assert [one["answer"] for one in (*found, stored)] == ["It is sunny in Oslo"] * 4
    return found


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_model_calls_spans_and_stored_traces_give_one_transcript(suite: Suite, framework: str) -> None:
    pytest.importorskip(framework)
    if framework != "pydantic_ai":
        name = {"agents": "openai_agents", "langgraph": "langchain"}[framework]
        pytest.importorskip(f"openinference.instrumentation.{name}")
    wire, spans, stored = map(outline, read_three_sources(suite, FRAMEWORKS[framework]))
    assert wire == spans == stored
    assert [role for role, *_ in wire[0]] == ["user", "assistant", "tool", "assistant"]
    assert wire[1] == [("weather", {"city": "Oslo"}, "sunny in Oslo")]


@pytest.mark.parametrize("kind", ["ToolCallingAgent", "CodeAgent"])
def test_agents_of_smolagents_send_calls_and_results_as_text(suite: Suite, kind: str) -> None:
    pytest.importorskip("smolagents")
    pytest.importorskip("openinference.instrumentation.smolagents")
    found = read_three_sources(suite, SMOLAGENTS.replace("AGENT", kind), "endpoint")
    wire, spans, stored = map(outline, found)
    assert wire[0] == spans[0] == stored[0]
    assert [role for role, *_ in wire[0]] == ["system", "user", "assistant", "user", "assistant"]
    weather, answer = ("weather", {"city": "Oslo"}, "sunny in Oslo"), "It is sunny in Oslo"
    if kind == "ToolCallingAgent":
        assert wire[1] == spans[1] == stored[1] == [weather, ("final_answer", {"answer": answer}, "")]
    else:
        # Only spans show the tools that a program calls.
        assert (wire[1], spans[1]) == ([], [weather, ("final_answer", {"answer": answer}, answer)])
        assert stored[1] == spans[1]
        turns = [(event["kind"], event["turn"]) for event in found[1]["events"] if event["kind"] != "span"]
        assert turns == [("turn", 1), ("call", 1), ("turn", 2), ("call", 2)]
