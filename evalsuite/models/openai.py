"""A backend for OpenAI and for servers that use OpenAI's formats: Azure, vLLM, Ollama, llama.cpp, routers.

The openai package is the client: it takes care of Azure's addresses, Entra ID tokens, organisations and projects,
custom headers, proxies and certificates. Retries, limits and the parsing of answers are evalsuite's own code. For
speed, evalsuite bypasses the typed layer of the openai package (see ARCHITECTURE.md).
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from importlib.machinery import PathFinder
from threading import get_ident
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from evalsuite.core.errors import BackendUnavailable, EvalsuiteError, RequestRefused
from evalsuite.core.json_codec import dumps
from evalsuite.core.redaction import redact
from evalsuite.models import openai_formats, protocol
from evalsuite.models.credentials import OPENAI, Access, ServerAddress, parse_address

if TYPE_CHECKING:
    from openai import AsyncOpenAI

    from evalsuite.core.types import Completion, Request
    from evalsuite.models.openai_client import OpenAIClient, ServerAnswer

T = TypeVar("T")


Api: TypeAlias = "tuple[str, Callable[[Request, str], dict[str, Any]], Callable[[Any], Completion]]"
APIS: Mapping[str, Api] = {
    "chat": ("/chat/completions", openai_formats.build_chat_body, openai_formats.parse_chat_answer),
    "embeddings": ("/embeddings", openai_formats.build_embeddings_body, openai_formats.parse_embeddings),
    "responses": ("/responses", openai_formats.build_response_body, openai_formats.parse_response),
}
"""By value of the parameter `api`: the path, the function that builds a body, and the one that reads an answer."""

UNUSED_TYPES = frozenset({"openai.types", "openai.types.responses"})
"""Packages of openai with the classes of its typed layer, most of which no call of evalsuite needs."""

LARGEST_FILE = 2**30  # Maximum bytes of a batch's output, which has at most 50,000 answers.
SHORTEST_SECRET = 8  # Minimum characters of a masked secret, because shorter text may be part of an ordinary word.


class OpenAIBackend(protocol.Backend):
    """Calls any model whose API uses OpenAI's formats.

    Args:
        address: the API's address; None means OpenAI itself.
        unknown_kind: the text before a colon in the model's name if no kind of model has this name; for messages.
    """

    metered = True

    def __init__(
        self, address: ServerAddress | str | None = None, access: Access | None = None, unknown_kind: str = ""
    ) -> None:
        self._unknown_kind = unknown_kind
        self._address = parse_address(address or OPENAI) if isinstance(address, str | None) else address
        self._access = access or Access()
        self.base_url = self._address.shown
        self._secrets = self._address.list_secrets()
        self.identity = f"openai {self.base_url}"
        self._client: OpenAIClient | None = None
        self.on_exhausted: Callable[[float], None] | None = None
        self._opening = asyncio.Lock()

    def check(self) -> None:
        """Check that a key is set if the server is OpenAI's own; other servers may accept calls without a key."""
        if self._address.is_openai and not self._access.key:
            kinds = f"no kind of model is called {self._unknown_kind!r}, and " if self._unknown_kind else ""
            raise BackendUnavailable(
                f"{kinds}{self.base_url} needs a key: set {self._access.key_name}, name a server of your own with "
                "--model-base-url, or use the embedded model with --model=local:smollm2"
            )

    async def prepare(self) -> None:
        """Open the client before the first call, to avoid a delay; if this fails, `complete` reports the error."""
        with suppress(Exception):
            await self._open_client()

    async def complete(self, request: Request) -> Completion:
        self.check()
        return _return_or_raise(await self._send_request(request))

    async def _send_request(self, request: Request) -> Completion | Exception:
        """Return the completion or the error; the caller raises the error, so that no stack frame contains the key."""
        try:
            answer = await self._post_request(request)
        except Exception as error:  # noqa: BLE001 - whatever the client raises
            return self._make_error(error)
        if not 200 <= answer.status < 300:
            return self._make_status_error(answer.status, answer.headers, answer.content)
        try:
            return self._read_answer(request, answer)
        except Exception as error:  # noqa: BLE001 - without the frames that hold the answer
            return error.with_traceback(None)

    async def _post_request(self, request: Request) -> ServerAnswer:
        path, build_body, _ = self._find_api(request)
        content = dumps(build_body(request, request.model)).encode()
        headers, query = (request.params.get(name) or {} for name in ("extra_headers", "extra_query"))
        client = self._client or await self._open_client()
        return await client.post_content(path, content, headers, query)

    def _find_api(self, request: Request) -> Api:
        name = str(request.params.get("api") or "chat")
        if name not in APIS:
            raise BackendUnavailable(f"--model-param api={name}: there are {', '.join(APIS)}")
        return APIS[name]

    async def _open_client(self) -> OpenAIClient:
        async with self._opening:
            if self._client is None:
                # Import in a thread, so that other tasks continue; the import takes a second.
                package = await asyncio.to_thread(import_client)
                self._client = package.OpenAIClient(self._address, self._access)
        return self._client

    def _read_answer(self, request: Request, answer: ServerAnswer) -> Completion:
        content = self._mask_credentials(answer.content)
        streamed = answer.headers.get("content-type", "").startswith("text/event-stream")
        try:
            plain = openai_formats.join_stream(content) if streamed else json.loads(content)
        except protocol.LostAnswer as error:
            raise protocol.LostAnswer(self._mask_text(str(error))) from None
        except (ValueError, RecursionError):
            words = self._mask_text(f"the server's answer is not JSON: {content[:200]!r}")
            raise protocol.LostAnswer(words) from None
        if streamed or b"\\" in content:  # A credential may be spread over a stream's events, or escaped.
            content = self._mask_credentials(dumps(plain).encode())
            plain = json.loads(content)
        completion = self._read_completion(request, plain, content)
        if self.on_exhausted is not None and (seconds := protocol.read_quota_wait(answer.headers)):
            self.on_exhausted(seconds)
        return completion

    def _read_completion(self, request: Request, answer: Any, content: bytes) -> Completion:
        """Convert a server's JSON to a completion; if the JSON states an error, raise this error."""
        error = answer.get("error") if isinstance(answer, dict) else None
        if error:
            status = protocol.read_error_status(error.get("code") if isinstance(error, dict) else None)
            raise self._make_status_error(status, {}, content)
        _, _, parse_answer = self._find_api(request)
        return parse_answer(answer)

    def copy_without_size_limit(self) -> OpenAIBackend:
        """Return a backend for the same server that accepts larger answers, because files exceed the usual limit."""
        return OpenAIBackend(self._address, replace(self._access, max_answer=LARGEST_FILE))

    def make_batch_line(self, request: Request) -> tuple[str, dict[str, Any]]:
        """Convert a request to the path and body of a line in a batch; omit the parameters of streaming."""
        path, build_body, _ = self._find_api(request)
        params = {name: value for name, value in request.params.items() if not name.startswith("stream")}
        return f"/v1{path}", build_body(replace(request, params=params), request.model)

    def read_batch_result(self, request: Request, status: int, body: Any) -> Completion:
        content = self._mask_credentials(dumps(body).encode())
        if status != 200:
            raise self._make_status_error(status, {}, content)
        return self._read_completion(request, json.loads(content), content)

    async def call_client(self, function: Callable[[AsyncOpenAI, dict[str, Any]], Awaitable[T]]) -> T:
        """Call a function with the client, and with the headers that every call must have."""
        self.check()
        return _return_or_raise(await self._call_client_or_return_error(function))

    async def _call_client_or_return_error(
        self, function: Callable[[AsyncOpenAI, dict[str, Any]], Awaitable[T]]
    ) -> T | Exception:
        try:
            client = await self._open_client()
            return await function(client.client, client.headers)
        except Exception as error:  # noqa: BLE001 - whatever the client raises
            return self._make_error(error)

    async def list_offered_models(self) -> list[str] | None:
        """List the names of the server's models, which costs nothing; return None if the server has no list."""
        import httpx2

        async def get_model_list(client: AsyncOpenAI, headers: dict[str, Any]) -> httpx2.Response:
            options: Any = {"headers": headers}
            async with asyncio.timeout(self._access.connect_timeout):
                return await client.get("/models", cast_to=httpx2.Response, options=options)

        try:
            response = await self.call_client(get_model_list)
            return [str(model["id"]) for model in json.loads(response.content)["data"]]
        except (ValueError, KeyError, TypeError):
            return None
        except protocol.PermanentFailure as error:
            if " 404" in str(error):
                return None
            raise

    def _make_error(self, error: Exception) -> Exception:
        """Convert an exception of the client to evalsuite's own, without stack frames, because they contain the key."""
        from openai import APIStatusError

        from evalsuite.models.openai_client import list_causes

        causes = list_causes(error)
        for cause in causes:
            if isinstance(cause, EvalsuiteError | protocol.RateLimited | protocol.Transient):
                return cause.with_traceback(None)
        for cause in causes:
            if isinstance(cause, APIStatusError):
                return self._make_status_error(cause.status_code, cause.response.headers, cause.response.content)
        return self._make_no_answer_error(causes)

    def _make_no_answer_error(self, causes: Sequence[BaseException]) -> Exception:
        from evalsuite.models import openai_client

        if any(getattr(cause, "errno", None) in openai_client.NO_DESCRIPTOR for cause in causes):
            return protocol.Transient(
                f"no connection to {self.base_url}: this process may open no more files; a smaller --max-connections "
                "or a larger `ulimit -n` helps"
            )
        words = self._mask_text(redact(openai_client.format_error_message(causes[-1])))
        if any(isinstance(cause, openai_client.UNREACHABLE) for cause in causes):
            return protocol.UnreachableServer(f"cannot connect to {self.base_url}: {words}{self._describe_proxy()}")
        if any(isinstance(cause, TimeoutError) for cause in causes):
            return protocol.LostAnswer(f"{self.base_url} gave no answer within {self._access.silence_timeout:g} s")
        if any(isinstance(cause, openai_client.NETWORK) for cause in causes):
            return protocol.BrokenConnection(f"the connection to {self.base_url} broke: {words}")
        return RequestRefused(f"the call to {self.base_url} could not be made: {words}")

    def _make_status_error(self, status: int, headers: Mapping[str, str], content: bytes) -> Exception:
        words = redact(self._mask_text(protocol.read_server_message(content)))
        plain = {name.lower(): value for name, value in headers.items()}
        return protocol.make_status_error(status, plain, words, self.base_url, self._access.advice)

    def _describe_proxy(self) -> str:
        """Name the proxy of a failed connection, because the client's error message does not name the proxy."""
        address = urlsplit(self.base_url)
        host = address.hostname or ""
        if not self._access.proxies or address.scheme not in getproxies() or proxy_bypass(host):
            return ""
        return f" (by way of the proxy that {address.scheme}_proxy names; with NO_PROXY={host} it is not asked)"

    def _mask_text(self, text: str) -> str:
        return self._mask_credentials(text.encode("utf-8", "replace")).decode("utf-8", "replace")

    def _mask_credentials(self, content: bytes) -> bytes:
        """Replace the key and the address's secrets by `***`, because some servers repeat them in their answers."""
        for secret in (self._access.key, *self._secrets):
            if secret and len(secret.reveal()) >= SHORTEST_SECRET:
                content = content.replace(secret.reveal().encode(), b"***")
        return content

    async def aclose(self) -> None:
        if self._client is not None:
            await self._client.client.close()
            self._client = None


