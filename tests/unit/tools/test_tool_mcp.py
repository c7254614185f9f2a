"""MCP servers as sources of tools, with a real server in a process of its own."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING, Any

import pytest

from evalsuite.errors import SettingsError, ToolError
from evalsuite.tools.execution import ToolFailure
from evalsuite.tools.mcp_servers import McpServer
from evalsuite.tools.worlds import open_tools
from evalsuite.types import Sample

if TYPE_CHECKING:
    from pathlib import Path

pytest.importorskip("mcp")
SAMPLE = Sample(id="s", input="x")
NOBODY: Any = None
SERVER = """
from mcp.server import MCPServer

server = MCPServer("sums")

@server.tool()
def add(a: int, b: int) -> int:
    "Adds."
    return a + b

@server.tool()
def fail() -> str:
    "Fails."
    raise ValueError("nothing there")

server.run()
"""


async def used(server: McpServer) -> tuple[str, str]:
    async with open_tools([server], SAMPLE) as opened:
        tools = {tool.document.name: tool for tool in opened.tools}
        total = await tools["add"].executor.run(tools["add"].document, {"a": 2, "b": 3}, NOBODY)
        with pytest.raises(ToolFailure) as failure:
            await tools["fail"].executor.run(tools["fail"].document, {}, NOBODY)
    return total, str(failure.value)


def test_tools_of_a_server_in_a_process_of_its_own_are_called(tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text(SERVER, encoding="utf-8")
    total, failure = asyncio.run(used(McpServer([sys.executable, str(tmp_path / "server.py")])))
    assert total == "5"
    assert failure


def test_a_server_that_does_not_start_is_an_error_of_the_case() -> None:
    with pytest.raises(ToolError, match="no-such-program cannot be reached"):
        asyncio.run(used(McpServer(["no-such-program"])))


def test_a_server_is_named_by_a_command_or_an_address() -> None:
    with pytest.raises(SettingsError, match="not both"):
        McpServer()
