"""The executor `python`: a typed Python function of the user's own, run in this process."""

from __future__ import annotations

import asyncio
import inspect
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from evalsuite.errors import EvalsuiteError
from evalsuite.tools.execution import ToolFailure

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from evalsuite.protocols import Model
    from evalsuite.tools.documents import ToolDocument


@dataclass(frozen=True, slots=True)
class PythonFunction:
    """Calls a function: an async one directly, any other in a thread, so that nothing else waits for it."""

    function: Callable[..., Any]
    kind: str = "python"

    async def run(self, document: ToolDocument, arguments: Mapping[str, Any], model: Model) -> Any:  # noqa: ARG002 - the executors' signature
        """Calls the function; whatever it raises becomes the failure that the model reads.

        Raises:
            ToolFailure: the function raised.
            EvalsuiteError: the function itself uses evalsuite, which failed.
        """
        try:
            if inspect.iscoroutinefunction(self.function):
                return await self.function(**arguments)
            return await asyncio.to_thread(self.function, **arguments)
        except EvalsuiteError:
            raise
        except (Exception, SystemExit) as error:
            raise ToolFailure(f"{type(error).__name__}: {error}") from error
