"""Applications that run as services, asked over HTTP, alone and in conversation with a user."""

from __future__ import annotations

import asyncio
import json
import threading
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest
from aiohttp import web

from evalsuite.core.errors import SettingsError, SolverError
from evalsuite.core.types import Sample
from evalsuite.solvers import application, conversation
from evalsuite.solvers.services import LARGEST_ANSWER
from evalsuite.tools import Scripted, World, tool

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.plugin.conftest import Suite


class Service:
    """Counts the questions of each session, streams, fails, and asks a model where the request tells it to."""

    def __init__(self) -> None:
        self.sessions: dict[str, list[str]] = defaultdict(list)
        self.headers: list[dict[str, str]] = []
        self.url = ""

    def application(self) -> web.Application:
        made = web.Application()
        made.router.add_post("/ask", self.ask)
        made.router.add_post("/stream", self.stream)
        made.router.add_post("/model", self.ask_model)
        made.router.add_post("/fail", self.fail)
        made.router.add_post("/large", self.large)
        made.router.add_post("/page", self.page)
        made.router.add_post("/lines", self.lines)
        made.router.add_post("/failing_stream", self.failing_stream)
        made.router.add_post("/broken_stream", self.broken_stream)
        made.router.add_post("/latin", self.latin)
        made.router.add_post("/marked", self.marked)
        made.router.add_post("/martian", self.martian)
        made.router.add_post("/idna", self.idna)
        return made

    async def ask(self, request: web.Request) -> web.Response:
        body = await request.json()
        self.headers.append(dict(request.headers))
        said = self.sessions[body["session"]]
        said.append(body["input"])
        return web.json_response({"reply": {"text": f"{len(said)}: {body['input']}"}, "passages": ["p"]})

    async def stream(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for piece in ("Pa", "ris\u2028"):
            data = json.dumps({"delta": {"text": piece}}, ensure_ascii=False)
            await response.write(f": comment\n\ndata: {data}\n\n".encode())
        await response.write(b'data: {"usage": 3}\n\ndata: [DONE]\n\n')
        return response

    async def lines(self, request: web.Request) -> web.Response:
        return web.Response(text='"Pa"\r\n"ris\u2028"\n', content_type="application/x-ndjson")

    async def failing_stream(self, request: web.Request) -> web.Response:
        text = 'data: {"answer": "Pa"}\n\nevent: error\ndata: {"error": "no quota"}\n\n'
        return web.Response(text=text, content_type="text/event-stream")

    async def broken_stream(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        await response.write(b'data: {"answer": "Pa"}\n\n')
        assert request.transport is not None
        request.transport.close()
        return response

    async def latin(self, request: web.Request) -> web.Response:
        return web.Response(body="Orléans".encode("latin-1"), headers={"Content-Type": "text/plain; charset=latin-1"})

    async def marked(self, request: web.Request) -> web.Response:
        body = '\ufeffdata: "Orl"\n\ndata: "éans"\n\n'.encode()
        return web.Response(body=body, headers={"Content-Type": "text/event-stream; charset=utf-8"})

    async def idna(self, request: web.Request) -> web.Response:
        return web.Response(body=b"x", headers={"Content-Type": "text/plain; charset=idna"})

    async def martian(self, request: web.Request) -> web.Response:
        return web.Response(body=b"x", headers={"Content-Type": "text/plain; charset=martian"})

    async def ask_model(self, request: web.Request) -> web.Response:
        body = await request.json()
        asked = {"model": "gpt-4o", "messages": body["messages"]}
        async with (
            aiohttp.ClientSession() as client,
            client.post(
                f"{body['at']}/chat/completions",
                json=asked,
                headers={"Authorization": request.headers["Authorization"]},
            ) as answer,
        ):
            return web.Response(text=(await answer.json())["choices"][0]["message"]["content"])

    async def fail(self, request: web.Request) -> web.Response:
        return web.Response(status=500, text=f"no luck with {request.headers.get('X-Key')}")

    async def large(self, request: web.Request) -> web.Response:
        return web.Response(body=b" " * (LARGEST_ANSWER + 1))

    async def page(self, request: web.Request) -> web.Response:
        return web.Response(text="<html>", content_type="application/json")


@pytest.fixture(scope="module")
def running() -> Iterator[Service]:
    served, loop = Service(), asyncio.new_event_loop()
    ready, runner = threading.Event(), web.AppRunner(served.application())

    async def start() -> None:
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        served.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        ready.set()

    def work() -> None:
        loop.run_until_complete(start())
        loop.run_forever()
        loop.run_until_complete(runner.cleanup())
        loop.close()

    thread = threading.Thread(target=work)
    thread.start()
    ready.wait()
    yield served
    loop.call_soon_threadsafe(loop.stop)
    thread.join()


@pytest.fixture
def service(running: Service) -> Service:
    running.sessions.clear()
    running.headers.clear()
    return running


CASES = """
from evalsuite import Sample, benchmark
from evalsuite.solvers import application, conversation
from evalsuite.tools import Scripted
SAMPLES = [Sample(id=1, input="Paris", metadata={"user": ["Rome"]})]

@benchmark("service", SAMPLES, solver=SOLVER)
def test_service(transcript):
    assert CHECK
"""


def write(suite: Suite, solver: str, check: str) -> None:
    text = CASES.replace("SOLVER", solver).replace("CHECK", check)
    (suite.path / "test_capitals.py").write_text(text, encoding="utf-8")


def test_a_conversation_with_a_service_keeps_its_session_and_is_replayed_without_it(
    suite: Suite, service: Service
) -> None:
    agent = f"application(url={service.url + '/ask'!r}, answer='reply.text', headers={{'X-Case': '{{session}}'}})"
    write(
        suite,
        f"conversation({agent}, user=Scripted())",
        "(transcript.answer, transcript.facts['passages'], len(transcript.messages)) == ('2: Rome', ['p'], 4)",
    )
    suite.run("--run=first").assert_outcomes(passed=1)
    ((session, said),) = service.sessions.items()
    assert said == ["Paris", "Rome"]
    assert [(sent["X-Case"], sent["traceparent"].split("-")[1]) for sent in service.headers] == [(session, session)] * 2
    suite.run("--replay=first", "--run=again", model=False).assert_outcomes(passed=1)
    assert said == ["Paris", "Rome"]
    assert suite.records("first")[0]["transcript"] == suite.records("again")[0]["transcript"]


def test_a_service_that_is_given_the_endpoint_asks_the_model_under_test(suite: Suite, service: Service) -> None:
    request = "{'messages': '{messages}', 'at': '{base_url}'}"
    headers = "{'Authorization': 'Bearer {api_key}'}"
    write(
        suite,
        f"application(url={service.url + '/model'!r}, request={request}, headers={headers})",
        "(transcript.answer, transcript.messages[0].content) == ('Paris', 'Paris')",
    )
    suite.run("--run=first").assert_outcomes(passed=1)
    assert suite.records("first")[0]["usage"]["calls"] == 1


class AnyModel:
    """What a service needs of a case's model where nothing is stored."""

    def __init__(self) -> None:
        from evalsuite.gateway.handle import CaseToolCalls

        self.effects = CaseToolCalls()


def ask(url: str, **given: Any) -> Any:
    model: Any = AnyModel()
    return asyncio.run(application(url=url, **given)(Sample(id=1, input="Paris"), model))


@pytest.mark.parametrize(("path", "answer"), [("/stream", "delta.text"), ("/lines", "text")])
def test_the_pieces_of_a_stream_are_the_answer(service: Service, path: str, answer: str) -> None:
    assert ask(service.url + path, answer=answer).answer == "Paris\u2028"


@pytest.mark.parametrize("path", ["/latin", "/marked"])
def test_an_answer_is_read_in_the_encoding_that_the_service_names(service: Service, path: str) -> None:
    assert ask(service.url + path).answer == "Orléans"


def test_a_function_makes_the_request(service: Service) -> None:
    def request(question: str, session: str) -> dict[str, str]:
        return {"input": question.upper(), "session": session}

    assert ask(service.url + "/ask", request=request, answer="reply.text").answer == "1: PARIS"


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/fail", r"answered with status 500: no luck with \*\*\*"),
        ("/nowhere", "answered with status 404"),
        ("/large", "more than 64 MiB"),
        ("/page", "sent what is not JSON: '<html>'"),
        ("/ask", "no text in the field 'answer'"),
        ("/failing_stream", r"sent an error in its stream: event: error\ndata: .*no quota"),
        ("/broken_stream", "broke off its answer"),
        ("/martian", "an unknown encoding: 'martian'"),
        ("/idna", "an unknown encoding: 'idna'"),
    ],
)
def test_a_service_that_answers_badly_is_one_clear_error(service: Service, path: str, words: str) -> None:
    with pytest.raises(SolverError, match=words):
        ask(service.url + path, headers={"X-Key": "sk-hidden"})


