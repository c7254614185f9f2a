"""Keys of requests in the store, and errors on their way between processes."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from evalsuite.core import errors
from evalsuite.core.json_codec import Plain, dumps, encode_request

if TYPE_CHECKING:
    from collections.abc import Mapping

    from evalsuite.core.types import Request

# Increase it whenever the same request would get another key.
KEY_VERSION = 1


def encode_error(error: errors.EvalsuiteError) -> Plain:
    """An evalsuite error by its class and message."""
    return {"kind": type(error).__name__, "message": str(error)}


def decode_error(plain: Mapping[str, Any]) -> errors.EvalsuiteError:
    """The reverse of `encode_error`; a class that needs more than a message becomes an `EvalsuiteError`."""
    kind = getattr(errors, str(plain["kind"]), None)
    if not (isinstance(kind, type) and issubclass(kind, errors.EvalsuiteError)):
        kind = errors.EvalsuiteError
    if issubclass(kind, errors.DatasetError):
        kind = errors.EvalsuiteError
    return kind(plain["message"])


def request_key(identity: str, request: Request) -> str:
    """The key under which a request's completion is stored: a SHA-256 in hexadecimal.

    Two requests have one key only if backend and address, model, every parameter, messages, tools and
    epoch are the same. Half a surrogate pair counts as the question mark that is sent in its place.

    Args:
        identity: the backend and its address, as `Backend.identity` says it.
        request: the request; its own `base_url` is part of the identity already.
    """
    plain = encode_request(request) | {"base_url": identity, "version": KEY_VERSION}
    return hashlib.sha256(dumps(plain).encode()).hexdigest()
