"""The executor `python`: a typed Python function of the user's own, run in this process."""

from __future__ import annotations

import asyncio
import inspect
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from evalsuite.core.errors import EvalsuiteError
from evalsuite.core.threads import RaisedInThread, in_thread, is_async
from evalsuite.tools.execution import ToolFailure, words_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from evalsuite.core.protocols import Model
    from evalsuite.tools.documents import ToolDocument
    from evalsuite.tools.signatures import Signature


@dataclass(frozen=True, slots=True)
class PythonFunction:
    """Calls a function: an async one directly, any other in a thread of its own, so that nothing else waits for it.

    Attributes:
        function: the user's function.
        signature: converts JSON arguments into the types of the function's parameters.
        seconds: time limit of a call; None leaves it to the episode.
    """

    function: Callable[..., Any]
    signature: Signature | None = None
    seconds: float | None = None
    kind: str = "python"
    timed: bool = True

    async def run(self, document: ToolDocument, arguments: Mapping[str, Any], model: Model) -> Any:  # noqa: ARG002 - the executors' signature
        """Calls the function; whatever it raises becomes the failure that the model reads.

        Raises:
            ToolFailure: the function raised, or took too long.
            EvalsuiteError: the function itself uses evalsuite, which failed.
        """
        values = self.signature.read(arguments) if self.signature else dict(arguments)
        try:
            async with asyncio.timeout(self.seconds) as limit:
                return await self._called(values)
        except TimeoutError as error:
            if limit.expired():
                raise ToolFailure(f"no answer within {self.seconds:g} seconds") from None
            raise ToolFailure(words_of(error)) from error

    async def _called(self, arguments: Mapping[str, Any]) -> Any:
        try:
            if is_async(self.function):
                return await self.function(**arguments)
            result = await in_thread(self.function, **arguments)
            return await result if inspect.isawaitable(result) else result
        except (EvalsuiteError, TimeoutError, GeneratorExit):
            raise
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            raise ToolFailure(words_of(error)) from error
        except RaisedInThread as error:
            raise ToolFailure(str(error)) from error
        except BaseException as error:
            # A tool that calls sys.exit must not end the event loop.
            raise ToolFailure(words_of(error)) from error
