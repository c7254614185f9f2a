"""Tools from servers that speak MCP (modelcontextprotocol.io), over standard input and output or over HTTP.

This module needs the package `mcp` (the extra `mcp`).
"""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any

from evalsuite.core.errors import EvalsuiteError, SettingsError, ToolError, describe_error
from evalsuite.core.protocols import Model
from evalsuite.gateway.handle import CaseToolCalls
from evalsuite.tools.execution import Tool, ToolDocument, ToolFailure

LONGEST_START = 120.0  # Seconds that a server has to list its tools; its command may install packages first.
LONGEST_PING = 5.0  # Seconds that a server has to answer a ping after a call of a tool failed.


@dataclass(frozen=True, slots=True)
class McpServer:
    """A server that offers tools to an agent; each episode starts the server's command or connects to its URL.

    The journal stores the list of tools and all calls, so a replay does not need the server.

    Attributes:
        command: the program that starts the server, with its arguments; empty if `url` is given.
        url: the address of a server that speaks MCP's streamable HTTP.
        env: environment variables that the command gets in addition.
    """

    command: Sequence[str] = ()
    url: str = ""
    env: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if bool(self.command) == bool(self.url) or isinstance(self.command, str):
            raise SettingsError("McpServer needs either a command, as a list of words, or a url, and not both")

    async def open(self, effects: CaseToolCalls, stack: AsyncExitStack) -> list[Tool]:
        """Connect to the server, list its tools, and close the connection with the stack.

        Raises:
            ToolError: the server does not answer.
        """
        connection = _McpConnection(self)
        stack.push_async_callback(connection.close)
        kept = await effects.run_tool_once(f"tools of {self.name}", {}, connection.list_tools)
        return [Tool(ToolDocument(**document, origin=self.name), connection) for document in kept["tools"]]

    @property
    def name(self) -> str:
        """The server's name in records."""
        return self.url or " ".join(self.command)


class _McpConnection:
    """Calls a server's tools; a single task opens and closes the session, because the library `mcp` requires this."""

    kind = "mcp"
    timed = True

    def __init__(self, server: McpServer) -> None:
        self._server = server
        self._end = asyncio.Event()
        self._ready: asyncio.Future[Any] | None = None
        self._task: asyncio.Task[None] | None = None

    async def open_session(self) -> Any:
        """Return the session with the server; the first call opens it."""
        if self._ready is None:
            self._ready = asyncio.get_running_loop().create_future()
            self._task = asyncio.create_task(self._hold_session_open(self._ready))
        return await asyncio.shield(self._ready)

    async def _hold_session_open(self, ready: asyncio.Future[Any]) -> None:
        """Open the session, and set it as the future's result; when `close` is called, close the session."""
        try:
            from mcp import ClientSession, StdioServerParameters
            from mcp.client.stdio import get_default_environment, stdio_client
            from mcp.client.streamable_http import streamable_http_client
        except ImportError as error:
            ready.set_exception(SettingsError(f"McpServer needs the package `mcp`: install evalsuite[mcp] ({error})"))
            return
        server = self._server
        try:
            transport: Any
            if server.url:
                transport = streamable_http_client(server.url)
            else:
                env = {**get_default_environment(), **server.env}
                program, *arguments = server.command
                transport = stdio_client(StdioServerParameters(command=program, args=arguments, env=env))
            async with transport as streams, ClientSession(streams[0], streams[1]) as session:
                await session.initialize()
                ready.set_result(session)
                await self._end.wait()
        except Exception as error:  # noqa: BLE001 - somebody waits for the session
            cause = error
            while isinstance(cause, ExceptionGroup):  # An ExceptionGroup's message does not name the cause.
                cause = cause.exceptions[0]
            if not ready.done():
                message = f"the MCP server {server.name} cannot be reached: {describe_error(cause)}"
                ready.set_exception(ToolError(message))

    async def list_tools(self) -> dict[str, Any]:
        try:
            async with asyncio.timeout(LONGEST_START):
                session = await self.open_session()
                from mcp.types import PaginatedRequestParams

                page = await session.list_tools()
                tools = list(page.tools)
                while page.next_cursor:
                    page = await session.list_tools(params=PaginatedRequestParams(cursor=page.next_cursor))
                    tools += page.tools
        except EvalsuiteError:
            raise
        except Exception as error:
            why = f"no answer within {LONGEST_START:g} s" if isinstance(error, TimeoutError) else describe_error(error)
            raise ToolError(f"the MCP server {self._server.name} does not list its tools: {why}") from error
        plain = [tool.model_dump(mode="json", by_alias=True) for tool in tools]
        return {
            "tools": [
                {"name": tool["name"], "description": tool.get("description") or "", "parameters": tool["inputSchema"]}
                for tool in plain
            ]
        }

    async def run_tool(self, document: ToolDocument, arguments: Mapping[str, Any], model: Model) -> str:  # noqa: ARG002 - the executors' signature
        session = await self.open_session()
        try:
            result = await session.call_tool(document.name, dict(arguments))
        except Exception as error:
            # Check by a ping whether the server still answers after this error.
            try:
                async with asyncio.timeout(LONGEST_PING):
                    await session.send_ping()
            except Exception as gone:
                raise ToolError(f"the MCP server {self._server.name} has ended: {describe_error(error)}") from gone
            raise ToolFailure(describe_error(error)) from error
        plain = result.model_dump(mode="json", by_alias=True)
        text = "\n".join(part.get("text") or f"({part['type']})" for part in plain["content"])
        if plain.get("isError"):
            raise ToolFailure(text)
        return text

    async def close(self) -> None:
        """End the session; if this connection started the server, also end the server."""
        self._end.set()
        if self._task is not None:
            if self._ready is not None and not self._ready.done():
                self._task.cancel()  # The server has not answered yet, and perhaps never will.
            await asyncio.gather(self._task, return_exceptions=True)
