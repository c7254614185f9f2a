"""The model of one case, whose calls are logged for the transcript, and an application's other effects.

Every call of the model passes through the gateway. Replays and resumed runs do not repeat an effect, such as a mail.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import inspect
import json
import os
import threading
import time
from bisect import insort
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, cast

from evalsuite.applications.call_log import CallLog, LoggedCall
from evalsuite.core.errors import CallFailed, EvalsuiteError, RequestRefused, RunError, SettingsError, SolverError
from evalsuite.core.threads import is_async
from evalsuite.core.types import Completion, Message, Prompt, Request
from evalsuite.gateway.handle import CASE_EFFECTS, CaseCallProvider, CaseToolCalls, ModelHandle, convert_prompt
from evalsuite.gateway.loop import await_on_loop, is_current_loop, refuse_work_in_forked_child
from evalsuite.models.openai_formats import decode_vector

if TYPE_CHECKING:
    from openai import AsyncOpenAI, OpenAI

    from evalsuite.applications.case_api import CaseApi
    from evalsuite.applications.endpoint import Endpoint, LoopbackServer
    from evalsuite.gateway.faults import FaultInjector

P = ParamSpec("P")
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
        call = LoggedCall(self.name, messages, completion, time.monotonic() - started, number)
        insort(self.log.calls, call, key=lambda other: other.number)
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
            SettingsError: `application(models=...)` lacks the name. The case fails even if the error is handled.
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
                self._api = CaseApi(self)
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


def effect(function: Callable[P, T]) -> Callable[P, T]:
    """Decorate an application's function, so that replays and resumed runs do not call it again.

    In a replayed or resumed case, the function is not executed, and its caller gets the stored result. If the run ended
    during a call, the resumed run repeats this call; nested calls of decorated functions return their stored results.
    Outside of a case's solver, the decorated function runs as if undecorated. Calls are matched by the order of their
    start, so parallel calls must start in a fixed order. A call that raises an exception is not stored, but repeated.

    Args:
        function: a plain or async function whose arguments and result are JSON data; tuples become lists.

    Raises:
        SolverError: an argument or the result is not JSON data, or a plain function would block the event loop.
        ReplayMiss: a replay calls the function with other arguments or in another order than the run.
        RunError: the journal cannot be used.
    """
    name = f"{function.__module__}.{function.__qualname__}"
    signature = inspect.signature(function)

    def convert_arguments_to_json(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        bound = signature.bind(*args, **kwargs).arguments
        return _require_json_data({key: value for key, value in bound.items() if key != "self"}, f"{name}: an argument")

    @functools.wraps(function)
    async def call_async_function_once(*args: Any, **kwargs: Any) -> Any:
        found = CASE_EFFECTS.get()
        work = cast("Callable[..., Coroutine[Any, Any, Any]]", function)
        if found is None or not found[0].stores_calls:
            return await work(*args, **kwargs)
        effects, loop = found
        place, kept = await await_on_loop(effects.begin_tool_call(name, convert_arguments_to_json(args, kwargs)), loop)
        if place is None:
            return kept["returned"]
        with effects.collect_model_calls(place, loop) as calls:
            result = _require_json_data(await work(*args, **kwargs), f"{name}: its result")
        await await_on_loop(effects.end_tool_call(place, calls, {"returned": result}), loop)
        return result

    @functools.wraps(function)
    def call_function_once(*args: Any, **kwargs: Any) -> Any:
        found = CASE_EFFECTS.get()
        if found is None or not found[0].stores_calls:
            return function(*args, **kwargs)
        effects, loop = found
        if is_current_loop(loop):
            raise SolverError(
                f"{name}: this plain function with @effect was called in an async solver, where waiting for the "
                "journal would stop all cases: make it async, or call it with asyncio.to_thread"
            )
        begun = effects.begin_tool_call(name, convert_arguments_to_json(args, kwargs))
        place, kept = asyncio.run_coroutine_threadsafe(begun, loop).result()
        if place is None:
            return kept["returned"]
        with effects.collect_model_calls(place, loop) as calls:
            result = _require_json_data(function(*args, **kwargs), f"{name}: its result")
        asyncio.run_coroutine_threadsafe(effects.end_tool_call(place, calls, {"returned": result}), loop).result()
        return result

    return cast("Callable[P, T]", call_async_function_once if is_async(function) else call_function_once)


def _require_json_data(value: Any, label: str) -> Any:
    """Return the data as JSON would read it back (tuples become lists); raise SolverError for other data."""
    try:
        return json.loads(json.dumps(value, allow_nan=False))
    except (TypeError, ValueError) as error:
        raise SolverError(
            f"{label} is not JSON data ({error}); a function with @effect takes and returns plain data, because the "
            "run's journal stores both"
        ) from error
