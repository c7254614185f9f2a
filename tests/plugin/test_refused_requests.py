"""What a run says of requests that the server refused for coming too fast."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tests.conftest import Reply

if TYPE_CHECKING:
    from tests.conftest import ChatServer
    from tests.plugin.conftest import Suite


def test_requests_that_were_refused_and_asked_again_are_counted_in_the_report(
    suite: Suite, chat_server: ChatServer
) -> None:
    def reply(_: dict[str, Any]) -> Reply:
        if len(chat_server.bodies) == 1:
            return Reply(status=429, headers={"Retry-After": "0.01"})
        return Reply("Paris")

    chat_server.reply = reply
    suite.model = ("--model=gpt-test", f"--model-base-url={chat_server.url}")
    result = suite.run("--max-connections=1", "--gate=capitals.exact_match >= 0")
    line = "1 of 4 requests were refused by the server (429)"
    assert line in result.stdout.str()
    assert line in suite.rendered()


def test_what_refusals_and_lost_answers_cost_is_named_beside_the_cost_of_answers(
    suite: Suite, chat_server: ChatServer
) -> None:
    def reply(_: dict[str, Any]) -> Reply:
        withheld = len(chat_server.bodies) == 1
        return Reply(message={"content": None, "refusal": "no"}) if withheld else Reply("Tokyo")

    chat_server.reply = reply
    suite.model = ("--model=gpt-test", f"--model-base-url={chat_server.url}", "--price=gpt-test=100/200")
    result = suite.run("--max-connections=1")
    line = "$0.0020 more may be billed for calls whose answers were withheld, lost or cancelled"
    assert line in result.stdout.str()
    assert line in suite.rendered()


def test_what_cancelled_calls_cost_is_named_although_their_answers_arrived(
    suite: Suite, chat_server: ChatServer
) -> None:
    suite.pytester.makepyfile(
        test_capitals="""
        import asyncio
        from evalsuite import Sample, benchmark

        async def hurry(sample, model):
            try:
                return (await asyncio.wait_for(model.chat("slow"), 0.2)).text
            except TimeoutError:
                await asyncio.sleep(0.8)
                return (await model.chat("fast")).text

        @benchmark("capitals", [Sample(id=1, input="Paris", target="Paris")], solver=hurry)
        def test_capitals(transcript):
            assert transcript.answer == "Paris"
        """
    )
    chat_server.reply = lambda body: Reply("Paris", delay=0.6 * (body["messages"][-1]["content"] == "slow"))
    suite.model = ("--model=gpt-test", f"--model-base-url={chat_server.url}", "--price=gpt-test=100/200")
    result = suite.run()
    assert result.ret == 0
    cost = json.loads((suite.runs()[-1] / "run.json").read_text("utf-8"))["usage"]["cost"]
    line = f"${cost:.4f} more may be billed for calls whose answers were withheld, lost or cancelled"
    assert line in result.stdout.str()
