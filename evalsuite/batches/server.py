"""A server with OpenAI's batch interface: files, batches, and their results.

Source: the OpenAI API reference, "Files" and "Batch". vLLM's `run-batch` reads and writes the same lines.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from evalsuite.core.errors import RequestRefused
from evalsuite.core.json_codec import dumps
from evalsuite.models.protocol import LostAnswer, PermanentFailure, RateLimited, Transient

if TYPE_CHECKING:
    from openai import AsyncOpenAI

    from evalsuite.core.types import Completion, Request
    from evalsuite.models.openai import OpenAIBackend

T = TypeVar("T")
WINDOW: Literal["24h"] = "24h"  # The only value for a batch's completion window that the API accepts.
MARK = "evalsuite"  # Metadata key of a batch's marker, by which a later session finds the batch.
ENDED_STATUSES = frozenset({"completed", "expired", "cancelled", "failed"})
LATEST = 20  # Maximum pages to search for a batch whose id was never received.


@dataclass(frozen=True, slots=True)
class BatchState:
    """The state of a batch."""

    batch: str  # The server's id.
    status: str  # The batch's status as the server names it.
    done: int  # Number of finished requests, failed ones included.
    total: int  # Number of all requests.
    files: tuple[str, ...]  # Ids of the file with answers and of the file with errors, if they exist.
    errors: tuple[Mapping[str, Any], ...]  # Reasons why the batch was rejected: code, message and optional line.

    @property
    def has_ended(self) -> bool:
        """Whether the batch has ended, so that the server will add no results."""
        return self.status in ENDED_STATUSES


def format_request_line(key: str, path: str, body: Mapping[str, Any]) -> bytes:
    """Format a request as a line of the uploaded file."""
    return dumps({"custom_id": key, "method": "POST", "url": path, "body": body}).encode() + b"\n"


class BatchServer:
    """Sends files and batches to a server, and reads their state."""

    def __init__(self, backend: OpenAIBackend) -> None:
        self._backend = backend.copy_without_size_limit()

    async def upload_file(self, name: str, content: bytes) -> str:
        async def upload_content(client: AsyncOpenAI, headers: dict[str, Any]) -> str:
            file = (f"{name}.jsonl", content, "application/jsonl")
            uploaded = await client.files.create(file=file, purpose="batch", extra_headers=_drop_content_type(headers))
            return str(uploaded.id)

        return await self._backend.call_client(upload_content)

    async def create_batch(self, file: str, path: str, marker: str) -> BatchState:
        async def post_batch(client: AsyncOpenAI, headers: dict[str, Any]) -> BatchState:
            # Use `Any`, because the package's type lists only OpenAI's own paths, and other servers may accept more.
            endpoint: Any = path
            batch = await client.batches.create(
                completion_window=WINDOW,
                endpoint=endpoint,
                input_file_id=file,
                metadata={MARK: marker},
                extra_headers=headers,
            )
            return _decode_batch_state(batch.model_dump())

        return await self._backend.call_client(post_batch)

    async def read_batch(self, batch: str) -> BatchState:
        async def retrieve_batch(client: AsyncOpenAI, headers: dict[str, Any]) -> BatchState:
            return _decode_batch_state((await client.batches.retrieve(batch, extra_headers=headers)).model_dump())

        return await self._fetch_or_raise(retrieve_batch, f"{batch}: the server has no such batch")

    async def find_batch(self, marker: str) -> BatchState | None:
        """Find the batch with this marker in its metadata among the latest batches; None if no batch has the marker."""

        async def search_batches(client: AsyncOpenAI, headers: dict[str, Any]) -> BatchState | None:
            page = await client.batches.list(limit=100, extra_headers=headers)
            for _ in range(LATEST):
                for batch in page.data:
                    if (batch.metadata or {}).get(MARK) == marker:
                        return _decode_batch_state(batch.model_dump())
                if not page.has_next_page():
                    break
                page = await page.get_next_page()
            return None

        return await self._backend.call_client(search_batches)

    async def download_file(self, file: str) -> bytes:
        async def download_content(client: AsyncOpenAI, headers: dict[str, Any]) -> bytes:
            return (await client.files.content(file, extra_headers=_drop_content_type(headers))).content

        return await self._fetch_or_raise(download_content, f"{file}: the server has no such file")

    async def _fetch_or_raise(
        self, fetch: Callable[[AsyncOpenAI, dict[str, Any]], Awaitable[T]], missing_message: str
    ) -> T:
        """Fetch a batch or a file; raise `BatchMissing` with `missing_message` if the server does not have it."""

        async def fetch_or_return_none(client: AsyncOpenAI, headers: dict[str, Any]) -> T | None:
            from openai import NotFoundError

            try:
                return await fetch(client, headers)
            except NotFoundError:
                return None

        found = await self._backend.call_client(fetch_or_return_none)
        if found is None:
            raise BatchMissing(
                f"{missing_message}: it was deleted, or sent with another key; the next --resume sends its requests "
                "again"
            )
        return found

    async def probe_batch_interface(self) -> None:
        """List one batch, which raises an error if the server has no batch interface."""
        await self._backend.call_client(lambda client, headers: client.batches.list(limit=1, extra_headers=headers))

    async def aclose(self) -> None:
        await self._backend.aclose()


def _drop_content_type(headers: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in headers.items() if name.lower() != "content-type"}


def _decode_batch_state(batch: Mapping[str, Any]) -> BatchState:
    counts = batch.get("request_counts") or {}
    errors = (batch.get("errors") or {}).get("data") or ()
    files = (batch.get("output_file_id"), batch.get("error_file_id"))
    return BatchState(
        str(batch["id"]),
        str(batch["status"]),
        int(counts.get("completed") or 0) + int(counts.get("failed") or 0),
        int(counts.get("total") or 0),
        tuple(file for file in files if file),
        tuple(errors),
    )


def parse_result_lines(content: bytes) -> tuple[list[tuple[str, str]], int]:
    """Read a file of answers or errors; return its lines by key, and the number of unreadable lines."""
    results, unreadable = list[tuple[str, str]](), 0
    for line in filter(bytes.strip, content.splitlines()):
        try:
            results.append((str(json.loads(line)["custom_id"]), line.decode("utf-8", "replace")))
        except (ValueError, KeyError, TypeError, RecursionError):
            unreadable += 1
    return results, unreadable


QUEUE_FULL_CODES = {"token_limit_exceeded", "rate_limit_exceeded"}
"""Error codes of a batch that was refused because too many requests are waiting already."""

AGAIN = 60.0  # Seconds until a batch that was refused with a code in `QUEUE_FULL_CODES` is sent again.
WORDS = 500  # Maximum characters of a server's message that an error quotes.
MODEL_ERROR_FIELDS = {"code": "model_not_found", "param": "body.model"}
"""Fields of an error that concerns the whole batch, because all its lines name the same model."""


class BatchMissing(RequestRefused):
    """Raised if the server does not have a batch or a file of answers."""


def read_completion(backend: OpenAIBackend, request: Request, line: Mapping[str, Any]) -> Completion:
    """Convert a line of a batch's output to a completion; raise an error if the line does not contain an answer."""
    response, error = line.get("response"), line.get("error")
    if isinstance(response, dict) and isinstance(response.get("status_code"), int):
        return backend.read_batch_result(request, response["status_code"], response.get("body"))
    words = error.get("message") or error.get("code") if isinstance(error, dict) else error
    if words:
        raise Transient(f"the batch gave no answer: {str(words)[:WORDS]}")
    raise LostAnswer(f"a line of the batch's output holds neither answer nor error: {str(line)[:WORDS]}")


