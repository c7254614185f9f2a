"""The spend limit of a gateway service, and each client's share of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalsuite.core.errors import SpendLimitReached
from evalsuite.core.types import Usage
from evalsuite.gateway.spend import Ledger
from evalsuite.service.clients import ASKING, Client

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from evalsuite.gateway.spend import Attempt


class ShareUsedUp(SpendLimitReached):
    """The client that asked first has nothing left; another that waits for the same answer may have.

    Attributes:
        client: whose share it is.
    """

    def __init__(self, message: str, client: Client) -> None:
        super().__init__(message)
        self.client = client


class SharedLedger(Ledger):
    """Books each call with the service and with the client that asked for it first.

    Args:
        limit: US dollars over the life of the store; None is no limit.
        clients: all there are.
        paid: US dollars that each client has paid before, by name.
    """

    def __init__(self, limit: float | None, clients: Iterable[Client], paid: Mapping[str, float]) -> None:
        super().__init__(limit, Usage(cost=sum(paid.values())))
        self._limit = limit
        self._paid = paid
        self.shares: dict[str, Ledger] = {client.name: self._share(client) for client in clients}

    def _share(self, client: Client) -> Ledger:
        # A whole share needs no limit beside the service's own.
        limit = None if self._limit is None or client.share == 1 else client.share * self._limit
        return Ledger(limit, Usage(cost=self._paid.get(client.name, 0.0)))

    def hear(self, paid: Mapping[str, float], elsewhere: Mapping[str, float]) -> None:
        """What each client has paid by now, at this gateway and at others on the same store.

        Args:
            paid: US dollars by client, with the most that calls under way at other gateways may cost.
            elsewhere: these calls' part of it.
        """
        self.take_over(sum(paid.values()), sum(elsewhere.values()))
        for name, share in self.shares.items():
            share.take_over(paid.get(name, 0.0), elsewhere.get(name, 0.0))

    def _own(self) -> Ledger:
        client = ASKING.get()
        if client.name not in self.shares:
            self.shares[client.name] = self._share(client)
        return self.shares[client.name]

    async def reserve(self, amount: float) -> None:
        """See `Ledger.reserve`.

        Raises:
            SpendLimitReached: the service's limit would be passed, or the client's share.
        """
        share = self._own()
        try:
            await share.reserve(amount)
        except SpendLimitReached as error:
            client = ASKING.get()
            raise ShareUsedUp(
                f"the gateway's client {client.name!r} has used up its share: ${share.paid.cost:.4f} of "
                f"${share.limit or 0:g} is spent and the next call may cost ${amount:.4f}; whoever runs the gateway "
                "can raise --max-cost or the share",
                client,
            ) from error
        try:
            await super().reserve(amount)
        except BaseException:
            share.settle(amount, None)
            raise

    def settle(self, amount: float, attempt: Attempt | None) -> None:
        """See `Ledger.settle`."""
        self._own().settle(amount, attempt)
        super().settle(amount, attempt)
