"""The model of one case: every call passes through the gateway and is logged for the transcript."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import itertools
import json
import os
import threading
import time
from bisect import insort
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from evalsuite.core.errors import CallFailed, EvalsuiteError, RequestRefused, RunError
from evalsuite.core.json_codec import encode_usage
from evalsuite.core.types import Message, Transcript
from evalsuite.gateway.handle import Effects, ModelHandle, read_prompt
from evalsuite.gateway.loop import refuse_in_child
from evalsuite.models.embeddings_format import decode_vector

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterator, Mapping, Sequence

    from openai import AsyncOpenAI, OpenAI

    from evalsuite.applications.case_api import CaseApi
    from evalsuite.applications.endpoint import Endpoint, LoopbackServer
    from evalsuite.core.types import Completion, ToolCall
    from evalsuite.gateway.handle import CaseAsker


@dataclass(frozen=True, slots=True)
class LoggedCall:
    """One answered call."""

    model: str  # Who was asked.
    messages: tuple[Message, ...]  # The conversation as it was sent.
    completion: Completion  # The answer.
    seconds: float  # Wall time, waiting for the limiter included.
    number: int = 0  # The call's place among the calls that were sent, from 1.

    @property
    def reply(self) -> Message:
        """The answer as the next message of the conversation."""
        return Message("assistant", self.completion.text, self.completion.tool_calls)


@dataclass(slots=True)
class _Conversation:
    """Calls that each continue where the previous one ended."""

    messages: list[Message]
    keys: list[object]

    def continues_in(self, keys: list[object]) -> bool:
        return keys[: len(self.keys)] == self.keys

    def observations(self, reply: int) -> dict[str, str]:
        """Return the results that the application sent for the calls of one reply, keyed by call id."""
        answers = itertools.takewhile(lambda message: message.role != "assistant", self.messages[reply + 1 :])
        return {message.tool_call_id or "": message.content for message in answers if message.role == "tool"}


@dataclass(slots=True)
class CallLog:
    """The calls of one case, in the order in which they were sent, because answers arrive in any order."""

    calls: list[LoggedCall] = field(default_factory=list)  # The answered calls.
    # The errors of calls that failed for good; each means that nothing was measured.
    failures: list[Exception] = field(default_factory=list)
    # Numbers for the calls, taken when they are sent.
    numbers: Iterator[int] = field(default_factory=partial(itertools.count, 1))

    def add(self, call: LoggedCall) -> None:
        insort(self.calls, call, key=lambda other: other.number)

    def complete(self, transcript: Transcript) -> Transcript:
        """Fill a transcript without messages and events with those of the logged calls."""
        if transcript.messages or transcript.events or not self.calls:
            return transcript
        conversations, replies = self._group_calls()
        return dataclasses.replace(
            transcript,
            messages=tuple(message for conversation in conversations for message in conversation.messages),
            reasoning=transcript.reasoning or self.calls[-1].completion.reasoning,
            events=tuple(self._list_events(replies)),
        )

    def transcript(self) -> Transcript:
        """Make the transcript of a case without a solver; the last text is the answer."""
        texts = [call.completion.text for call in self.calls if call.completion.text]
        return self.complete(Transcript(texts[-1] if texts else ""))

    def _group_calls(self) -> tuple[list[_Conversation], list[tuple[_Conversation, int]]]:
        """Group the calls into conversations; return for each call its conversation and the index of its reply."""
        conversations: list[_Conversation] = []
        replies: list[tuple[_Conversation, int]] = []
        for call in self.calls:
            sent = [_key(message) for message in call.messages]
            continued = [open_one for open_one in conversations if open_one.continues_in(sent)]
            conversation = max(continued, key=lambda candidate: len(candidate.keys), default=_Conversation([], []))
            if not continued:
                conversations.append(conversation)
            conversation.messages += [*call.messages[len(conversation.keys) :], call.reply]
            conversation.keys = [*sent, _key(call.reply)]
            replies.append((conversation, len(conversation.messages) - 1))
        return conversations, replies

    def _list_events(self, replies: list[tuple[_Conversation, int]]) -> Iterator[Mapping[str, Any]]:
        for turn, (call, (conversation, place)) in enumerate(zip(self.calls, replies, strict=True), 1):
            completion = call.completion
            yield {
                "kind": "turn",
                "turn": turn,
                "thought": completion.text.strip() or completion.reasoning.strip(),
                "fault": None,
                "model": call.model,
                "seconds": round(call.seconds, 3),
                "usage": encode_usage(completion.usage),
            }
            observations = conversation.observations(place)
            for tool_call in completion.tool_calls:
                seen = observations.get(tool_call.id)
                yield _call_event(turn, tool_call, self._find_later_result(turn, tool_call) if seen is None else seen)

    def _find_later_result(self, turn: int, made: ToolCall) -> str:
        """Find a call's result in any later request, because a changed system prompt begins a new conversation.

        The first request that holds the id decides. Ids may repeat, so the last result in it counts, except after
        another call with the same id.
        """
        for later in self.calls[turn:]:
            found, is_own = None, True
            for message in later.messages:
                for call in message.tool_calls:
                    if call.id == made.id:
                        is_own = _is_same_call(call, made)
                if is_own and message.role == "tool" and message.tool_call_id == made.id:
                    found = message.content
            if found is not None:
                return found
        return ""


def _is_same_call(one: ToolCall, other: ToolCall) -> bool:
    """Compare name and arguments; an application may have reformatted the arguments."""
    return one.name == other.name and _parse_arguments(one.arguments) == _parse_arguments(other.arguments)


def _call_event(turn: int, call: ToolCall, observation: str) -> Mapping[str, Any]:
    arguments = _parse_arguments(call.arguments)
    return {
        "kind": "call",
        "turn": turn,
        "tool": call.name,
        "origin": "",
        "arguments": {} if arguments is None else arguments,
        "faults": ["unparseable"] if arguments is None else [],
        "executor": "application",
        "observation": observation,
        "failed": False,
    }


def _parse_arguments(arguments: str) -> dict[str, Any] | None:
    try:
        value = json.loads(arguments)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _key(message: Message) -> object:
    """Return the parts of a message that stay the same when an application sends it again."""
    return (message.role, message.content.strip(), message.tool_call_id, tuple(call.id for call in message.tool_calls))


T = TypeVar("T")
_making = threading.Lock()
"""Held while the API of a case is made: the case's own threads and the event loop may ask for it at once."""


