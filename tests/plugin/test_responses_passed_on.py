"""An application's requests of the Responses API at a server that has this API."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.conftest import Reply

if TYPE_CHECKING:
    from tests.conftest import ChatServer
    from tests.plugin.conftest import Suite

SUITE = """
from evalsuite import Sample, benchmark
from evalsuite.solvers import application

async def ask(question, client):
    first = await client.responses.create(
        model="gpt", input=question, reasoning={"effort": "low", "summary": "auto"}, text={"verbosity": "low"},
        include=["reasoning.encrypted_content"], truncation="auto", max_tool_calls=2, service_tier="flex",
        tools=[{"type": "web_search"}], tool_choice={"type": "allowed_tools", "mode": "auto", "tools": []},
    )
    picture = {"type": "input_image", "image_url": "data:image/png;base64,AAAA"}
    result = {"type": "function_call_output", "call_id": "c1", "output": [picture]}
    second = await client.responses.create(
        model="gpt", input=[*(item.to_dict() for item in first.output), result], previous_response_id=first.id
    )
    return second.output_text

@benchmark("own", [Sample(id=1, input="Paris?")], solver=application(ask))
def test_own(transcript):
    assert transcript.answer == "done"
"""


def test_requests_pass_unchanged_and_a_replay_repeats_the_server_s_items(suite: Suite, chat_server: ChatServer) -> None:
    bodies: list[dict[str, Any]] = []
    thought = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "secret"}
    call = {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "look", "arguments": "{}"}
    text = {"type": "output_text", "text": "done", "annotations": []}
    said = {"type": "message", "id": "m_1", "role": "assistant", "status": "completed", "content": [text]}

    def reply(body: dict[str, Any]) -> Reply:
        bodies.append(body)
        output = [thought, call] if len(bodies) == 1 else [said]
        usage = {"input_tokens": 1, "output_tokens": 1}
        answer = {"id": f"resp_x{len(bodies)}", "status": "completed", "output": output, "usage": usage}
        return Reply("", body={"object": "response", "created_at": 1, "model": "gpt", **answer})

    chat_server.reply = reply
    (suite.path / "test_capitals.py").write_text(SUITE, encoding="utf-8")
    suite.model = (
        "--model=gpt",
        f"--model-base-url={chat_server.url}",
        "--model-param=api=responses",
        '--model-param=extra_body={"user": "me"}',
    )
    suite.run("--run=first").assert_outcomes(passed=1)
    suite.run("--replay=first", model=False).assert_outcomes(passed=1)
    first, second = bodies
    assert first == {
        "model": "gpt",
        "store": True,
        "user": "me",
        "input": "Paris?",
        "reasoning": {"effort": "low", "summary": "auto"},
        "text": {"verbosity": "low"},
        "include": ["reasoning.encrypted_content"],
        "truncation": "auto",
        "max_tool_calls": 2,
        "service_tier": "flex",
        "tools": [{"type": "web_search"}],
        "tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": []},
    }
    assert second["previous_response_id"] == "resp_x1"
    assert second["input"][0]["encrypted_content"] == "secret"
    assert second["input"][2]["output"] == [{"type": "input_image", "image_url": "data:image/png;base64,AAAA"}]
