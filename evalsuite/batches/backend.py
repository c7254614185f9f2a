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
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from evalsuite.batches.server import (
    BatchServer,
    BatchState,
    Gone,
    copy_error,
    explain_missing_answers,
    format_line,
    parse_result_lines,
    read_completion,
)
from evalsuite.core.errors import BackendUnavailable, Detached, ModelError, RequestRefused, SettingsError
from evalsuite.core.phrases import write_count
from evalsuite.gateway.concealment import UNLIMITED_REQUEST, Vault, make_request_keys
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
        self._senders: list[BatchBackend] = []
        self.left = ""

    def add_sender(self, sender: BatchBackend) -> None:
        self._senders.append(sender)

    def describe_waits(self) -> list[str]:
        now = time.time()
        return [words for sender in list(self._senders) for words in sender.describe_waits(now)]

    def detach_if_idle(self) -> None:
        """End a session with `--detach` once all requests are in batches; called after each poll of a batch."""
        if self._detach and not self.left and all(sender.is_everything_sent for sender in self._senders):
            waits = self.describe_waits()
            self.stop_waiting(f"not finished yet, {'; '.join(waits)}" if waits else "no batch is under way")

    def stop_waiting(self, reason: str) -> None:
        """Stop waiting for all batches, and report the reason."""
        if not self.left:
            self.left = reason
            self._on_detached(reason)
            self.release()

    def release(self) -> None:
        self.left = self.left or "the session has ended"
        for sender in self._senders:
            sender.release(self.left)