class CaseModel(ModelHandle):
    """The model of one case; it logs every call. All methods belong to the background loop's thread.

    Attributes:
        log: the requests and answers.
        effects: the tool calls of the case.
        user_model: name and address of the model that plays users; None where the run has none.
    """

    _asker: CaseAsker

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
        self.effects.meter, self.effects.players = self.meter, self.players
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
        """Ask the model; see `protocols.Model.chat`. Tool calls without ids get some."""
        messages, started, number = read_prompt(prompt), time.monotonic(), next(self.log.numbers)
        with self._record_failures():
            completion = _number_calls(await super().chat(messages, tools=tools, **params), len(messages))
        self.log.add(LoggedCall(self.name, messages, completion, time.monotonic() - started, number))
        return completion

    async def embed(self, texts: Sequence[str], **params: Any) -> list[list[float]]:
        """Embed texts and return their vectors in the same order.

        Args:
            texts: the texts to embed.
            params: further parameters by their OpenAI names (`dimensions`).

        Raises:
            ModelError: the call failed for good.
        """
        return [decode_vector(vector) for vector in (await self.embeddings(texts, **params)).embeddings]

    async def embeddings(self, texts: Sequence[str], *, name: str | None = None, **params: Any) -> Completion:
        """Embed texts; the vectors stay encoded, and the completion has the usage.

        Args:
            texts: the texts to embed.
            name: the embedding model, at this model's address; None is this model.
            params: further parameters.
        """
        # The run's generation parameters apply to its chat model, not to embeddings.
        asked = ModelHandle(self._asker, name or self.name, self._base_url, self._epoch, {}, self.meter)
        with self._record_failures():
            messages = [Message("user", text) for text in texts]
            completion = await asked.chat(messages, api="embeddings", **params)
            if len(completion.embeddings) != len(texts):
                raise CallFailed(
                    f"{asked.name} gave {len(completion.embeddings)} vectors for {len(texts)} texts; is it an "
                    "embedding model?"
                )
            return completion

    @contextlib.contextmanager
    def _record_failures(self) -> Iterator[None]:
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
        """Return an `AsyncOpenAI` whose calls this model answers, for use in an async function."""
        return BlockingModel(self, asyncio.get_running_loop()).openai()

    def openai_sync(self) -> OpenAI:
        """Return an `OpenAI` whose calls this model answers, for use in threads other than the event loop's."""
        return BlockingModel(self, asyncio.get_running_loop()).openai_sync()

    def endpoint(self) -> Endpoint:
        """Open an address on loopback where this model is served while the case runs."""
        return self.endpoint_on(asyncio.get_running_loop())

    def endpoint_on(self, loop: asyncio.AbstractEventLoop) -> Endpoint:
        """Open an endpoint from any thread; see `endpoint`."""
        from evalsuite.applications.endpoint import listener_of

        listener = listener_of(loop)
        endpoint = listener.open(self.api)
        self._endpoints.append((listener, endpoint))
        return endpoint

    def close_endpoints(self) -> None:
        """Close the endpoints at the end of the case."""
        while self._endpoints:
            listener, endpoint = self._endpoints.pop()
            listener.close(endpoint)

    async def finish(self) -> None:
        """Close the endpoints and store which requests the case cancelled by itself; called at its end."""
        self.close_endpoints()
        # A call that was cancelled learns of it in the loop's next turn.
        await asyncio.sleep(0)
        for request, seconds in self.meter.cancelled:
            with contextlib.suppress(RunError):
                await self._asker.note_cancelled(request, seconds)

    @property
    def is_finished(self) -> bool:
        """Whether `finish` has nothing to do."""
        return not (self._endpoints or self.meter.cancelled)


