"""The model of one case, as solvers and applications hold it: each call is logged and goes through the gateway."""

from __future__ import annotations

import asyncio
import os
import time
from typing import TYPE_CHECKING, Any

from evalsuite.applications.call_log import CallLog, LoggedCall
from evalsuite.errors import EvalsuiteError, RequestRefused
from evalsuite.gateway.handle import ModelHandle, read_prompt
from evalsuite.gateway.loop import refuse_in_child

if TYPE_CHECKING:
    from collections.abc import Coroutine, Mapping, Sequence

    from evalsuite.types import Completion, Message


class CaseModel(ModelHandle):
    """See `protocols.Model`; all methods belong to the thread of the background loop."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.log = CallLog()

    async def chat(
        self,
        prompt: str | Sequence[Message | Mapping[str, Any]],
        *,
        tools: Sequence[Mapping[str, Any]] = (),
        **params: Any,
    ) -> Completion:
        """Asks the model; see `protocols.Model.chat`."""
        messages, started = read_prompt(prompt), time.monotonic()
        try:
            completion = await super().chat(messages, tools=tools, **params)
        except RequestRefused:
            # The caller's own mistake, which it may have expected.
            raise
        except EvalsuiteError as error:
            self.log.failures.append(error)
            raise
        self.log.calls.append(LoggedCall(self.name, messages, completion, time.monotonic() - started))
        return completion


class BlockingModel:
    """The model of a case for code without `await`: each method waits for its answer.

    Args:
        model: what is asked.
        loop: where it is asked; runs in another thread.
    """

    def __init__(self, model: CaseModel, loop: asyncio.AbstractEventLoop) -> None:
        self._model, self._loop, self._process = model, loop, os.getpid()

    @property
    def name(self) -> str:
        """The model as the user names it."""
        return self._model.name

    def chat(
        self,
        prompt: str | Sequence[Message | Mapping[str, Any]],
        *,
        tools: Sequence[Mapping[str, Any]] = (),
        **params: Any,
    ) -> Completion:
        """Asks the model and waits; see `protocols.Model.chat`."""
        return self._wait(self._model.chat(prompt, tools=tools, **params))

    def _wait(self, call: Coroutine[Any, Any, Completion]) -> Completion:
        refuse_in_child(self._process, call)
        return asyncio.run_coroutine_threadsafe(call, self._loop).result()
