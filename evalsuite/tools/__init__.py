"""Tools for tool-using episodes: documents, arguments, executors, and who answers `ask_to_user`."""

from evalsuite.tools.declare import tool
from evalsuite.tools.documents import ToolDocument
from evalsuite.tools.registry import Registry, Tool, tools_of

__all__ = ["Registry", "Tool", "ToolDocument", "tool", "tools_of"]
