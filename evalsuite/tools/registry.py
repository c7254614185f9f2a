"""The tools of one episode, by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from evalsuite.core.errors import SettingsError
from evalsuite.core.phrases import beginning
from evalsuite.tools.arguments import LONGEST_NAME, Fault, check_arguments

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from evalsuite.core.types import Sample
    from evalsuite.tools.documents import ToolDocument
    from evalsuite.tools.execution import Executor
    from evalsuite.tools.worlds import OpenedTools, World


@dataclass(frozen=True)
class Tool:
    """A document and what runs it."""

    document: ToolDocument
    executor: Executor


ToolSource: TypeAlias = "Tool | World | OpenedTools | Callable[[Sample], object]"
"""A tool without state, or something that makes the tools of one episode: called with the sample, it returns tools
or an object with `@tool` methods (a class does this); see `worlds.World`."""


class Registry:
    """Tools by name. If two share a name, as in some published folders, the first one counts."""

    def __init__(self, tools: Iterable[Tool] = ()) -> None:
        self._tools: dict[str, Tool] = {}
        for tool in tools:
            self._tools.setdefault(tool.document.name, tool)

    def __contains__(self, name: str) -> bool:
        return name in self._tools

    def __getitem__(self, name: str) -> Tool:
        return self._tools[name]

    @property
    def documents(self) -> tuple[ToolDocument, ...]:
        """All documents, in the order in which the tools were given."""
        return tuple(tool.document for tool in self._tools.values())

    def check(self, name: str, arguments: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[Fault, ...]]:
        """A call's arguments in the tool's types, and everything that is wrong with the call."""
        if name in self._tools:
            return check_arguments(self._tools[name].document, arguments)
        faults = [
            Fault(
                "unknown_tool",
                f"there is no tool {beginning(name, LONGEST_NAME)!r}; there are {', '.join(self._tools)}",
            )
        ]
        if "\\" in name:
            faults.append(Fault("escaped_name", "names are written without backslashes"))
        return dict(arguments), tuple(faults)


def tools_of(made: object) -> list[Tool]:
    """The tools that a source made: a list of tools, or the `@tool` methods of an object, in their order.

    Raises:
        SettingsError: there are none.
    """
    if isinstance(made, Sequence):
        tools = [entry for entry in made if isinstance(entry, Tool)]
        rest = len(made) - len(tools)
    else:
        tools, rest = [getattr(made, name) for name in tool_methods(type(made))], 0
    if rest or not tools:
        raise SettingsError(f"{made!r} holds no tools; decorate its functions or methods with @tool")
    return tools


def documents_of(kind: type) -> list[ToolDocument]:
    """The documents of a class's `@tool` methods, in their order, without making an object."""
    return [method.document for method in tool_methods(kind).values()]


def tool_methods(kind: type) -> dict[str, Tool]:
    """The `@tool` methods of a class by their Python names, those of its bases first."""
    # Looked up on the classes: reading every attribute of an object would run its properties.
    members = {name: member for base in reversed(kind.__mro__) for name, member in vars(base).items()}
    return {name: member for name, member in members.items() if isinstance(member, Tool)}
