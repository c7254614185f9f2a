"""The APIs of OpenAI, Anthropic and Gemini for one case: the case's model answers every request of an application."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from evalsuite.applications import chat_api, gemini_api, messages_api, responses_api
from evalsuite.applications.chat_api import (
    BadRequest,
    HttpAnswer,
    chat_stream,
    error_answer,
    failed_call,
    json_answer,
    read_object,
    response_stream,
)
from evalsuite.core.errors import EvalsuiteError
from evalsuite.core.types import Message

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from evalsuite.applications.chat_api import ChatRequest
    from evalsuite.applications.span_receiver import SpanCollector
    from evalsuite.core.types import Completion

PATHS = ("/chat/completions", "/responses", "/messages", "/embeddings", "/models", "/models/NAME:generateContent")


class AnsweringModel(Protocol):
    """A model that answers chat requests and embeds texts, such as `CaseModel`."""

    @property
    def name(self) -> str: ...

    @property
    def overrides(self) -> Mapping[str, Any]: ...

    async def chat(
        self, prompt: Sequence[Message], *, tools: Sequence[Mapping[str, Any]] = (), **params: Any
    ) -> Completion: ...

    async def embeddings(self, texts: Sequence[str], *, name: str | None = None, **params: Any) -> Completion: ...


class CaseApi:
    """Answers clients' requests with the model of one case, in the thread of the background loop."""

    def __init__(
        self,
        model: AnsweringModel,
        *,
        answers: int = 0,
        find: Callable[[str], AnsweringModel] | None = None,
        left_out: set[str] | None = None,
        stores: bool = True,
    ) -> None:
        self._model = model
        # Whether responses are stored, so that later requests may refer to them by id.
        self._stores = stores
        # Names of request fields that were not sent to the model.
        self._left_out = set() if left_out is None else left_out
        # Function that returns the model for a requested model name.
        self._find = find or (lambda _: model)
        self._answers = answers
        self.spans: SpanCollector | None = None  # Receives the application's spans.
        # Conversations so far, without instructions, by response id, for requests with `previous_response_id`.
        self._conversations: dict[str, tuple[Message, ...]] = {}

    async def answer(self, method: str, path: str, content: bytes) -> HttpAnswer:
        """Answer one HTTP request, errors included; an exception is raised only if the call is cancelled."""
        try:
            path, _, query = path.partition("?")
            if self.spans is not None and (method, path) == ("POST", "/traces"):
                return self.spans.receive(content)
            return await self._answer(method, path.rstrip("/"), query, content)
        except BadRequest as error:
            return error_answer(400, str(error))
        except EvalsuiteError as error:
            return failed_call(error)

    async def _answer(self, method: str, path: str, query: str, content: bytes) -> HttpAnswer:
        if method == "GET" and path.startswith("/models"):
            return self._list_models(path.removeprefix("/models").lstrip("/"))
        makers = {
            "/chat/completions": self._make_chat,
            "/responses": self._respond,
            "/messages": self._make_message,
            "/embeddings": self._embed,
        }
        if method == "POST" and path in makers:
            return await makers[path](read_object(content))
        asked = gemini_api.PATH.fullmatch(path)
        if method == "POST" and asked:
            return await self._generate(read_object(content), asked["model"], asked["method"], query)
        return error_answer(404, f"{method} {path}: not here; this endpoint answers {', '.join(PATHS)}")

    def _list_models(self, name: str) -> HttpAnswer:
        model = {"id": name or self._model.name, "object": "model", "created": 0, "owned_by": "evalsuite"}
        return json_answer(model if name else {"object": "list", "data": [model]})

    def _count_answer(self) -> int:
        self._answers += 1
        return self._answers

    async def _ask(self, asked: ChatRequest, named: object) -> tuple[Completion, str]:
        """Call the model that the request names; return its completion and the model's name for the client."""
        name = str(named or self._model.name)
        self._left_out.update(asked.left_out)
        return await self._find(name).chat(asked.messages, tools=asked.tools, **asked.params), name

    async def _make_chat(self, body: Mapping[str, Any]) -> HttpAnswer:
        completion, name = await self._ask(chat_api.read_chat(body), body.get("model"))
        if not body.get("stream"):
            return json_answer(chat_api.chat_completion(completion, name, self._count_answer()))
        options = body.get("stream_options")
        with_usage = isinstance(options, dict) and bool(options.get("include_usage"))
        return chat_stream(chat_api.chat_chunks(completion, name, self._count_answer(), with_usage=with_usage))

    async def _make_message(self, body: Mapping[str, Any]) -> HttpAnswer:
        completion, name = await self._ask(messages_api.read_message_request(body), body.get("model"))
        message = messages_api.message_object(completion, name, self._count_answer())
        return response_stream(messages_api.message_events(message)) if body.get("stream") else json_answer(message)

    async def _generate(self, body: Mapping[str, Any], name: str, method: str, query: str) -> HttpAnswer:
        completion, _ = await self._ask(gemini_api.read_generation(body), name)
        generation = gemini_api.generation_object(completion, name, self._count_answer())
        if method == "generateContent":
            return json_answer(generation)
        chunks = gemini_api.generation_chunks(generation)
        # Without `alt=sse`, Gemini's API streams one JSON list instead of events.
        return chat_stream(chunks, end=b"") if "alt=sse" in query.split("&") else json_answer(list(chunks))

    async def _respond(self, body: Mapping[str, Any]) -> HttpAnswer:
        overrides = self._find(str(body.get("model") or self._model.name)).overrides
        previous = body.get("previous_response_id")
        if not self._stores and (previous is not None or body.get("store")):
            raise BadRequest(
                "store, previous_response_id: this gateway stores no conversation; leave both out, and send all items "
                "of the conversation as input"
            )
        if overrides.get("api") == "responses":
            asked = responses_api.pass_request(body, self._conversations.get(str(previous), ()), overrides)
        else:
            asked = responses_api.read_request(body, self._find_earlier(previous))
        completion, name = await self._ask(asked, body.get("model"))
        response = responses_api.response_object(body, completion, name, self._count_answer())
        spoken = asked.messages[1:] if body.get("instructions") else asked.messages
        reply = Message("assistant", completion.text, completion.tool_calls)
        if body.get("store") is not False:
            self._conversations[response["id"]] = (*spoken, reply)
        if body.get("stream"):
            return response_stream(responses_api.response_events(response))
        return json_answer(response)

    def _find_earlier(self, previous: object) -> tuple[Message, ...]:
        if previous is None:
            return ()
        if previous not in self._conversations:
            raise BadRequest(f"previous_response_id: no stored response of this case has the id {previous!r}")
        return self._conversations[str(previous)]

    async def _embed(self, body: Mapping[str, Any]) -> HttpAnswer:
        asked = chat_api.read_embedding(body)
        model = self._find(asked.model)
        name = asked.model if model is self._model else None
        completion = await model.embeddings(asked.texts, name=name, **asked.params)
        return json_answer(chat_api.embedding_list(completion, asked))
