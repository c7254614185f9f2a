"""A backend that collects requests and sends them as batches.

A batch is sent once no new request has arrived for a few seconds, or once the batch is full. A batch is stored in the
journal before it is sent; its answers are stored before any caller receives them. Because batches and answers are
stored first, a later session can collect an interrupted session's answers and sends no request twice.
"""

from __future__ import annotations

import asyncio
import json
import time
import uuid
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from copy import copy
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from evalsuite.batches.server import (
    BatchMissing,
    BatchServer,
    BatchState,
    explain_missing_answers,
    format_request_line,
    parse_result_lines,
    read_completion,
)
from evalsuite.core.errors import (
    BackendUnavailable,
    BatchNotAwaited,
    ModelError,
    RequestRefused,
    SettingsError,
    write_count,
)
from evalsuite.gateway.concealment import UNLIMITED_REQUEST, HashedSecrets, make_request_keys
from evalsuite.models.openai import OpenAIBackend
from evalsuite.models.protocol import Backend, RateLimited, Transient

if TYPE_CHECKING:
    from evalsuite.core.types import Completion, Request
    from evalsuite.journal.batches import StoredBatch, StoredBatches

T = TypeVar("T")
QUIET = 3.0  # Seconds without a further request after which a batch is sent.
MOST_LINES, MOST_BYTES = 50_000, 64 * 2**20  # Limits of one batch; OpenAI takes 50,000 lines and 200 MB.
FIRST_LOOK, LONGEST_PAUSE = 1.0, 60.0
"""Seconds until the first poll of a batch, and maximum pause between polls; a pause is 1/20 of the batch's age."""

FETCHES = 3  # Maximum downloads of a file with unreadable lines.


