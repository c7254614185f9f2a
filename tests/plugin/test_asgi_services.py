"""A FastAPI service under test, within the process and as a process of its own: each call belongs to its case."""

from __future__ import annotations

import secrets
import socket
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.plugin.conftest import Suite

pytest.importorskip("fastapi")
pytest.importorskip("uvicorn")

SERVICE = """
import asyncio
import random

from fastapi import FastAPI, Header
from fastapi.responses import StreamingResponse
from openai import AsyncOpenAI
from pydantic import BaseModel

app = FastAPI()
SESSIONS = {}
CLIENT = AsyncOpenAI(api_key="the-owner's")


class Question(BaseModel):
    input: str
    session: str


async def reply(question, client):
    history = SESSIONS.setdefault(question.session, [])
    history.append({"role": "user", "content": question.input})
    for text in ("first", "second"):
        await asyncio.sleep(random.random() / 50)
        said = await client.chat.completions.create(model="gpt-4o", messages=history)
        history.append({"role": "assistant", "content": said.choices[0].message.content})
    return {"answer": history[-1]["content"], "turns": len(history) // 3}


@app.post("/ask")
async def ask(question: Question):
    return await reply(question, CLIENT)


@app.post("/stream")
async def stream(question: Question):
    async def pieces():
        # Each TestClient has an event loop of its own, which CLIENT cannot be shared with.
        async with AsyncOpenAI(api_key="the-owner's") as client:
            for letter in (await reply(question, client))["answer"]:
                yield letter

    return StreamingResponse(pieces(), media_type="text/plain")


@app.post("/apart")
async def apart(question: Question, x_model: str = Header(), authorization: str = Header()):
    async with AsyncOpenAI(base_url=x_model, api_key=authorization.removeprefix("Bearer ")) as client:
        return await reply(question, client)
"""

CASES = """
import httpx
from fastapi.testclient import TestClient
from service import app

from evalsuite import Sample, benchmark, exact_match
from evalsuite.solvers import application, conversation
from evalsuite.tools import Scripted

WORDS = NAMES
SAMPLES = [Sample(id=word, input=word, target=word) for word in WORDS]
TALKS = [
    Sample(id=word, input=word, target=f"{word} 2", metadata={"user": [f"{word} 1", f"{word} 2"]}) for word in WORDS
]


async def ask(question):
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://service") as client:
        return (await client.post("/ask", json={"input": question, "session": question})).json()


def stream(question):
    with TestClient(app) as client:
        return client.post("/stream", json={"input": question, "session": f"{question} streamed"}).text


def is_own(transcript, word):
    return all(message.content.partition(" ")[0] == word for message in transcript.messages)


@benchmark("async", SAMPLES, solver=application(ask, route=True), scorers=[exact_match()])
def test_async(sample, scores, transcript):
    assert (scores["exact_match"], len(transcript.messages)) == (1.0, 3)
    assert is_own(transcript, sample.id)


@benchmark("threads", SAMPLES, solver=application(stream, route=True), scorers=[exact_match()])
def test_threads(sample, scores, transcript):
    assert (scores["exact_match"], len(transcript.messages)) == (1.0, 3)
    assert is_own(transcript, sample.id)


APART = application(
    url="URL/apart", headers={"Authorization": "Bearer {api_key}", "X-Model": "{base_url}"}
)


@benchmark("apart", TALKS, solver=conversation(APART, user=Scripted()), scorers=[exact_match()])
def test_apart(sample, scores, transcript):
    assert (scores["exact_match"], transcript.facts["turns"]) == (1.0, 3)
    assert is_own(transcript, sample.id)
"""


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    """A service whose connections wait in the socket's queue until uvicorn accepts them."""
    (tmp_path / "service.py").write_text(SERVICE, encoding="utf-8")
    with socket.create_server(("127.0.0.1", 0), backlog=128) as listening:
        command = [sys.executable, "-m", "uvicorn", "--fd", str(listening.fileno()), "service:app"]
        with subprocess.Popen(
            command, cwd=tmp_path, pass_fds=[listening.fileno()], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as served:
            try:
                yield f"http://127.0.0.1:{listening.getsockname()[1]}"
            finally:
                served.kill()


def test_concurrent_cases_of_a_service_get_their_own_calls(suite: Suite, url: str) -> None:
    names = [secrets.token_hex(4) for _ in range(5)]
    (suite.path / "service.py").write_text(SERVICE, encoding="utf-8")
    cases = CASES.replace("NAMES", repr(names)).replace("URL", url)
    (suite.path / "test_capitals.py").write_text(cases, encoding="utf-8")
    suite.run("--run=first", "--max-connections=16").assert_outcomes(passed=15)
    first = suite.records("first")
    assert [record["usage"]["calls"] for record in first] == [6] * 5 + [2] * 10
    suite.run("--replay=first", "--run=again", model=False).assert_outcomes(passed=15)
    again = suite.records("again")
    assert [one["transcript"]["messages"] for one in again] == [one["transcript"]["messages"] for one in first]
