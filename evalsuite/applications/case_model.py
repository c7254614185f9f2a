"""The model of one case: every call passes through the gateway and is logged for the transcript."""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
import time
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from evalsuite.applications.call_log import CallLog, LoggedCall
from evalsuite.core.errors import CallFailed, EvalsuiteError, RequestRefused, RunError, SettingsError
from evalsuite.core.types import Completion, Message, Prompt, Request
from evalsuite.gateway.handle import CaseCallProvider, CaseToolCalls, ModelHandle, convert_prompt
from evalsuite.gateway.loop import await_on_loop, refuse_work_in_forked_child
from evalsuite.models.chat_format import decode_vector

if TYPE_CHECKING:
    from openai import AsyncOpenAI, OpenAI

    from evalsuite.applications.case_api import CaseApi
    from evalsuite.applications.endpoint import Endpoint, LoopbackServer
    from evalsuite.gateway.faults import FaultInjector

T = TypeVar("T")
_making = threading.Lock()
"""Lock for making a case's API, because the case's threads and the event loop may request the API at once."""


class CaseModel(ModelHandle):
    """The model of one case; it logs every call. An application may call this model from event loops of its own.

    Attributes:
        log: the requests that the case sent to its model, with the answers.
        effects: the case's tool calls and other effects, stored for replays.
        user_model: name and address of the model that simulates users; None if the run has none.
        models: the model for each name that an application may request; if empty, this model answers all requests.
        endpoints: the open endpoints, each with the server that answers its requests.
        faults: the faults to inject into the calls; None for models without faults, such as simulators and judges.
    """

    _asker: CaseCallProvider

    def __init__(
        self,
        *args: Any,
        effects: CaseToolCalls | None = None,
        user_model: tuple[str, str | None] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self.user_model = user_model
        self.models: Mapping[str, str] = {}
        self.faults: FaultInjector | None = None
        self.effects = effects or CaseToolCalls()
        self.effects.meter, self.effects.players = self.meter, self.players
        self.log = CallLog()
        self._api: CaseApi | None = None
        self.endpoints: list[tuple[LoopbackServer, Endpoint]] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        with contextlib.suppress(RuntimeError):
            self._loop = asyncio.get_running_loop()

    async def _call_on_own_loop(self, call: Coroutine[Any, Any, T]) -> T:
        """Await a call on the case's event loop, because a client of a model server works on one loop only."""
        return await await_on_loop(call, self._loop or asyncio.get_running_loop())

    async def chat(self, prompt: Prompt, *, tools: Sequence[Mapping[str, Any]] = (), **params: Any) -> Completion:
        """Ask the model (see `protocols.Model.chat`), and give distinct ids to tool calls that lack them."""
        messages, started, number = convert_prompt(prompt), time.monotonic(), next(self.log.numbers)
        with self._record_failure(number):
            said = await self._call_on_own_loop(super().chat(messages, tools=tools, **params))
            completion = said.with_distinct_call_ids(f"call_{len(messages)}")
        self.log.add_call(LoggedCall(self.name, messages, completion, time.monotonic() - started, number))
        return completion

    async def _send_request(self, request: Request) -> Completion:
        # Store cancelled calls now: the case still runs, so the application itself cancelled these calls.
        await self._store_cancelled_calls()
        if self.faults:
            return await self.faults.send_request(self._asker, request, self.log.faults)
        return await super()._send_request(request)

    async def embed(self, texts: Sequence[str], **params: Any) -> list[list[float]]:
        """Embed texts and return their vectors in the same order.

        Args:
            texts: the texts to embed.
            params: further parameters by their OpenAI names, such as `dimensions`.

        Raises:
            ModelError: the call failed permanently.
        """
        return [decode_vector(vector) for vector in (await self.request_embeddings(texts, **params)).embeddings]

    async def request_embeddings(self, texts: Sequence[str], *, name: str | None = None, **params: Any) -> Completion:
        """Request embeddings of texts; return a completion with the encoded vectors and the usage.

        Args:
            texts: the texts to embed.
            name: the name of another embedding model at the same address; None means this model.
            params: further parameters.
        """
        # The run's generation parameters apply to chat only, not to embeddings.
        asked = ModelHandle(self._asker, name or self.name, self._base_url, self._epoch, {}, self.meter)
        with self._record_failure(next(self.log.numbers)):
            messages = [Message("user", text) for text in texts]
            completion = await self._call_on_own_loop(asked.chat(messages, api="embeddings", **params))
            if len(completion.embeddings) != len(texts):
                raise CallFailed(
                    f"{asked.name} gave {len(completion.embeddings)} vectors for {len(texts)} texts; is it an "
                    "embedding model?"
                )
            return completion

    def find_model(self, name: str) -> CaseModel:
        """Return the model that an application's request names; its calls are added to this object's log.

        Raises:
            SettingsError: `application(models=...)` lacks the name; the case fails even if the application handles it.
        """
        if not self.models:
            return self
        with self._record_failure(next(self.log.numbers)):
            if name not in self.models:
                raise SettingsError(
                    f"the application asked for the model {name!r:.200}, which application(models=...) lacks; add it: "
                    + ", ".join(self.models)
                )
        model = self.peer(self.models[name])
        model.log, model.faults = self.log, self.faults
        return model

    @contextlib.contextmanager
    def _record_failure(self, call_number: int) -> Iterator[None]:
        """Log an error that the `with` block raises, except `RequestRefused`, because the application may handle it."""
        try:
            yield
        except EvalsuiteError as error:
            if not isinstance(error, RequestRefused):
                self.log.failures[call_number] = error
            raise

    @property
    def api(self) -> CaseApi:
        """The OpenAI API whose requests this model answers; created on first access, from any thread."""
        from evalsuite.applications.case_api import CaseApi

        with _making:
            if self._api is None:
                self._api = CaseApi(self, find=self.find_model, left_out=self.log.left_out)
            return self._api

    def openai(self) -> AsyncOpenAI:
        """Return an `AsyncOpenAI` whose calls this model answers, for use in an async function."""
        return BlockingModel(self, self._loop or asyncio.get_running_loop()).openai()

    def openai_sync(self) -> OpenAI:
        """Return an `OpenAI` whose calls this model answers, for use in threads other than the event loop's."""
        return BlockingModel(self, self._loop or asyncio.get_running_loop()).openai_sync()

    def endpoint(self) -> Endpoint:
        """Open an address on loopback where this model is served while the case runs."""
        return BlockingModel(self, self._loop or asyncio.get_running_loop()).endpoint()

    def close_endpoints(self) -> None:
        """Close the endpoints at the end of the case."""
        while self.endpoints:
            server, endpoint = self.endpoints.pop()
            server.close_endpoint(endpoint)

    async def finish(self) -> None:
        """Close the endpoints, and store the requests that the case cancelled; call this when the case ends."""
        self.close_endpoints()
        # Let the event loop run once, so that cancelled calls receive their cancellation.
        await asyncio.sleep(0)
        await self._store_cancelled_calls()

    async def _store_cancelled_calls(self) -> None:
        while self.meter.cancelled:
            request, seconds = self.meter.cancelled.pop()
            with contextlib.suppress(RunError):
                await self._asker.record_cancellation(request, seconds)

    @property
    def is_finished(self) -> bool:
        """Whether `finish` has nothing to do: all endpoints are closed and all cancelled calls are stored."""
        return not (self.endpoints or self.meter.cancelled)


class BlockingModel:
    """The model of a case for code without `await`: each method waits for its answer.

    Args:
        model: the model to call.
        loop: the model's event loop, which runs in another thread.
    """

    def __init__(self, model: CaseModel, loop: asyncio.AbstractEventLoop) -> None:
        self._model, self._loop, self._process = model, loop, os.getpid()

    @property
    def name(self) -> str:
        """The model's name, as the user gave it."""
        return self._model.name

    def chat(self, prompt: Prompt, *, tools: Sequence[Mapping[str, Any]] = (), **params: Any) -> Completion:
        """Ask the model and wait; see `protocols.Model.chat`."""
        return self._wait_for_result(self._model.chat(prompt, tools=tools, **params))

    def embed(self, texts: Sequence[str], **params: Any) -> list[list[float]]:
        """Embed texts; see `CaseModel.embed`."""
        return self._wait_for_result(self._model.embed(texts, **params))

    def peer(self, name: str, base_url: str | None = None) -> BlockingModel:
        """Return another model that is called for the same case; see `protocols.Model.peer`."""
        return BlockingModel(self._model.peer(name, base_url), self._loop)

    def openai(self) -> AsyncOpenAI:
        """Return an `AsyncOpenAI` whose calls this model answers, on any event loop."""
        from evalsuite.applications.clients import make_async_client

        return make_async_client(self._model.api, self._loop)

    def openai_sync(self) -> OpenAI:
        """Return an `OpenAI` whose calls this model answers."""
        from evalsuite.applications.clients import make_blocking_client

        return make_blocking_client(self._model.api, self._loop)

    def endpoint(self) -> Endpoint:
        """Open an address on loopback where this model is served while the case runs."""
        from evalsuite.applications.endpoint import get_loopback_server

        server = get_loopback_server(self._loop)
        endpoint = server.open_endpoint(self._model.api)
        self._model.endpoints.append((server, endpoint))
        return endpoint

    def finish(self) -> None:
        """Close the endpoints, and store the cancelled requests; call this method at the end of the test."""
        if not (self._model.is_finished or self._loop.is_closed()):
            self._wait_for_result(self._model.finish())

    def _wait_for_result(self, call: Coroutine[Any, Any, T]) -> T:
        refuse_work_in_forked_child(self._process, call)
        return asyncio.run_coroutine_threadsafe(call, self._loop).result()
