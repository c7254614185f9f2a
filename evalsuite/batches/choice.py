"""Which models can be asked in batches."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from evalsuite.core.errors import BackendUnavailable, ModelError, SettingsError
from evalsuite.models.openai import OpenAIBackend
from evalsuite.models.protocol import RateLimited, Transient

if TYPE_CHECKING:
    from evalsuite.batches.desk import BatchDesk
    from evalsuite.batches.server import BatchServer
    from evalsuite.journal.batches import Batches
    from evalsuite.models.protocol import Backend


def demand_openai(model: str, backend: Backend) -> OpenAIBackend:
    """The backend, where it speaks to a server with OpenAI's formats.

    Raises:
        SettingsError: it does not.
    """
    if isinstance(backend, OpenAIBackend):
        return backend
    raise SettingsError(
        f"--batch: {model} has no batch interface; OpenAI has, and servers with /v1/files and /v1/batches. Leave out "
        "--batch, or name another model"
    )


def in_batches(backend: Backend, model: str, batches: Batches, desk: BatchDesk) -> Backend:
    """A backend that sends batches in the place of one that sends calls.

    Raises:
        SettingsError: it has no batch interface.
    """
    from evalsuite.batches.backend import BatchBackend

    return BatchBackend(demand_openai(model, backend), model, batches, desk)


def check_interface(model: str, backend: Backend) -> None:
    """Sees, before anything is asked, that a model's server has a batch interface.

    Raises:
        EvalsuiteError: it has none, or cannot be reached.
    """
    from evalsuite.batches.server import BatchServer

    asyncio.run(_probe(model, BatchServer(demand_openai(model, backend))))


async def _probe(model: str, server: BatchServer) -> None:
    try:
        await server.probe()
    except (RateLimited, Transient, ModelError) as error:
        raise BackendUnavailable(
            f"--batch: {model} has no batch interface at its server, or it cannot be reached: {error}"
        ) from error
    finally:
        await server.aclose()