def test_a_service_that_is_down_or_given_no_json_is_one_clear_error(service: Service) -> None:
    with pytest.raises(SolverError, match=r"cannot be reached .* is it running"):
        ask("http://127.0.0.1:1/")
    with pytest.raises(SolverError, match="cannot be sent this request"):
        ask(service.url + "/ask", request={"input": object()})


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, "give a function"),
        ({"url": "127.0.0.1:8000"}, "give an address like"),
        ({"url": "http://[1"}, "give an address like"),
        ({"target": print, "request": {}}, "for services"),
        ({"url": "http://127.0.0.1", "env": {"A": "1"}}, "env and cwd are for programs"),
        ({"target": ""}, "the command is empty"),
    ],
)
def test_an_application_that_is_declared_wrongly_is_refused(given: dict[str, Any], words: str) -> None:
    with pytest.raises(SettingsError, match=words):
        application(**given)


class Shop:
    def __init__(self, sample: Sample) -> None:
        self.booked: list[str] = []

    @tool
    def book(self, city: str) -> str:
        """Books a ticket."""
        self.booked.append(city)
        return f"a ticket to {city}"


OWN = """
from evalsuite import Sample, benchmark
from evalsuite.scorers import expect_state
from evalsuite.solvers import application, conversation
from evalsuite.tools import Scripted, tool

class Shop:
    def __init__(self, sample):
        self.booked = []

    @tool
    def book(self, city: str) -> str:
        \"\"\"Books a ticket.\"\"\"
        self.booked.append(city)
        return "done"

    def state(self):
        return {"booked": self.booked}

async def agent(messages, client, world):
    asked = await client.chat.completions.create(model="gpt-4o", messages=messages)
    world.book(asked.choices[0].message.content)
    return f"Booked {len(messages)}."

SAMPLES = [Sample(id="1", input="Oslo", metadata={"user": ["Rome", "Bonn"], "state": {"booked": ["Oslo", "Rome"]}})]
SOLVER = conversation(application(agent), user=Scripted(), world=Shop, until=lambda said: "3" in said)

@benchmark("shop", SAMPLES, solver=SOLVER, scorers=[expect_state()])
def test_shop(scores, transcript):
    assert scores["state"] == 1.0
    assert (transcript.answer, transcript.facts["ended"]) == ("Booked 3.", "until")
    assert [event["kind"] for event in transcript.events] == ["turn", "turn"]
"""


def test_a_function_talks_to_a_user_and_acts_in_a_world(suite: Suite) -> None:
    (suite.path / "test_capitals.py").write_text(OWN, encoding="utf-8")
    suite.run("--run=first").assert_outcomes(passed=1)
    suite.run("--replay=first", model=False).assert_outcomes(passed=1)
    assert suite.records("first")[0]["usage"]["calls"] == 2


@pytest.mark.parametrize("given", [{"policy": "Be kind."}, {"world": World(Shop).fails("book")}])
def test_an_application_has_its_own_policy_and_tools(given: dict[str, Any]) -> None:
    with pytest.raises(SettingsError, match="an application has its own"):
        conversation(application(print), user=Scripted(), **given)
