"""The run's gateway in the controlling process, with its event loop, and the requests that workers send to it."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from evalsuite.core.json_codec import encode_usage
from evalsuite.gateway.loop import BackgroundLoop
from evalsuite.results.record_file import JOURNAL
from evalsuite.results.run_folders import RunFolder, find_folder

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from evalsuite.batches.backend import PendingBatches
    from evalsuite.core.errors import EvalsuiteError
    from evalsuite.core.settings import Settings
    from evalsuite.gateway.channel import ChannelServer
    from evalsuite.gateway.gateway import Gateway
    from evalsuite.journal.journal import Journal
    from evalsuite.models.protocol import Backend


class RunGateway:
    """Gives a run access to models: the gateway, and the event loop in which it works.

    Attributes:
        background: the event loop of the gateway.
        gateway: the run's gateway; used in the loop's thread only.
    """

    def __init__(
        self,
        settings: Settings,
        reports: Path,
        journal: Journal,
        give_up: Callable[[EvalsuiteError], None],
        on_detached: Callable[[str], None],
    ) -> None:
        self._settings, self._reports, self._journal = settings, reports, journal
        self._servers: dict[Any, ChannelServer] = {}
        # Requests arrive in one thread per worker; a stop is sent from the loop's thread.
        self._lock = threading.Lock()
        self.gateway = self._open_gateway(give_up)
        self._pending = self._make_pending(on_detached) if settings.batch else None
        # Last, because its thread has to be ended.
        self.background = BackgroundLoop()

    def _open_gateway(self, give_up: Callable[[EvalsuiteError], None]) -> Gateway:
        from evalsuite.gateway.opening import open_gateway
        from evalsuite.journal.answers import Answers

        replayed = self._settings.replay
        if replayed:
            answers = Answers.open(find_folder(self._reports, replayed).path / JOURNAL, read_only=True)
        else:
            answers = self._journal.answers
            if self._settings.batch:
                from evalsuite.journal.batches import Batches

                Batches(self._journal.database).carry_over()
        return open_gateway(self._settings, answers, give_up, self._replace)

    def _replace(self, backend: Backend, model: str) -> Backend:
        """Return a replay, a gateway service or batches in place of a backend, if the run asks for one."""
        if self._settings.replay:
            from evalsuite.models.answers import ReplayBackend

            return ReplayBackend(backend, RunFolder(self._reports / self._settings.replay).name)
        if self._settings.gateway:
            from evalsuite.service.clients import parse_services
            from evalsuite.service.remote import RemoteBackend

            return RemoteBackend(backend, parse_services(self._settings.gateway))
        if self._pending is not None:
            from evalsuite.batches.backend import in_batches
            from evalsuite.journal.batches import Batches

            return in_batches(backend, model, Batches(self._journal.database), self._pending)
        return backend

    def _make_pending(self, on_detached: Callable[[str], None]) -> PendingBatches:
        from evalsuite.batches.backend import PendingBatches

        tell = self.gateway.notices.append
        return PendingBatches(detach=self._settings.detach, tell=tell, on_detached=on_detached)

    @property
    def asking(self) -> bool:
        """Whether any case has asked a model."""
        return bool(self.gateway.served)

    def waits(self) -> list[str]:
        """Describe each batch that the run waits for."""
        return self._pending.waits() if self._pending is not None else []

    def usage(self) -> dict[str, Any] | None:
        """Return the usage of all calls so far, as JSON data; None if there was none."""
        return self.background.run(self._compute_usage()) if self.asking else None

    async def _compute_usage(self) -> dict[str, Any]:
        return encode_usage(self.gateway.total_usage())

    def answer_worker(self, channel: Any, text: str | None) -> None:
        """Answer a worker's request; None as text means that the worker has ended."""
        self._find_server(channel).receive(text)

    def stop_worker(self, channel: Any, reason: str) -> None:
        """Make a worker end after its current case."""
        self._find_server(channel).stop(reason)

    def _find_server(self, channel: Any) -> ChannelServer:
        from evalsuite.gateway.channel import ChannelServer

        with self._lock:
            if channel not in self._servers:
                self._servers[channel] = ChannelServer(channel, self.background, self.gateway)
            return self._servers[channel]

    def close(self) -> None:
        """Close the gateway and the loop."""
        if self._pending is not None and not self._settings.replay:
            self.background.run(self._release_batches(self._pending))
        self.background.run(self.gateway.aclose())
        self.background.close()

    async def _release_batches(self, pending: PendingBatches) -> None:
        """Release the calls that wait for a batch and would delay the end; the next session collects its answers."""
        from evalsuite.journal.batches import Batches

        pending.release()
        Batches(self._journal.database).tidy()