def _number_calls(completion: Completion, place: int) -> Completion:
    """Give tool calls distinct ids, because not every server does."""
    ids = [call.id for call in completion.tool_calls]
    if all(ids) and len(set(ids)) == len(ids):
        return completion
    calls = [
        dataclasses.replace(call, id=f"call_{place}_{number}") for number, call in enumerate(completion.tool_calls)
    ]
    return dataclasses.replace(completion, tool_calls=tuple(calls))


class BlockingModel:
    """The model of a case for code without `await`: each method waits for its answer.

    Args:
        model: what is asked.
        loop: the model's event loop, which runs in another thread.
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
        """Ask the model and wait; see `protocols.Model.chat`."""
        return self._wait(self._model.chat(prompt, tools=tools, **params))

    def embed(self, texts: Sequence[str], **params: Any) -> list[list[float]]:
        """Embed texts; see `CaseModel.embed`."""
        return self._wait(self._model.embed(texts, **params))

    def peer(self, name: str, base_url: str | None = None) -> BlockingModel:
        """Return another model that is called for the same case; see `protocols.Model.peer`."""
        return BlockingModel(self._model.peer(name, base_url), self._loop)

    def openai(self) -> AsyncOpenAI:
        """Return an `AsyncOpenAI` whose calls this model answers, on any event loop."""
        from evalsuite.applications.clients import async_client

        return async_client(self._model.api, self._loop)

    def openai_sync(self) -> OpenAI:
        """Return an `OpenAI` whose calls this model answers."""
        from evalsuite.applications.clients import blocking_client

        return blocking_client(self._model.api, self._loop)

    def endpoint(self) -> Endpoint:
        """Open an address on loopback where this model is served while the case runs."""
        return self._model.endpoint_on(self._loop)

    def finish(self) -> None:
        """Close the endpoints and store which requests were cancelled; called at the end of the test."""
        if not (self._model.is_finished or self._loop.is_closed()):
            self._wait(self._model.finish())

    def _wait(self, call: Coroutine[Any, Any, T]) -> T:
        refuse_in_child(self._process, call)
        return asyncio.run_coroutine_threadsafe(call, self._loop).result()
