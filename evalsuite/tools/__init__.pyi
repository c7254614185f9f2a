from .declare import tool
from .documents import ToolDocument
from .mcp_servers import McpServer
from .personas import Persona, Scripted
from .registry import Registry, Tool, tools_of
from .worlds import World

__all__ = [
    "McpServer",
    "Persona",
    "Registry",
    "Scripted",
    "Tool",
    "ToolDocument",
    "World",
    "tool",
    "tools_of",
]
