"""Embeddings and messages with pictures on their way through the gateway."""

from __future__ import annotations

import json
import struct
from base64 import b64encode
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.conftest import ChatServer, Reply
    from tests.plugin.conftest import Suite

HEAD = """
from evalsuite import Message, Sample, benchmark, generate
from evalsuite.content import image
from evalsuite.scorers import similar
SAMPLES = [Sample(id=1, input="aab", target=["bbb", "ab"])]
"""
EMBEDDED = (
    HEAD
    + """
def solve(sample, model):
    client = model.openai_sync()
    reply = client.embeddings.create(model="small", input=["a", "bb"])
    assert [entry.embedding for entry in reply.data] == [[1.0, 0.0], [0.0, 2.0]]
    plain = client.embeddings.create(model="small", input="bb", encoding_format="float")
    assert plain.data[0].embedding == [0.0, 2.0]
    return sample.input

@benchmark("own", SAMPLES, solver=solve, scorers=[similar(0.9, model="small", base_url=URL)])
def test_own(scores):
    assert scores["similar"] == 1.0
"""
)


def letters(body: dict[str, object]) -> dict[str, object]:
    texts = body["input"]
    assert isinstance(texts, list)
    data = []
    for index, text in enumerate(texts):
        packed = struct.pack("<2f", text.count("a"), text.count("b"))
        data.append({"index": index, "embedding": b64encode(packed).decode()})
    return {"data": data, "usage": {"prompt_tokens": 7}}


def test_embeddings_are_asked_for_once_and_replayed(suite: Suite, chat_server: ChatServer) -> None:
    def reply(body: dict[str, object]) -> Reply:
        return chat_server.say(body=letters(body))

    chat_server.reply = reply
    text = EMBEDDED.replace("URL", repr(chat_server.url))
    (suite.path / "test_capitals.py").write_text(text, encoding="utf-8")
    suite.model = ("--model=chat", f"--model-base-url={chat_server.url}")
    suite.run("--run", "first").assert_outcomes(passed=1)
    assert [body["input"] for body in chat_server.bodies] == [["a", "bb"], ["bb"], ["aab", "bbb", "ab"]]
    assert {body["model"] for body in chat_server.bodies} == {"small"}
    (record,) = suite.records("first")
    assert record["usage"]["prompt_tokens"] == 21
    assert 0.94 < record["scores"]["similarity"] < 0.95
    suite.run("--replay", "first", "--run", "again", model=False).assert_outcomes(passed=1)
    assert len(chat_server.bodies) == 3


def test_a_picture_reaches_the_server_as_it_is(suite: Suite, chat_server: ChatServer) -> None:
    chat_server.reply = lambda body: chat_server.say("a cat")
    (suite.path / "test_capitals.py").write_text(
        HEAD
        + """
CAT = image(b"\\x89PNG" + bytes(8))
ASK = [Sample(id=1, input=[Message("user", parts=["What is this?", CAT])], target="a cat")]
@benchmark("own", ASK, solver=generate())
def test_own(transcript):
    assert transcript.answer == "a cat"
    assert transcript.messages[0].parts[1] == CAT
""",
        encoding="utf-8",
    )
    suite.model = ("--model=chat", f"--model-base-url={chat_server.url}")
    suite.run().assert_outcomes(passed=1)
    text, picture = chat_server.bodies[0]["messages"][0]["content"]
    assert text == {"type": "text", "text": "What is this?"}
    assert picture["image_url"]["url"].startswith("data:image/png;base64,")
    (record,) = suite.records()
    assert record["input"] == "user: What is this?"
    assert json.dumps(picture) in json.dumps(record["transcript"]["messages"])