class BatchBackend:
    """Answers requests through batches, in the gateway's event loop."""

    metered = True
    connections: int | None = None

    def __init__(self, backend: OpenAIBackend, model: str, batches: StoredBatches, pending: PendingBatches) -> None:
        self._backend, self._batches, self._pending = backend, batches, pending
        self.identity = backend.identity
        self._asked = f"{backend.identity} {model}"
        self._server = BatchServer(backend)
        self._waiting: dict[str, asyncio.Future[str]] = {}
        self._gathered: dict[str, dict[str, bytes]] = {}
        self._size = 0
        self._arrived = asyncio.Event()
        self._under_way: dict[int, BatchState | None] = {}
        self._since: dict[int, float] = {}
        self._earlier: set[str] | None = None  # Keys of requests whose batches earlier sessions sent.
        self._tasks: set[asyncio.Task[None]] = set()
        pending.add_sender(self)

    def check(self) -> None:
        self._backend.check()

    async def complete(self, request: Request) -> Completion:
        """Wait until a batch has the answer to a request; an earlier session may have sent this batch."""
        self._resume_earlier_batches()
        # Earlier versions computed the key from the request to which `--max-cost` had added a limit for the answer.
        asked = (UNLIMITED_REQUEST.get() or request, request)
        keys = [
            key for each in asked for key in make_request_keys(self.identity, Vault().conceal_request(each), older=True)
        ]
        sent = (key for key in keys if key in (self._earlier or ()) and key not in self._waiting)
        key = next(sent, keys[0])
        return self._read_result(key, request, await self._await_result(key, request))

    def _resume_earlier_batches(self) -> None:
        if self._earlier is None:
            self._earlier = self._batches.list_undelivered_keys()
            for kept in self._batches.list_open_batches(self._asked):
                self._start_task(self._resume_batch(kept))
            self._start_task(self._send_gathered_lines())

    def _start_task(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _await_result(self, key: str, request: Request) -> str:
        if self._earlier and key in self._earlier:
            result = self._batches.find_result(key)
            if result is not None:
                return result
        if self._pending.left:
            raise Detached(self._pending.left)
        waiting: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._waiting[key] = waiting
        path, body = self._backend.make_batch_line(request)
        try:
            if not (self._earlier and key in self._earlier):
                self._queue_line(path, key, format_line(key, path, body))
            return await waiting
        finally:
            self._waiting.pop(key, None)
            # Leave a request out if its caller gave up before the batch was sent.
            self._size -= len(self._gathered.get(path, {}).pop(key, b""))

    def _queue_line(self, path: str, key: str, line: bytes) -> None:
        self._gathered.setdefault(path, {})[key] = line
        self._size += len(line)
        self._arrived.set()

    def _read_result(self, key: str, request: Request, result: str) -> Completion:
        try:
            return read_completion(self._backend, request, json.loads(result))
        except Exception:
            self._batches.mark_delivered(key)
            if self._earlier:
                self._earlier.discard(key)
            raise

    @property
    def is_everything_sent(self) -> bool:
        """Whether all waiting requests are in batches that were sent and are not finished."""
        looked = all(state is not None and not state.over for state in self._under_way.values())
        return looked and not any(self._gathered.values())

    def describe_waits(self, now: float) -> list[str]:
        return [
            f"{state.batch}: {_describe_progress(state)}, sent at "
            f"{datetime.fromtimestamp(self._since[number]).astimezone():%H:%M} "
            f"({_describe_age(now - self._since[number])} ago)"
            for number, state in list(self._under_way.items())
            if state is not None
        ]

    def release(self, reason: str) -> None:
        for waiting in list(self._waiting.values()):
            if not waiting.done():
                waiting.set_exception(Detached(reason))

    async def _send_gathered_lines(self) -> None:
        while True:
            await self._arrived.wait()
            while self._arrived.is_set() and not self._is_batch_full():
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

    def _is_batch_full(self) -> bool:
        return self._size >= MOST_BYTES or sum(map(len, self._gathered.values())) >= MOST_LINES

    async def _send_batch(self, path: str, lines: dict[str, bytes]) -> None:
        kept = None
        try:
            kept = self._batches.record_batch(self._asked, path, uuid.uuid4().hex, lines)
            self._under_way[kept.number] = None
            file = await self._server.upload(f"evalsuite-{kept.number}", b"".join(lines.values()))
            self._batches.store_file_id(kept.number, file)
            state = await self._create_batch(kept, file)
        except Exception as error:  # noqa: BLE001 - every caller receives the error
            if kept is not None:
                self._under_way.pop(kept.number, None)
                self._batches.delete_batch(kept.number)
            self._fail_requests(lines, error)
        else:
            self._pending.tell(f"{state.batch}: {write_count(len(lines), 'request')} sent")
            self._start_task(self._follow_batch(kept, state))

    async def _create_batch(self, kept: StoredBatch, file: str) -> BatchState:
        try:
            state = await self._server.create_batch(file, kept.path, kept.mark)
        except Transient:
            # The batch may exist, because the server's answer may have been lost after the batch was created.
            made = await self._ask_until_answered(lambda: self._server.find_batch(kept.mark))
            if made is None:
                raise
            state = made
        self._batches.store_batch_id(kept.number, state.batch)
        return state

    async def _ask_until_answered(self, ask: Callable[[], Awaitable[T]]) -> T:
        """Repeat a request about a batch until the server answers, because the batch, once sent, must be paid for."""
        pause, told = FIRST_LOOK, ""
        while True:
            try:
                return await ask()
            except RateLimited as error:
                pause = max(pause, error.retry_after or 0.0)
            except Transient as error:
                if str(error) != told:
                    told = str(error)
                    self._pending.tell(f"batches: {told}; trying again until the server answers")
            await asyncio.sleep(pause)
            pause = min(LONGEST_PAUSE, 2 * pause)

    async def _resume_batch(self, kept: StoredBatch) -> None:
        """Continue with a batch that an earlier session stored: find the batch at the server, or send it."""
        self._under_way[kept.number] = None
        keys = self._batches.list_unanswered_keys(kept.number)
        try:
            state = await self._ask_until_answered(lambda: self._find_batch(kept))
        except Exception as error:  # noqa: BLE001 - every caller receives the error
            self._under_way.pop(kept.number, None)
            self._give_up_batch(kept, keys, error)
            return
        if state is None:
            self._under_way.pop(kept.number, None)
            self._batches.delete_batch(kept.number)
            self._forget_keys(keys)
            self._fail_requests(keys, Transient("the session ended before this request was sent"))
            return
        await self._follow_batch(kept, state)

    def _give_up_batch(self, kept: StoredBatch, keys: Sequence[str], error: Exception) -> None:
        """Fail the requests of an unreadable batch. A later session may still read the batch, unless it was deleted."""
        if isinstance(error, Gone):
            self._pending.tell(str(error))
            self._batches.delete_batch(kept.number)
        self._forget_keys(keys)
        self._fail_requests(keys, error)

    def _forget_keys(self, keys: Iterable[str]) -> None:
        if self._earlier:
            self._earlier.difference_update(keys)

    async def _find_batch(self, kept: StoredBatch) -> BatchState | None:
        """Find an earlier session's batch by its id or, if the id was never received, by the marker in its metadata.

        If the server has no batch with the marker, create the batch from the file that was uploaded.
        """
        if kept.batch:
            return await self._read_state(kept.batch)
        state = await self._server.find_batch(kept.mark)
        if state is None and kept.file:
            return await self._create_batch(kept, kept.file)
        if state is not None:
            self._batches.store_batch_id(kept.number, state.batch)
        return state

    async def _read_state(self, batch: str) -> BatchState:
        state = await self._server.read_batch(batch)
        if state is None:
            raise Gone(f"{batch}: the server has no such batch")
        return state

    async def _follow_batch(self, kept: StoredBatch, state: BatchState) -> None:
        self._since[kept.number] = kept.created
        pause = FIRST_LOOK
        keys = self._batches.list_unanswered_keys(kept.number)
        try:
            while True:
                self._under_way[kept.number] = state
                if state.over:
                    break
                await asyncio.sleep(pause)
                pause = min(LONGEST_PAUSE, max(FIRST_LOOK, (time.time() - kept.created) / 20))
                state = await self._ask_until_answered(partial(self._read_state, state.batch))
                self._pending.detach_if_idle()
            keys = await self._collect_results(kept, state)
        except Exception as error:  # noqa: BLE001 - every caller receives the error
            self._give_up_batch(kept, keys, error)
        else:
            self._forget_keys(keys)
            self._report_missing_answers(keys, state)
        finally:
            self._under_way.pop(kept.number, None)

    async def _collect_results(self, kept: StoredBatch, state: BatchState) -> list[str]:
        """Read and deliver the answers of a finished batch; return the requests without an answer."""
        keys = self._batches.list_unanswered_keys(kept.number)
        for file in state.files:
            results = await self._fetch_results(file)
            self._batches.store_results(kept.number, results)
            there = self._deliver_results(results)
            keys = [key for key in keys if key not in there]
        self._batches.close_batch(kept.number, state.status)
        return keys

    async def _fetch_results(self, file: str) -> list[tuple[str, str]]:
        """Fetch a file's lines; if lines are unreadable, fetch the file again, and skip them after the last attempt."""
        for _ in range(FETCHES):
            content = await self._ask_until_answered(partial(self._server.fetch, file))
            if content is None:
                raise Gone(f"{file}: the server has no such file")
            results, unreadable = parse_result_lines(content)
            if not unreadable:
                break
        else:
            self._pending.tell(f"{file}: {write_count(unreadable, 'line')} cannot be read; the other answers are kept")
        return results

    def _deliver_results(self, results: list[tuple[str, str]]) -> set[str]:
        for key, result in results:
            waiting = self._waiting.get(key)
            if waiting is not None and not waiting.done():
                waiting.set_result(result)
        if self._earlier is not None:
            # If no caller waits for a result, a later caller reads it from the journal.
            self._earlier |= {key for key, _ in results} - set(self._waiting)
        return {key for key, _ in results}

    def _report_missing_answers(self, keys: Sequence[str], state: BatchState) -> None:
        """Report and fail the requests whose answer is in no file of a batch."""
        if state.status == "completed" and not keys:
            return
        refused, about, reason = explain_missing_answers(keys, state)
        self._pending.tell(about)
        self._fail_requests(refused, RequestRefused(about))
        self._fail_requests([key for key in keys if key not in refused], reason)

    def _fail_requests(self, keys: Iterable[str], error: Exception) -> None:
        for key in keys:
            waiting = self._waiting.get(key)
            if waiting is not None and not waiting.done():
                waiting.set_exception(copy_error(error))

    async def aclose(self) -> None:
        """Stop polling the batches; the server continues to process them."""
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.aclose()
        await self._backend.aclose()


def _describe_progress(state: BatchState) -> str:
    return f"{state.done:,} of {write_count(state.total, 'request')}" if state.total else "not begun"


def _describe_age(seconds: float) -> str:
    hours, minutes = divmod(int(seconds / 60), 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min"


def require_openai_backend(model: str, backend: Backend) -> OpenAIBackend:
    """Return the backend if its server has OpenAI's API."""
    if isinstance(backend, OpenAIBackend):
        return backend
    raise SettingsError(
        f"--batch: {model} has no batch interface; OpenAI has, and servers with /v1/files and /v1/batches. Leave out "
        "--batch, or name another model"
    )


def wrap_in_batches(backend: Backend, model: str, batches: StoredBatches, pending: PendingBatches) -> Backend:
    """Replace a backend by one that sends batches."""
    return BatchBackend(require_openai_backend(model, backend), model, batches, pending)


def check_interface(model: str, backend: Backend) -> None:
    """Check, before anything is sent, that a model's server has a batch interface."""
    asyncio.run(_probe_interface(model, BatchServer(require_openai_backend(model, backend))))


async def _probe_interface(model: str, server: BatchServer) -> None:
    try:
        await server.probe_interface()
    except (RateLimited, Transient, ModelError) as error:
        raise BackendUnavailable(
            f"--batch: {model} has no batch interface at its server, or it cannot be reached: {error}"
        ) from error
    finally:
        await server.aclose()
