"""What a gateway service needs of its store besides what every gateway needs, and the one place that chooses it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from evalsuite.gateway.gateway import Store

if TYPE_CHECKING:
    from collections.abc import Iterable

    from evalsuite.service.clients import Client


class ServiceStore(Store, Protocol):
    """A gateway's store that also knows what each client has spent.

    Attributes:
        shared: whether other gateways may use it at the same time.
    """

    shared: bool

    def paid(self) -> dict[str, float]:
        """US dollars that each client has paid or may have to pay, without what this gateway has under way."""
        ...

    def under_way_elsewhere(self) -> dict[str, float]:
        """US dollars among `paid`, by client, that calls under way at other gateways may yet give back."""
        ...

    def check_up(self) -> None:
        """Sees whether the store answers.

        Raises:
            RunError: it does not.
        """
        ...


def open_store(place: str, clients: Iterable[Client], max_age: float | None) -> ServiceStore:
    """A store in PostgreSQL where the place is its address, else in a file of SQLite.

    Args:
        place: as `--store` names it.
        clients: of the service.
        max_age: seconds for which an answer serves again; None is for ever.

    Raises:
        EvalsuiteError: it cannot be opened.
    """
    if place.startswith(("postgresql://", "postgres://")):
        from evalsuite.service.postgres_store import PostgresStore

        return PostgresStore(place, clients, max_age)
    from evalsuite.service.sqlite_store import SqliteStore

    return SqliteStore(Path(place), clients, max_age)
