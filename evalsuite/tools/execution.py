"""How tools are run: the executors' protocol, what a failing tool raises, and the text of an observation."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from evalsuite.core.errors import SettingsError
from evalsuite.core.phrases import beginning
from evalsuite.tools.arguments import LONGEST_NAME, Fault, check_arguments

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from evalsuite.core.protocols import Model
    from evalsuite.tools.documents import ToolDocument


class ToolFailure(Exception):  # noqa: N818 - an observation, not an error of the run
    """A tool was run and failed. The model reads the message and may try again."""


class Executor(Protocol):
    """Runs calls of a tool."""

    @property
    def kind(self) -> str:
        """The name in records and reports: `python`, `simulated`, `recorded`, `live` or `mcp`."""
        ...

    # An executor with a true attribute `timed` is subject to the time limits of tools.

    async def run(self, document: ToolDocument, arguments: Mapping[str, Any], model: Model) -> Any:
        """Run one call and returns what the tool returned, text or JSON data."""
        ...


def as_text(result: Any) -> str:
    """Convert a tool's result to the text of an observation: text as it is, anything else as JSON."""
    try:
        text = result if isinstance(result, str) else json.dumps(result, ensure_ascii=False, default=str)
    except Exception as error:
        # `str` of an object of the tool's own may raise anything.
        raise ToolFailure(f"the result cannot be written as JSON: {words_of(error)}") from error
    # Half of a surrogate pair would break every file that the observation is written to.
    return text.encode("utf-8", "replace").decode()


def as_json(value: Any) -> Any:
    """Convert a value to plain JSON data, with the text of anything that JSON cannot express."""
    return json.loads(as_text(value)) if not isinstance(value, str) else value


def words_of(error: BaseException) -> str:
    """Write an error's type and message, even if its `__str__` raises."""
    try:
        message = str(error)
    except Exception:  # noqa: BLE001 - a hostile __str__
        message = "(its message cannot be read)"
    return f"{type(error).__name__}: {message}" if message else type(error).__name__


@dataclass(frozen=True)
class Tool:
    """A document and what runs it."""

    document: ToolDocument
    executor: Executor


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
        """Convert a call's arguments to the tool's types; return them and everything that is wrong with the call."""
        if name in self._tools:
            return check_arguments(self._tools[name].document, arguments)
        faults = [
            Fault(
                "unknown_tool",
                f"no tool is named {beginning(name, LONGEST_NAME)!r}; there are {', '.join(self._tools)}",
            )
        ]
        if "\\" in name:
            faults.append(Fault("escaped_name", "names are written without backslashes"))
        return dict(arguments), tuple(faults)


def tools_of(made: object) -> list[Tool]:
    """List the tools that a source made: a list of tools, or the `@tool` methods of an object, in order.

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
    """List the documents of a class's `@tool` methods, in their order, without making an object."""
    return [method.document for method in tool_methods(kind).values()]


def tool_methods(kind: type) -> dict[str, Tool]:
    """Map Python names to the `@tool` methods of a class, those of its bases first."""
    # Looked up on the classes: reading every attribute of an object would run its properties.
    members = {name: member for base in reversed(kind.__mro__) for name, member in vars(base).items()}
    return {name: member for name, member in members.items() if isinstance(member, Tool)}
