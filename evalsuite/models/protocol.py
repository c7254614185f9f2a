"""The protocol of a backend (the code that calls one kind of model), and the exceptions of its calls.

A response's HTTP status and headers tell whether a call may be repeated, and when.
"""

import json
import re
import time
from collections.abc import Mapping
from datetime import UTC
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
        return  # Without a statement, mypy would regard this method as abstract.

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
        return  # See `check`.


TEMPORARY_STATUSES = {408, 409, 425}
KEY_REFUSED = {401, 403}
QUOTA = ("insufficient_quota", "billing_hard_limit_reached", "credit balance is too low to access")
"""Texts that mean a used-up quota. They come with the status 429; some from OpenAI and Anthropic come with 400."""
LONGEST_WORDS = 500


def make_status_error(
    status: int, headers: Mapping[str, str], server_message: str, server: str, key_hint: str = "is the key right?"
) -> Exception:
    """Convert a response with an error status to an exception."""
    message = f"{server} answered {status}: {server_message}"
    hint = ""  # Why every later request would fail, too.
    if status == 402 or (status in {400, 429} and any(sign in server_message.lower() for sign in QUOTA)):
        hint = "the account has no credit left, and waiting does not help"
    elif status == 404:
        hint = "does this server know --model by that name, and is the address right?"
    elif 300 <= status < 400:
        hint = "redirects are not followed: name the final address"
    if hint:
        return PermanentFailure(f"{message} ({hint})")
    wait = read_retry_after(headers)
    if status == 429 or (status in {503, 529} and wait is not None):
        return RateLimited(message, wait)
    if status in KEY_REFUSED:
        return BackendUnavailable(f"{message} ({key_hint})")
    if status >= 500:
        return Outage(message)
    return Transient(message) if status in TEMPORARY_STATUSES else RequestRefused(message)


def read_retry_after(headers: Mapping[str, str]) -> float | None:
    """Read the seconds that the server asks to wait: `retry-after-ms` or, without it, `retry-after` (seconds or date).

    Return None if neither `retry-after-ms` nor `retry-after` has a valid value.
    """
    milliseconds = _parse_number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    text = headers.get("retry-after", "")
    seconds = _parse_number(text)
    if seconds is not None:
        return seconds
    from email.utils import parsedate_to_datetime

    try:
        at = parsedate_to_datetime(text)
    except ValueError:
        return None
    aware = at if at.tzinfo else at.replace(tzinfo=UTC)  # Treat a date without a time zone as UTC.
    return max(0.0, aware.timestamp() - time.time())


def read_quota_wait(headers: Mapping[str, str]) -> float:
    """Return the seconds until a server accepts requests again; 0 unless its headers say that the quota is used up.

    The headers of OpenAI state when the whole quota is restored, so the wait for one request (or `TOKENS` tokens) is a
    fraction of that time. Other headers state when a time window ends: `ratelimit-*` and `ratelimit` (two IETF drafts),
    and the `x-ratelimit-*` of routers.
    """
    for name, share in (("requests", 1.0), ("tokens", TOKENS)):
        if _parse_number(headers.get(f"x-ratelimit-remaining-{name}")) == 0:
            limit = _parse_number(headers.get(f"x-ratelimit-limit-{name}")) or share
            return _convert_duration(headers.get(f"x-ratelimit-reset-{name}", "")) / max(1.0, limit / share)
    for prefix in ("ratelimit", "x-ratelimit"):
        if _parse_number(headers.get(f"{prefix}-remaining")) == 0:
            return _convert_reset_time(headers.get(f"{prefix}-reset"))
    fields = dict(re.findall(r"\b(r|t|remaining|reset)=(\d+)", headers.get("ratelimit", "")))
    if _parse_number(fields.get("remaining", fields.get("r"))) == 0:
        return _convert_reset_time(fields.get("reset", fields.get("t")))
    return 0.0


TOKENS = 1000.0  # Assumed tokens of a request (prompt and answer), used to compute the wait until tokens are available.
YEAR_2001 = 1e9  # The year 2001 in seconds since 1970; smaller numbers in a header are durations, not dates.


def _convert_reset_time(text: str | None) -> float:
    """Convert a reset time to seconds from now; the time is a duration, or seconds or milliseconds since 1970."""
    try:
        number = float(text or "")
    except ValueError:
        return 0.0
    if number >= 1000 * YEAR_2001:
        number /= 1000
    seconds = number - time.time() if number >= YEAR_2001 else number
    return max(0.0, seconds) if seconds < YEAR_2001 else 0.0


UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}


def _convert_duration(text: str) -> float:
    """Convert a duration such as `1m30s` or `20ms` to seconds; 0.0 for a time that has passed."""
    if text.startswith("-"):
        return 0.0
    return sum(float(number) * UNITS[unit] for number, unit in re.findall(r"(\d+(?:\.\d+)?)(ms|h|m|s)", text))


def _parse_number(text: str | None) -> float | None:
    """Return a number, at least 0; None for other texts, NaN, infinity, and numbers of 1e9 or more."""
    try:
        number = float(text or "")
    except ValueError:
        return None
    return max(0.0, number) if abs(number) < 1e9 else None


def read_error_status(code: object) -> int:
    """Convert the code of an error that came with the status 200, a number or a word of OpenAI's, to an HTTP status."""
    if isinstance(code, int) and 400 <= code < 600:
        return code
    if code in ("insufficient_quota", "rate_limit_exceeded"):
        return 429
    return 400 if re.match(r"(?:invalid|(?:.*_)?image)_", str(code)) else 500


def read_server_message(content: bytes) -> str:
    """Read the error message from the usual fields of a server's JSON; without a message, shorten the whole body."""
    try:
        plain = json.loads(content)
        error = plain.get("error", plain)
        words = error.get("message", error) if isinstance(error, dict) else error
        kind = error.get("code") or error.get("type") or "" if isinstance(error, dict) else ""
        text = f"{words} ({kind})" if kind else str(words)
    except (ValueError, AttributeError, RecursionError):
        text = content.decode("utf-8", "replace")
    return text[:LONGEST_WORDS].strip() or "(no words)"
