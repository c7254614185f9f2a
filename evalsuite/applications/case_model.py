"""The model of one case, as solvers and applications hold it: each call is logged and goes through the gateway."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import os
import threading
import time
from typing import TYPE_CHECKING, Any, TypeVar

from evalsuite.applications.call_log import CallLog, LoggedCall
from evalsuite.core.errors import CallFailed, EvalsuiteError, RequestRefused
from evalsuite.core.types import Message
from evalsuite.gateway.handle import Effects, ModelHandle, read_prompt
from evalsuite.gateway.loop import refuse_in_child
from evalsuite.models.embeddings_format import decode_vector

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterator, Mapping, Sequence

    from openai import AsyncOpenAI, OpenAI

    from evalsuite.applications.case_api import CaseApi
    from evalsuite.applications.endpoint import Endpoint, LoopbackServer
    from evalsuite.core.types import Completion

T = TypeVar("T")

_making = threading.Lock()
"""Held while the API of a case is made: the case's own threads and the event loop may ask for it at once."""


class CaseModel(ModelHandle):
    """The model of one case, which notes every call. All methods belong to the background loop's thread.

    Attributes:
        log: what was asked and answered.
        effects: the tool calls of the case.
        user_model: name and address of the model that plays users; None where the run has none.
    """

    def __init__(
        self,
        *args: Any,
        effects: Effects | None = None,
        user_model: tuple[str, str | None] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self.user_model = user_model
        self.effects = effects or Effects()
        self.log = CallLog()
        self._api: CaseApi | None = None
        self._endpoints: list[tuple[LoopbackServer, Endpoint]] = []

    async def chat(
        self,
        prompt: str | Sequence[Message | Mapping[str, Any]],
        *,
        tools: Sequence[Mapping[str, Any]] = (),
        **params: Any,
    ) -> Completion:
        """Asks the model; see `protocols.Model.chat`. Tool calls without ids of their own are given some."""
        messages, started, number = read_prompt(prompt), time.monotonic(), next(self.log.numbers)
        with self._noting_failures():
            completion = _numbered(await super().chat(messages, tools=tools, **params), len(messages))
        self.log.add(LoggedCall(self.name, messages, completion, time.monotonic() - started, number))
        return completion

    async def embed(self, texts: Sequence[str], **params: Any) -> list[list[float]]:
        """Vectors of texts, in their order.

        Args:
            texts: to be embedded.
            params: further parameters by their OpenAI names (`dimensions`).

        Raises:
            ModelError: the call failed for good.
        """
        return [decode_vector(vector) for vector in (await self.embeddings(texts, **params)).embeddings]

    async def embeddings(self, texts: Sequence[str], *, name: str | None = None, **params: Any) -> Completion:
        """As `embed`, with vectors as they are kept, and the usage.

        Args:
            texts: to be embedded.
            name: of the embedding model, at this model's address; None is this model.
            params: further parameters.
        """
        # Parameters that the user set for the run are for its chat model.
        asked = ModelHandle(self._asker, name or self.name, self._base_url, self._epoch, {}, self.meter)
        with self._noting_failures():
            messages = [Message("user", text) for text in texts]
            completion = await asked.chat(messages, api="embeddings", **params)
            if len(completion.embeddings) != len(texts):
                raise CallFailed(
                    f"{asked.name} gave {len(completion.embeddings)} vectors for {len(texts)} texts; is it an "
                    "embedding model?"
                )
            return completion

    @contextlib.contextmanager
    def _noting_failures(self) -> Iterator[None]:
        try:
            yield
        except RequestRefused:
            # The caller's own mistake, which it may have expected.
            raise
        except EvalsuiteError as error:
            self.log.failures.append(error)
            raise

    @property
    def api(self) -> CaseApi:
        """The OpenAI API that this model answers; made once, whichever thread asks first."""
        from evalsuite.applications.case_api import CaseApi

        with _making:
            if self._api is None:
                self._api = CaseApi(self)
            return self._api

    def openai(self) -> AsyncOpenAI:
        """An `AsyncOpenAI` whose calls this model answers, for use in an async function."""
        return BlockingModel(self, asyncio.get_running_loop()).openai()

    def openai_sync(self) -> OpenAI:
        """An `OpenAI` whose calls this model answers, for use in other threads than the event loop's."""
        return BlockingModel(self, asyncio.get_running_loop()).openai_sync()

    def endpoint(self) -> Endpoint:
        """An address on loopback where this model is served while the case runs."""
        return self.endpoint_on(asyncio.get_running_loop())

    def endpoint_on(self, loop: asyncio.AbstractEventLoop) -> Endpoint:
        """As `endpoint`, from any thread."""
        from evalsuite.applications.endpoint import listener_of

        listener = listener_of(loop)
        endpoint = listener.open(self.api)
        self._endpoints.append((listener, endpoint))
        return endpoint

    def close_endpoints(self) -> None:
        """Ends the addresses; to be called at the end of the case."""
        while self._endpoints:
            listener, endpoint = self._endpoints.pop()
            listener.close(endpoint)


def _numbered(completion: Completion, place: int) -> Completion:
    """The completion with ids of tool calls that are there and differ, which not every server takes care of."""
    ids = [call.id for call in completion.tool_calls]
    if all(ids) and len(set(ids)) == len(ids):
        return completion
    calls = [
        dataclasses.replace(call, id=f"call_{place}_{number}")
        for number, call in enumerate(completion.tool_calls)
    ]
    return dataclasses.replace(completion, tool_calls=tuple(calls))


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

    def embed(self, texts: Sequence[str], **params: Any) -> list[list[float]]:
        """Vectors of texts; see `CaseModel.embed`."""
        return self._wait(self._model.embed(texts, **params))

    def peer(self, name: str, base_url: str | None = None) -> BlockingModel:
        """Another model, asked on behalf of the same case; see `protocols.Model.peer`."""
        return BlockingModel(self._model.peer(name, base_url), self._loop)

    def openai(self) -> AsyncOpenAI:
        """An `AsyncOpenAI` whose calls this model answers, on any event loop."""
        from evalsuite.applications.clients import async_client

        return async_client(self._model.api, self._loop)

    def openai_sync(self) -> OpenAI:
        """An `OpenAI` whose calls this model answers."""
        from evalsuite.applications.clients import blocking_client

        return blocking_client(self._model.api, self._loop)

    def endpoint(self) -> Endpoint:
        """An address on loopback where this model is served while the case runs."""
        return self._model.endpoint_on(self._loop)

    def _wait(self, call: Coroutine[Any, Any, T]) -> T:
        refuse_in_child(self._process, call)
        return asyncio.run_coroutine_threadsafe(call, self._loop).result()