def explain_missing_answers(keys: Sequence[str], state: BatchState) -> tuple[set[str], str, Exception]:
    """Return the keys of refused requests, a message about the batch, and the error for all other requests in `keys`.

    Args:
        keys: the requests' keys, in the order of the batch's lines.
    """
    # Errors name the lines of refused requests; but if the server refused the model, one error stands for all requests.
    numbers = set() if _is_model_refused(state) else {error.get("line") for error in state.errors}
    refused = {key for number, key in enumerate(keys, 1) if number in numbers}
    words = "; ".join(str(error.get("message") or error.get("code")) for error in state.errors[:3])
    ends = {"cancelled": "was cancelled", "completed": "was completed without all answers"}
    message = f"{state.batch} {ends.get(state.status, state.status)}" + (f": {words.rstrip('.')}" if words else "")
    reason = _make_missing_answer_error(state, message)
    if isinstance(reason, Transient | RateLimited):
        message += "; requests without an answer will be sent again"
    elif state.status == "cancelled" and keys:
        message += "; requests without an answer will not be sent again"
    return refused, message, reason


def _is_model_refused(state: BatchState) -> bool:
    return any(error.get(field) == value for error in state.errors for field, value in MODEL_ERROR_FIELDS.items())


def _make_missing_answer_error(state: BatchState, message: str) -> Exception:
    if state.status == "cancelled":
        return RequestRefused(message)
    if state.status == "failed" and any(error.get("code") in QUEUE_FULL_CODES for error in state.errors):
        return RateLimited(message, AGAIN)
    hopeless = _is_model_refused(state) or not any(error.get("line") for error in state.errors)
    if state.status == "failed" and hopeless:
        return PermanentFailure(message)
    # What a completed batch left unanswered may have been billed; what an expired or failed batch left was not.
    return LostAnswer(message) if state.status == "completed" else Transient(message)
