"""How tools are run: the executors' protocol, what a failing tool raises, and the text of an observation."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

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
        """Runs one call and returns what the tool returned, text or JSON data.

        Args:
            document: the tool's.
            arguments: already checked against the document.
            model: the case's handle, through which a simulated tool asks its model.

        Raises:
            ToolFailure: the tool failed: an observation.
            EvalsuiteError: the tool could not be run at all: the case's error.
        """
        ...


def as_text(result: Any) -> str:
    """What a tool returned, as the text of an observation: text as it is, anything else as JSON.

    Raises:
        ToolFailure: it can be written neither as text nor as JSON.
    """
    try:
        text = result if isinstance(result, str) else json.dumps(result, ensure_ascii=False, default=str)
    except Exception as error:
        # `str` of an object of the tool's own may raise anything.
        raise ToolFailure(f"the result cannot be written as JSON: {words_of(error)}") from error
    # Half of a surrogate pair would break every file that the observation is written to.
    return text.encode("utf-8", "replace").decode()


def as_json(value: Any) -> Any:
    """A value as plain JSON data, with the text of anything that JSON cannot express.

    Raises:
        ToolFailure: it can be written neither as text nor as JSON.
    """
    return json.loads(as_text(value)) if not isinstance(value, str) else value


def words_of(error: BaseException) -> str:
    """An error's type and message, even if its `__str__` raises."""
    try:
        message = str(error)
    except Exception:  # noqa: BLE001 - a hostile __str__
        message = "(its message cannot be read)"
    return f"{type(error).__name__}: {message}" if message else type(error).__name__
