"""Addresses of servers, taken apart into what may be shown and what is secret."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import parse_qsl, unquote, urlsplit, urlunsplit

from evalsuite.core.errors import SettingsError
from evalsuite.core.redaction import redact
from evalsuite.models.secret import Secret

OPENAI = "https://api.openai.com/v1"
AZURE_HOSTS = (".openai.azure.com", ".cognitiveservices.azure.com", ".services.ai.azure.com")


@dataclass(frozen=True, slots=True)
class Address:
    """Where a server is.

    Attributes:
        shown: the address without secrets, for messages and for keys in the store.
        root: scheme, host and path.
        query: parameters sent with every call; they may be secrets.
        login: `user:password`, if the address has one.
        host: lower case.
    """

    shown: str
    root: str
    query: Secret
    login: Secret | None
    host: str

    @property
    def is_openai(self) -> bool:
        """OpenAI itself, over TLS."""
        return self.root.startswith("https://") and self.host == "api.openai.com"

    @property
    def is_azure(self) -> bool:
        """An Azure deployment, which has paths and headers of its own; Azure's `/openai/v1` is like OpenAI's."""
        return self.host.endswith(AZURE_HOSTS) and not self.root.endswith("/v1")

    def parameters(self) -> dict[str, str]:
        """The query's parameters by name."""
        return dict(parse_qsl(self.query.reveal(), keep_blank_values=True))


def parse_address(text: str) -> Address:
    """An address as the user writes it.

    Raises:
        SettingsError: it is not an address; the message contains no password.
    """
    try:
        parts = urlsplit(text.strip().rstrip("/"))
        _ = parts.port
    except ValueError:
        parts = urlsplit("")
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        # The part before the @ may be a password.
        shown = redact(text.rpartition("@")[2])
        raise SettingsError(f"base URL {shown!r}: not an address; write http://host:port/v1")
    login, _, host = parts.netloc.rpartition("@")
    path = parts.path.rstrip("/")
    return Address(
        shown=redact(urlunsplit((parts.scheme, host, path, parts.query, ""))),
        root=urlunsplit((parts.scheme, host, path, "", "")),
        query=Secret(parts.query),
        login=Secret(unquote(login)) if login else None,
        host=parts.hostname.lower(),
    )