class PendingBatches:
    """The unfinished batches of all backends; with `--detach`, the session ends without waiting for the batches."""

    def __init__(
        self,
        *,
        detach: bool = False,
        tell: Callable[[str], None] = lambda _: None,
        on_detached: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.tell, self._detach, self._on_detached = tell, detach, on_detached
        self.backends: list[BatchBackend] = []
        self.left = ""

    def describe_batches(self) -> list[str]:
        return [words for backend in list(self.backends) for words in backend.describe_batches()]

    def detach_if_idle(self) -> None:
        """End a session with `--detach` once all requests are in batches; called after each poll of a batch."""
        if self._detach and not self.left and all(backend.is_everything_sent for backend in self.backends):
            batches = self.describe_batches()
            self.left = f"not finished yet, {'; '.join(batches)}" if batches else "no batch is under way"
            self._on_detached(self.left)
            self.stop_waiting()

    def stop_waiting(self) -> None:
        """Let every call that waits for a batch fail with the error `BatchNotAwaited`."""
        self.left = self.left or "the session has ended"
        for backend in self.backends:
            backend.stop_waiting(self.left)


class BatchBackend(Backend):
    """Answers requests through batches, in the gateway's event loop."""

    metered = True

    def __init__(self, backend: OpenAIBackend, model: str, batches: StoredBatches, pending: PendingBatches) -> None:
        self._backend, self._batches, self._pending = backend, batches, pending
        self.identity = backend.identity
        self._asked = f"{backend.identity} {model}"
        self._server = BatchServer(backend)
        self._waiting: dict[str, asyncio.Future[str]] = {}
        self._gathered: dict[str, dict[str, bytes]] = {}
        self._size = 0
        self._arrived = asyncio.Event()
        self._under_way: dict[StoredBatch, BatchState | None] = {}
        self._earlier: set[str] = set()  # Keys of requests whose batches earlier sessions sent.
        self._has_resumed = False
        self._tasks: set[asyncio.Task[None]] = set()
        pending.backends.append(self)

    def check(self) -> None:
        """Raise an error if the wrapped backend, which formats the requests, is not usable."""
        self._backend.check()

    async def complete(self, request: Request) -> Completion:
        """Wait until a batch has the answer to a request; an earlier session may have sent this batch."""
        if not self._has_resumed:
            self._has_resumed = True
            self._earlier = self._batches.list_undelivered_keys()
            for stored_batch in self._batches.list_open_batches(self._asked):
                self._start_task(self._resume_batch(stored_batch))
            self._start_task(self._send_gathered_lines())
        # Try two keys: earlier versions computed the key after `--max-cost` had limited the answer's length.
        asked = (UNLIMITED_REQUEST.get() or request, request)
        keys = [
            key
            for each in asked
            for key in make_request_keys(self.identity, HashedSecrets().conceal_request(each), with_older_keys=True)
        ]
        sent = (key for key in keys if key in self._earlier and key not in self._waiting)
        key = next(sent, keys[0])
        result = await self._await_result(key, request)
        try:
            return read_completion(self._backend, request, json.loads(result))
        except Exception:
            self._batches.mark_delivered(key)
            self._earlier.discard(key)
            raise

    def _start_task(self, coroutine: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _await_result(self, key: str, request: Request) -> str:
        """Wait for the output line of a request; queue the request for a batch unless an earlier session sent it."""
        if key in self._earlier:
            result = self._batches.find_undelivered_result(key)
            if result is not None:
                return result
        if self._pending.left:
            raise BatchNotAwaited(self._pending.left)
        waiting: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._waiting[key] = waiting
        path, body = self._backend.make_batch_line(request)
        try:
            if key not in self._earlier:
                line = format_request_line(key, path, body)
                self._gathered.setdefault(path, {})[key] = line
                self._size += len(line)
                self._arrived.set()
            return await waiting
        finally:
            self._waiting.pop(key, None)
            # Do not send the request if its caller gave up before the batch was sent.
            self._size -= len(self._gathered.get(path, {}).pop(key, b""))

    @property
    def is_everything_sent(self) -> bool:
        """Whether no request is left to send, and the server has all batches and is still processing them."""
        is_known = all(state is not None and not state.has_ended for state in self._under_way.values())
        return is_known and not any(self._gathered.values())

    def describe_batches(self) -> list[str]:
        """List the progress and the age of each batch that the server has."""
        lines = []
        for stored_batch, state in list(self._under_way.items()):
            if state is not None:
                done = f"{state.done:,} of {write_count(state.total, 'request')}" if state.total else "not begun"
                sent = datetime.fromtimestamp(stored_batch.created).astimezone()
                hours, minutes = divmod(int((time.time() - stored_batch.created) / 60), 60)
                age = f"{hours} h {minutes} min" if hours else f"{minutes} min"
                lines.append(f"{state.batch}: {done}, sent at {sent:%H:%M} ({age} ago)")
        return lines

    def stop_waiting(self, reason: str) -> None:
        self._fail_requests(list(self._waiting), BatchNotAwaited(reason))

    async def _send_gathered_lines(self) -> None:
        """Run until cancelled: send the gathered lines if a batch is full or no line arrives for `QUIET` seconds."""
        while True:
            await self._arrived.wait()
            while self._arrived.is_set():
                if self._size >= MOST_BYTES or sum(map(len, self._gathered.values())) >= MOST_LINES:
                    break
                self._arrived.clear()
                try:
                    async with asyncio.timeout(QUIET):
                        await self._arrived.wait()
                except TimeoutError:
                    break
            self._arrived.clear()
            gathered, self._gathered, self._size = self._gathered, {}, 0
            for path, lines in gathered.items():
                if lines:
                    await self._send_batch(path, lines)

    async def _send_batch(self, path: str, lines: dict[str, bytes]) -> None:
        stored_batch = None
        try:
            stored_batch = self._batches.record_batch(self._asked, path, uuid.uuid4().hex, lines)
            self._under_way[stored_batch] = None
            file = await self._server.upload_file(f"evalsuite-{stored_batch.number}", b"".join(lines.values()))
            self._batches.store_server_id(stored_batch.number, "file", file)
            state = await self._create_batch(stored_batch, file)
        except Exception as error:  # noqa: BLE001 - every caller receives the error
            if stored_batch is not None:
                self._under_way.pop(stored_batch, None)
                self._batches.delete_batch(stored_batch.number)
            self._fail_requests(lines, error)
        else:
            self._pending.tell(f"{state.batch}: {write_count(len(lines), 'request')} sent")
            self._start_task(self._poll_until_ended(stored_batch, state))

    async def _create_batch(self, stored_batch: StoredBatch, file: str) -> BatchState:
        try:
            state = await self._server.create_batch(file, stored_batch.path, stored_batch.mark)
        except Transient:
            # The batch may exist, because the server's answer may have been lost after the batch was created.
            made = await self._retry_until_answered(lambda: self._server.find_batch(stored_batch.mark))
            if made is None:
                raise
            state = made
        self._batches.store_server_id(stored_batch.number, "batch", state.batch)
        return state

    async def _retry_until_answered(self, request: Callable[[], Awaitable[T]]) -> T:
        """Repeat a request until the server answers it, because the created batch is billed even if nobody reads it."""
        pause, told = FIRST_LOOK, ""
        while True:
            try:
                return await request()
            except RateLimited as error:
                pause = max(pause, error.retry_after or 0.0)
            except Transient as error:
                if str(error) != told:
                    told = str(error)
                    self._pending.tell(f"batches: {told}; trying again until the server answers")
            await asyncio.sleep(pause)
            pause = min(LONGEST_PAUSE, 2 * pause)

    async def _resume_batch(self, stored_batch: StoredBatch) -> None:
        """Continue with a batch that an earlier session stored: find the batch at the server, or send it."""
        self._under_way[stored_batch] = None
        keys = self._batches.list_unanswered_keys(stored_batch.number)
        try:
            state = await self._retry_until_answered(lambda: self._find_or_create_batch(stored_batch))
            if state is None:
                self._batches.delete_batch(stored_batch.number)
                raise Transient("the session ended before this request was sent")
        except Exception as error:  # noqa: BLE001 - every caller receives the error
            self._under_way.pop(stored_batch, None)
            self._give_up_batch(stored_batch, keys, error)
        else:
            await self._poll_until_ended(stored_batch, state)

    def _give_up_batch(self, stored_batch: StoredBatch, keys: Sequence[str], error: Exception) -> None:
        """Fail the requests of an unreadable batch. Keep the batch for a later session, unless the server lost it."""
        if isinstance(error, BatchMissing):
            self._pending.tell(str(error))
            self._batches.delete_batch(stored_batch.number)
            error = RequestRefused(str(error))  # Workers and the journal know only this class.
        self._earlier.difference_update(keys)
        self._fail_requests(keys, error)

    async def _find_or_create_batch(self, stored_batch: StoredBatch) -> BatchState | None:
        """Find an earlier session's batch by its id or, if the id was never received, by the marker in its metadata.

        If the server has no batch with the marker, create the batch from the file that was uploaded.
        """
        if stored_batch.batch:
            return await self._server.read_batch(stored_batch.batch)
        state = await self._server.find_batch(stored_batch.mark)
        if state is None and stored_batch.file:
            return await self._create_batch(stored_batch, stored_batch.file)
        if state is not None:
            self._batches.store_server_id(stored_batch.number, "batch", state.batch)
        return state

    async def _poll_until_ended(self, stored_batch: StoredBatch, state: BatchState) -> None:
        """Poll a batch until it has ended; then deliver its answers, and fail the requests without an answer."""
        pause = FIRST_LOOK
        keys = self._batches.list_unanswered_keys(stored_batch.number)
        try:
            self._under_way[stored_batch] = state
            while not state.has_ended:
                await asyncio.sleep(pause)
                pause = min(LONGEST_PAUSE, max(FIRST_LOOK, (time.time() - stored_batch.created) / 20))
                state = await self._retry_until_answered(partial(self._server.read_batch, state.batch))
                self._pending.detach_if_idle()
                self._under_way[stored_batch] = state
            keys = await self._collect_results(stored_batch, state)
        except Exception as error:  # noqa: BLE001 - every caller receives the error
            self._give_up_batch(stored_batch, keys, error)
        else:
            self._earlier.difference_update(keys)
            if keys or state.status != "completed":
                refused, about, reason = explain_missing_answers(keys, state)
                self._pending.tell(about)
                self._fail_requests(refused, RequestRefused(str(reason)))
                self._fail_requests([key for key in keys if key not in refused], reason)
        finally:
            self._under_way.pop(stored_batch, None)

    async def _collect_results(self, stored_batch: StoredBatch, state: BatchState) -> list[str]:
        """Read and deliver the answers of a finished batch; return the requests without an answer."""
        keys = self._batches.list_unanswered_keys(stored_batch.number)
        for file in state.files:
            results = await self._fetch_results(file)
            if state.status == "cancelled":  # Here, a line without a response is a request that was stopped.
                results = [(key, line) for key, line in results if json.loads(line).get("response")]
            self._batches.store_results(stored_batch.number, results)
            for key, result in results:
                waiting = self._waiting.get(key)
                if waiting is not None and not waiting.done():
                    waiting.set_result(result)
            answered = {key for key, _ in results}
            # Mark results for which no caller waits, so that later callers read them from the journal.
            self._earlier |= answered - self._waiting.keys()
            keys = [key for key in keys if key not in answered]
        self._batches.close_batch(stored_batch.number, state.status)
        return keys

    async def _fetch_results(self, file: str) -> list[tuple[str, str]]:
        """Download a file and read its lines. If lines are unreadable, try `FETCHES` times, then skip these lines."""
        for _ in range(FETCHES):
            content = await self._retry_until_answered(partial(self._server.download_file, file))
            results, unreadable = parse_result_lines(content)
            if not unreadable:
                break
        else:
            self._pending.tell(f"{file}: {write_count(unreadable, 'line')} cannot be read; the other answers are kept")
        return results

    def _fail_requests(self, keys: Iterable[str], error: Exception) -> None:
        for key in keys:
            waiting = self._waiting.get(key)
            if waiting is not None and not waiting.done():
                # Copy the error for each caller, because one exception for all would gather all their stack frames.
                waiting.set_exception(copy(error))

    async def aclose(self) -> None:
        """Stop polling the batches; the server continues to process them."""
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.aclose()
        await self._backend.aclose()


def require_openai_backend(model: str, backend: Backend) -> OpenAIBackend:
    """Return a backend whose server has OpenAI's API; refuse any other backend."""
    if isinstance(backend, OpenAIBackend):
        return backend
    raise SettingsError(
        f"--batch: {model} has no batch interface; OpenAI has, and servers with /v1/files and /v1/batches. Leave out "
        "--batch, or name another model"
    )


def require_batch_interface(model: str, backend: Backend) -> None:
    """Check, before anything is sent, that a model's server has a batch interface."""
    server = BatchServer(require_openai_backend(model, backend))

    async def probe_batch_interface() -> None:
        try:
            await server.probe_batch_interface()
        finally:
            await server.aclose()

    try:
        asyncio.run(probe_batch_interface())
    except (RateLimited, Transient, ModelError) as error:
        raise BackendUnavailable(
            f"--batch: {model} has no batch interface at its server, or it cannot be reached: {error}"
        ) from error
