"""`@tool`: a tool's document made from a typed function's signature and docstring."""

from __future__ import annotations

import typing
from typing import TYPE_CHECKING, Any, overload

from evalsuite.core.errors import SettingsError
from evalsuite.tools.docstrings import read_docstring
from evalsuite.tools.documents import ToolDocument
from evalsuite.tools.python import PythonFunction
from evalsuite.tools.registry import Tool
from evalsuite.tools.signatures import read_signature

if TYPE_CHECKING:
    from collections.abc import Callable


class DeclaredTool(Tool):
    """A tool made by `@tool`: it can still be called as a function, and is bound like a method in a class."""

    __slots__ = ()

    @property
    def function(self) -> Callable[..., Any]:
        """The decorated function."""
        return self._executor.function

    @property
    def _executor(self) -> PythonFunction:
        return typing.cast("PythonFunction", self.executor)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the function directly, for example from a test of the tool."""
        return self.function(*args, **kwargs)

    def __get__(self, instance: object, owner: type | None = None) -> DeclaredTool:
        if instance is None:
            return self
        mine = self._executor
        bound = PythonFunction(self.function.__get__(instance, owner), mine.signature, mine.seconds)
        return DeclaredTool(self.document, bound)


@overload
def tool(function: Callable[..., Any], /) -> DeclaredTool: ...


@overload
def tool(
    *, name: str | None = None, description: str | None = None, seconds: float | None = None
) -> Callable[[Callable[..., Any]], DeclaredTool]: ...


def tool(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    seconds: float | None = None,
) -> DeclaredTool | Callable[[Callable[..., Any]], DeclaredTool]:
    """Makes a tool of a Python function, or of a method of a class that is instantiated for each episode.

    The tool's parameters come from the signature, their descriptions from the docstring (Google, NumPy or Sphinx
    style). Types may be `str`, `int`, `float`, `bool`, `Any`, `Literal`, lists, dicts and
    sequences of these, unions with None, and whatever pydantic knows: an Enum, a date, a dataclass, a TypedDict,
    a pydantic model. The function is called with values of these types.

    Args:
        function: the decorated function, if the decorator is used without parentheses.
        name: the name that the model must use; by default the function's own.
        description: what the model reads about the tool; by default the docstring up to its first section.
        seconds: time limit of a call; a call that takes longer fails, and the model reads that.

    Raises:
        SettingsError: there is neither docstring nor description, a parameter is not annotated, has a type
            that JSON has not, or cannot be given by name.
    """
    if function is None:
        return lambda decorated: _declared(decorated, name, description, seconds)
    return _declared(function, name, description, seconds)


def _declared(
    function: Callable[..., Any], name: str | None, description: str | None, seconds: float | None
) -> DeclaredTool:
    name = name or function.__name__
    from_docstring, about = read_docstring(function.__doc__ or "")
    if not (description or from_docstring):
        raise SettingsError(
            f"tool {name!r} has no docstring, which is what the model reads about it; write one, or pass description="
        )
    signature = read_signature(function, about)
    document = ToolDocument(name, description or from_docstring, signature.schema, function.__module__)
    return DeclaredTool(document, PythonFunction(function, signature, seconds))
