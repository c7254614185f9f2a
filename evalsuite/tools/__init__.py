"""Tools for episodes: documents, arguments, executors, worlds, and simulated users."""

from evalsuite.tools.declare import tool
from evalsuite.tools.documents import ToolDocument
from evalsuite.tools.registry import Registry, Tool, tools_of

__all__ = ["Registry", "Tool", "ToolDocument", "tool", "tools_of"]
