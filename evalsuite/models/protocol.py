"""What a backend is: the code that speaks to one kind of model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from evalsuite.errors import BackendUnavailable, RequestRefused

if TYPE_CHECKING:
    from evalsuite.types import Completion, Request


class RateLimited(Exception):  # noqa: N818 - heard only by the gateway, which waits and asks again
    """The server asks to be asked less often.

    Attributes:
        retry_after: seconds that it wants to be left alone, if it says so.
    """

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class Transient(Exception):  # noqa: N818 - heard only by the gateway, which asks again
    """The call failed in a way that may pass: a broken connection, a server's own trouble."""


class Hopeless(BackendUnavailable):
    """No later request can succeed either, whatever was answered before: a quota is used up, a model is not there."""


class LostAnswer(Transient):
    """An answer did not arrive whole, though the server may have written it, and may bill it."""


class Withheld(RequestRefused):
    """The server answered and will bill it, but what came is no answer: a refusal, or nothing after a filter."""


class Outage(Transient):
    """The server itself is down for the moment: 502 to 504, and connections that come to nothing."""


class Broken(Outage, LostAnswer):
    """A connection broke before the whole answer was there."""


class Unreachable(Outage):
    """Nothing listens at the server's address."""


class Backend(Protocol):
    """One kind of model, at one address.

    Making one costs nothing and checks nothing; `check` and the first call do.

    Attributes:
        identity: kind and address, without secrets; part of every key in the store.
        metered: whether calls may cost money, so that one under way is worth waiting for at the end.
        connections: calls that it can serve at once; None where only the run's own limit counts.
    """

    identity: str
    metered: bool
    connections: int | None

    def check(self) -> None:
        """Sees whether the model can be spoken to at all, without speaking to it.

        Raises:
            BackendUnavailable: an extra, a key or a file is missing; the message says what to do.
        """
        ...

    async def complete(self, request: Request) -> Completion:
        """Asks once, without retries; `usage.cost` is left to the gateway.

        Raises:
            RateLimited: 429, or its like.
            Transient: it may work next time.
            RequestRefused: this request can never succeed.
            BackendUnavailable: no request can.
        """
        ...

    async def aclose(self) -> None:
        """Lets go of connections and processes."""
        ...
