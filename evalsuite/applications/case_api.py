"""The APIs of OpenAI, Anthropic and Gemini for one case: the case's model answers every request of an application."""

import itertools
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from evalsuite.applications import chat_api, gemini_api, messages_api, responses_api
from evalsuite.applications.call_log import CallLog
from evalsuite.applications.chat_api import BadRequest, HttpAnswer, make_json_answer
from evalsuite.applications.spans import SpanCollector
from evalsuite.core.errors import EvalsuiteError
from evalsuite.core.protocols import Model
from evalsuite.core.types import Completion, Message

PATHS = ("/chat/completions", "/responses", "/messages", "/embeddings", "/models", "/models/NAME:generateContent")


class ServedModel(Model, Protocol):
    """A model that `CaseApi` serves, such as `CaseModel`."""

    log: CallLog

    def find_model(self, name: str) -> "ServedModel":
        """Return the model for the model name in a request."""

    async def request_embeddings(
        self, texts: Sequence[str], *, name: str | None = None, **params: Any
    ) -> Completion: ...


class CaseApi:
    """Answers clients' requests with the model of one case, in the thread of the background loop."""

    spans: SpanCollector | None = None  # Receives the application's spans.

    def __init__(self, model: ServedModel, *, answers: int = 0, stores: bool = True) -> None:
        self._model = model
        self._stores = stores  # Whether responses are stored, so that later requests may refer to them by id.
        self._numbers = itertools.count(answers + 1)
        # Earlier conversations, without instructions, by response id; `previous_response_id` continues one of them.
        self._conversations: dict[str, tuple[Message, ...]] = {}

    async def answer_request(self, method: str, path: str, content: bytes) -> HttpAnswer:
        """Answer one HTTP request; convert errors to answers with an error status."""
        try:
            path, _, query = path.partition("?")
            if self.spans is not None and (method, path) == ("POST", "/traces"):
                return self.spans.receive_export(content)
            return await self._route_request(method, path.rstrip("/"), query, content)
        except (BadRequest, EvalsuiteError) as error:
            return chat_api.make_failure_answer(error)

    async def _route_request(self, method: str, path: str, query: str, content: bytes) -> HttpAnswer:
        if method == "GET" and path.startswith("/models"):
            name = path.removeprefix("/models").lstrip("/")
            model = {"id": name or self._model.name, "object": "model", "created": 0, "owned_by": "evalsuite"}
            return make_json_answer(model if name else {"object": "list", "data": [model]})
        makers = {
            "/chat/completions": self._answer_chat_request,
            "/responses": self._answer_responses_request,
            "/messages": self._answer_messages_request,
            "/embeddings": self._answer_embeddings_request,
        }
        if method == "POST" and path in makers:
            return await makers[path](chat_api.parse_body(content))
        asked = gemini_api.PATH.fullmatch(path)
        if method == "POST" and asked:
            body = chat_api.parse_body(content)
            return await self._answer_gemini_request(body, asked["model"], asked["method"], query)
        return chat_api.make_error_answer(404, f"{method} {path}: not here; this endpoint answers {', '.join(PATHS)}")

    async def _call_model(self, request: chat_api.ChatRequest, requested_name: object) -> tuple[Completion, str]:
        """Return the completion and the model's name; record which of the request's fields were left out."""
        name = str(requested_name or self._model.name)
        self._model.log.left_out.update(request.left_out)
        return await self._model.find_model(name).chat(request.messages, tools=request.tools, **request.params), name

    async def _answer_chat_request(self, body: Mapping[str, Any]) -> HttpAnswer:
        completion, name = await self._call_model(chat_api.parse_chat_request(body), body.get("model"))
        answer = chat_api.make_chat_completion(completion, name, next(self._numbers))
        if not body.get("stream"):
            return make_json_answer(answer)
        options = body.get("stream_options")
        with_usage = isinstance(options, dict) and bool(options.get("include_usage"))
        return chat_api.make_chat_stream(chat_api.make_chat_chunks(answer, with_usage=with_usage))

    async def _answer_messages_request(self, body: Mapping[str, Any]) -> HttpAnswer:
        completion, name = await self._call_model(messages_api.convert_request(body), body.get("model"))
        message = messages_api.make_message_object(completion, name, next(self._numbers))
        if body.get("stream"):
            return chat_api.make_event_stream(messages_api.make_message_events(message))
        return make_json_answer(message)

    async def _answer_gemini_request(self, body: Mapping[str, Any], name: str, method: str, query: str) -> HttpAnswer:
        completion, _ = await self._call_model(gemini_api.convert_request(body), name)
        response = gemini_api.make_content_response(completion, name, next(self._numbers))
        if method == "generateContent":
            return make_json_answer(response)
        chunks = gemini_api.make_content_chunks(response)
        if "alt=sse" in query.split("&"):
            return chat_api.make_chat_stream(chunks, end="")
        return make_json_answer(list(chunks))  # Without `alt=sse`, Gemini's API streams one JSON list.

    async def _answer_responses_request(self, body: Mapping[str, Any]) -> HttpAnswer:
        overrides = self._model.find_model(str(body.get("model") or self._model.name)).overrides
        previous = body.get("previous_response_id")
        if not self._stores and (previous is not None or body.get("store")):
            raise BadRequest(
                "store, previous_response_id: this gateway stores no conversation; leave both out, and send all items "
                "of the conversation as input"
            )
        earlier = self._conversations.get(str(previous), ())
        if overrides.get("api") == "responses":
            asked = responses_api.make_forwarded_request(body, earlier, overrides)
        elif previous is None or str(previous) in self._conversations:
            asked = responses_api.convert_request(body, earlier)
        else:
            raise BadRequest(f"previous_response_id: no stored response of this case has the id {previous!r}")
        completion, name = await self._call_model(asked, body.get("model"))
        response = responses_api.make_response_object(body, completion, name, next(self._numbers))
        spoken = asked.messages[1:] if body.get("instructions") else asked.messages
        reply = Message("assistant", completion.text, completion.tool_calls)
        if body.get("store") is not False:
            self._conversations[response["id"]] = (*spoken, reply)
        if body.get("stream"):
            return chat_api.make_event_stream(responses_api.make_response_events(response))
        return make_json_answer(response)

    async def _answer_embeddings_request(self, body: Mapping[str, Any]) -> HttpAnswer:
        texts, params = chat_api.parse_embedding_request(body)
        model = self._model.find_model(body["model"])
        name = body["model"] if model is self._model else None
        completion = await model.request_embeddings(texts, name=name, **params)
        return make_json_answer(chat_api.make_embeddings_answer(body, completion))
