from .declare import tool
from .execution import Registry, Tool, ToolDocument, tools_of
from .mcp_servers import McpServer
from .simulated import Persona, Scripted
from .worlds import World

__all__ = ["McpServer", "Persona", "Registry", "Scripted", "Tool", "ToolDocument", "World", "tool", "tools_of"]
