"""The protocol of a backend (the code that calls one kind of model), and the exceptions of its calls."""

from typing import Protocol

from evalsuite.core.errors import BackendUnavailable, RequestRefused
from evalsuite.core.types import Completion, Request, Usage


class RateLimited(Exception):  # noqa: N818 - heard only by the gateway, which waits and asks again
    """The server refused a request because of a rate limit.

    Attributes:
        retry_after: seconds that the server asks to wait; None if it states no time.
    """

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class Transient(Exception):  # noqa: N818 - heard only by the gateway, which asks again
    """A failed call that may succeed if it is repeated, for example after a broken connection or a server error."""


class PermanentFailure(BackendUnavailable):
    """The call failed, and every later call would fail, too, for example because a quota is used up."""


class LostAnswer(Transient):
    """The answer arrived incompletely; the server may have generated and billed all of it."""


class WithheldAnswer(RequestRefused):
    """A billed response without an answer: the model refused, or a filter removed the answer.

    Attributes:
        usage: the tokens that the server states; None if they are unknown.
    """

    def __init__(self, message: str, usage: Usage | None = None) -> None:
        super().__init__(message)
        self.usage = usage


class Outage(Transient):
    """The server is temporarily down or overloaded: it answered with status 500 or above, or refused to connect."""


class BrokenConnection(Outage, LostAnswer):
    """The connection broke before the whole answer had arrived."""


class UnreachableServer(Outage):
    """No connection to the server's address could be established."""


class Backend(Protocol):
    """The code that calls one kind of model at one address.

    `check` and the first call check whether the model exists; creating a backend does not. A subclass inherits the
    defaults: calls without cost, any number of connections, nothing to check or to close.

    Attributes:
        identity: the backend's kind and address without secrets; every key in the store includes both.
        metered: whether calls may cost money; if they do, a run waits at its end for calls in flight.
        connections: the number of calls that the model can serve at once; None if the model has no limit of its own.
    """

    identity: str
    metered: bool = False
    connections: int | None = None

    def check(self) -> None:
        """Check whether the model can be called, without calling it.

        Raises:
            BackendUnavailable: an extra, a key or a file is missing; the message states the remedy.
        """
        return  # mypy takes a method without a statement for abstract.

    async def complete(self, request: Request) -> Completion:
        """Call the model once, without retries; the gateway sets `usage.cost`.

        Raises:
            RateLimited: the server answered with status 429 or an equivalent refusal.
            Transient: the call failed but may succeed if it is repeated.
            RequestRefused: this request can never succeed.
            BackendUnavailable: neither this nor any later request can succeed.
        """

    async def aclose(self) -> None:
        """Close the backend's connections, and end its processes."""
        return  # As above.