def _return_or_raise(outcome: T | Exception) -> T:
    """Return a result, or raise an exception outside of `except` blocks, so that pytest shows no frame with the key."""
    if isinstance(outcome, Exception):
        raise outcome
    return outcome


def import_client() -> Any:
    """Import the openai package, but delay the import of its types, which takes half of the time."""
    finder: Any = LazyPackageFinder()
    sys.meta_path.insert(0, finder)
    try:
        from evalsuite.models import openai_client
    finally:
        sys.meta_path.remove(finder)
    return openai_client


class LazyPackageFinder:
    """Makes imports of the packages in `UNUSED_TYPES` lazy: each is executed when one of its names is first read.

    `importlib.util.LazyLoader` executes a package as soon as one of its modules is imported, which is too early.
    """

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> Any:
        spec: Any = PathFinder.find_spec(name, path, target) if name in UNUSED_TYPES else None
        if spec is not None:
            spec.loader.exec_module = partial(_delay_execution_until_read, spec.loader.exec_module)
        return spec


def _delay_execution_until_read(execute: Callable[[ModuleType], None], module: ModuleType) -> None:
    """Make a module execute itself when one of its names is first read."""
    names, executing = vars(module), set[int]()

    def get_attribute(name: str) -> Any:
        # Do not lock, because a lock could block imports in other threads. Two threads may execute the same package,
        # because these packages only import names.
        if (thread := get_ident()) not in executing:
            executing.add(thread)
            try:
                execute(module)
            finally:
                executing.discard(thread)
            names.pop("__getattr__", None)
        if name not in names:
            raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}")
        return names[name]

    names["__getattr__"] = get_attribute
