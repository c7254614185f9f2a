"""MCP servers as sources of tools, with a real server in a process of its own."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
import threading
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import pytest

from evalsuite.core.errors import SettingsError, ToolError
from evalsuite.core.types import Sample
from evalsuite.gateway.handle import CaseToolCalls
from evalsuite.tools import mcp_servers
from evalsuite.tools.execution import ToolFailure
from evalsuite.tools.mcp_servers import McpServer
from evalsuite.tools.worlds import open_tools

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# Not imported here: every process of tests collects this file.
pytestmark = pytest.mark.skipif(find_spec("mcp") is None, reason="pip install 'evalsuite[mcp]'")
SAMPLE = Sample(id="s", input="x")
NOBODY: Any = None
SERVER = """
import sys
from mcp.server import MCPServer

server = MCPServer("sums")

@server.tool()
def add(a: int, b: int) -> int:
    "Adds."
    return a + b

@server.tool()
def die() -> str:
    "Ends the server."
    import os
    os._exit(1)

@server.tool()
def fail() -> str:
    "Fails."
    raise ValueError("nothing there")

@server.tool()
def picture() -> list:
    "Gives a text and what is no text."
    from mcp.server.mcpserver.utilities.types import Image
    return ["a dot", Image(data=b"x", format="png")]

if len(sys.argv) > 1:
    server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[1]))
else:
    server.run()
"""


async def used(server: McpServer) -> tuple[str, str]:
    async with open_tools([server], SAMPLE) as opened:
        tools = {tool.document.name: tool for tool in opened.tools}
        total = await tools["add"].executor.run_tool(tools["add"].document, {"a": 2, "b": 3}, NOBODY)
        with pytest.raises(ToolFailure) as failure:
            await tools["fail"].executor.run_tool(tools["fail"].document, {}, NOBODY)
    return total, str(failure.value)


def test_tools_of_a_server_in_a_process_of_its_own_are_called(tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text(SERVER, encoding="utf-8")
    total, failure = asyncio.run(used(McpServer([sys.executable, str(tmp_path / "server.py")])))
    assert total == "5"
    assert failure


async def use_dying(server: McpServer) -> None:
    async with open_tools([server], SAMPLE) as opened:
        tools = {tool.document.name: tool for tool in opened.tools}
        for name in ("die", "add"):
            with pytest.raises(ToolError, match="has ended"):
                await tools[name].executor.run_tool(tools[name].document, {}, NOBODY)


def test_a_server_that_ends_during_an_episode_is_an_error_of_the_case(tmp_path: Path, http_server: str) -> None:
    asyncio.run(use_dying(McpServer([sys.executable, str(tmp_path / "server.py")])))
    asyncio.run(use_dying(McpServer(url=http_server)))


@pytest.fixture
def http_server(tmp_path: Path) -> Iterator[str]:
    (tmp_path / "server.py").write_text(SERVER, encoding="utf-8")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, str(tmp_path / "server.py"), str(port)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        assert process.stderr
        for line in process.stderr:
            if b"running on" in line:
                break
        drained = threading.Thread(target=process.stderr.read, daemon=True)
        drained.start()
        yield f"http://127.0.0.1:{port}/mcp"
        process.terminate()
        drained.join()


def test_tools_of_a_server_over_http_are_called_and_parts_that_are_no_text_are_named(http_server: str) -> None:
    async def use() -> tuple[Any, str, str]:
        server = McpServer(url=http_server)
        used_up = await used(server)
        async with open_tools([server], SAMPLE) as opened:
            picture = next(made for made in opened.tools if made.document.name == "picture")
            seen = await picture.executor.run_tool(picture.document, {}, NOBODY)
        return used_up, seen, picture.document.origin

    (total, failure), seen, origin = asyncio.run(use())
    assert (total, seen, origin) == ("5", "a dot\n(image)", http_server)
    assert "fail" in failure


def test_a_server_over_http_that_is_not_there_is_an_error_of_the_case() -> None:
    with pytest.raises(ToolError, match=r"http://127\.0\.0\.1:9/mcp cannot be reached"):
        asyncio.run(used(McpServer(url="http://127.0.0.1:9/mcp")))


def test_a_replay_neither_starts_a_server_nor_connects_to_it() -> None:
    class Kept:
        async def read_tool_result(self, effect: Any) -> Any:
            document = {"name": "add", "description": "Adds.", "parameters": {"type": "object"}}
            return {"tools": [document]} if effect.name.startswith("tools of ") else "5"

        async def store_tool_result(self, effect: Any, result: Any) -> None:
            raise AssertionError("a replay keeps nothing")

    async def use() -> Any:
        kept: Any = Kept()
        effects = CaseToolCalls(kept)
        async with open_tools([McpServer(["no-such-program"])], SAMPLE, effects) as opened:
            (add,) = opened.tools
            return await effects.run_tool_once("add", {}, lambda: add.executor.run_tool(add.document, {}, NOBODY))

    assert asyncio.run(use()) == "5"


def test_a_server_that_does_not_start_is_an_error_of_the_case() -> None:
    with pytest.raises(ToolError, match="no-such-program cannot be reached"):
        asyncio.run(used(McpServer(["no-such-program"])))


# A server without the package `mcp`; its argument says what it does when it is asked for its tools.
PLAIN_SERVER = """
import json, sys, time
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    if asked["method"] == "initialize":
        version = asked["params"]["protocolVersion"]
        reply = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": {"name": "p", "version": "1"}}
    elif sys.argv[1] == "silent":
        time.sleep(60)
    elif sys.argv[1] == "refusing":
        reply = None
    else:
        page = int((asked.get("params") or {}).get("cursor") or 1)
        reply = {"tools": [{"name": f"tool{page}", "inputSchema": {"type": "object"}}]}
        if page < 3:
            reply["nextCursor"] = str(page + 1)
    answer = {"result": reply} if reply else {"error": {"code": -32601, "message": "not today"}}
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], **answer}), flush=True)
"""


async def list_names(*command: str) -> list[str]:
    async with open_tools([McpServer([sys.executable, "-c", *command])], SAMPLE) as opened:
        return [tool.document.name for tool in opened.tools]


@pytest.mark.parametrize("command", [("import time; time.sleep(60)",), (PLAIN_SERVER, "silent")])
def test_a_server_that_never_answers_is_ended_and_an_error_of_the_case(
    monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    monkeypatch.setattr(mcp_servers, "LONGEST_START", 1.0)
    with pytest.raises(ToolError, match="does not list its tools: no answer within 1 s"):
        asyncio.run(asyncio.wait_for(list_names(*command), 30))


def test_a_server_that_refuses_to_list_its_tools_is_an_error_of_the_case() -> None:
    with pytest.raises(ToolError, match="does not list its tools: MCPError: not today"):
        asyncio.run(list_names(PLAIN_SERVER, "refusing"))


def test_all_pages_of_a_server_s_tools_are_read() -> None:
    assert asyncio.run(list_names(PLAIN_SERVER, "paged")) == ["tool1", "tool2", "tool3"]


def test_the_error_of_a_server_that_ends_at_once_names_its_cause() -> None:
    with pytest.raises(ToolError, match="cannot be reached: MCPError: Connection closed"):
        asyncio.run(used(McpServer([sys.executable, "-c", ""])))


def test_a_server_is_named_by_a_command_or_an_address() -> None:
    with pytest.raises(SettingsError, match="not both"):
        McpServer()
