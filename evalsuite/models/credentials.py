"""Decides which API key is sent to a server: a key goes only to addresses for which the user gave this key.

`OPENAI_API_KEY` is sent only to OpenAI itself, and to base URLs that this session's command line, configuration or
variable `OPENAI_BASE_URL` names. No key is ever sent to an address that was read from a run's folder. The ini keys
`evalsuite_model_key_env`, `evalsuite_judge_key_env` and `evalsuite_user_key_env` each name the variable with the key of
the model, the judge or the simulated user.
"""

import json
import os
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from urllib.parse import quote_plus, unquote, unquote_plus, urlsplit, urlunsplit

from evalsuite.core.errors import SettingsError
from evalsuite.core.redaction import redact


class Secret:
    """A key, a token or a login. Only the method `reveal` returns the secret's text; repr and str return `***`."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        """Return the secret text; call this method only where the text is sent to a server."""
        return self._text

    def __bool__(self) -> bool:
        return bool(self._text)

    def __repr__(self) -> str:
        return "***"

    def __reduce__(self) -> "tuple[type[Secret], tuple[str]]":
        raise TypeError("a secret is not sent to other processes")


OPENAI_KEY = "OPENAI_API_KEY"
AZURE_KEY = "AZURE_OPENAI_API_KEY"
AZURE_TOKEN = "AZURE_OPENAI_AD_TOKEN"  # noqa: S105 - the name of a variable
MEBIBYTE = 2**20


@dataclass(frozen=True, slots=True)
class Access:
    """The key, the limits and the proxy setting for calls to a server."""

    key: Secret | None = None  # The key for the server; None if the server needs no key.
    key_name: str = OPENAI_KEY  # The environment variable from which the key is read.
    # Whether the user gave the address for this session; otherwise, headers from the environment are not sent.
    trusted: bool = False
    advice: str = "is the key right?"  # Advice in the error message if a key is missing or refused.
    connect_timeout: float = 30.0  # Maximum seconds until the connection is established.
    silence_timeout: float = 600.0  # Maximum seconds without a byte from the server, before or within the answer.
    max_answer: int = 64 * MEBIBYTE  # Maximum size of an answer, in bytes after decompression.
    proxies: bool = True  # Whether proxies set in the environment are used.


def read_key(name: str, environ: Mapping[str, str]) -> Secret | None:
    """Read a key from an environment variable; None if it is empty. Strip line ends, which a pasted key may have."""
    text = environ.get(name, "").strip()
    return Secret(text) if text else None


OPENAI = "https://api.openai.com/v1"
AZURE_HOSTS = (".openai.azure.com", ".cognitiveservices.azure.com", ".services.ai.azure.com")


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """The address of a server."""

    shown: str  # The address without secrets, for messages and for the keys of stored requests.
    root: str  # Scheme, host and path.
    query: Secret  # Query parameters sent with every call, which may be secrets.
    login: Secret | None  # The login (`user:password`) in the address, if any.
    host: str  # Lower case.

    @property
    def is_openai(self) -> bool:
        """Whether the address is OpenAI's own API, over TLS."""
        return self.root.startswith("https://") and self.host == "api.openai.com"

    @property
    def is_azure(self) -> bool:
        """Whether the address needs Azure's own paths and headers; Azure's `/openai/v1` does not."""
        return self.host.endswith(AZURE_HOSTS) and not self.root.endswith("/v1")

    def list_secrets(self) -> list[Secret]:
        """List the login, its password and the query's secrets in each form in which a server may repeat them."""
        texts = [self.login.reveal(), self.login.reveal().partition(":")[2]] if self.login else []
        parts = [part for part in self.query.reveal().split("&") if redact(f"?{part}") != f"?{part}"]
        for sent in (part.partition("=")[2] for part in parts):
            texts += [sent, unquote_plus(sent), quote_plus(unquote_plus(sent))]
        in_json = [json.dumps(text, ensure_ascii=ascii_only)[1:-1] for text in texts for ascii_only in (False, True)]
        encoded = [encode_login(self.login)] if self.login else []
        return list(map(Secret, dict.fromkeys([*encoded, *texts, *in_json])))


def encode_login(login: Secret) -> str:
    """Write a login as HTTP's header `Authorization: Basic` has it."""
    return b64encode(login.reveal().encode()).decode()


def parse_address(text: str) -> ServerAddress:
    """Parse an address that the user wrote."""
    try:
        parts = urlsplit(text.strip().rstrip("/"))
        _ = parts.port
    except ValueError:
        parts = urlsplit("")
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        shown = redact(text.rpartition("@")[2])  # Leave out the part before the `@`, because it may contain a password.
        raise SettingsError(f"base URL {shown!r}: not an address; write http://host:port/v1")
    login, _, host = parts.netloc.rpartition("@")
    path = parts.path.rstrip("/")
    return ServerAddress(
        shown=redact(urlunsplit((parts.scheme, host, path, parts.query, ""))),
        root=urlunsplit((parts.scheme, host, path, "", "")),
        query=Secret(parts.query),
        login=Secret(unquote(login)) if login else None,
        host=parts.hostname.lower(),
    )


REFUSED = "is {name} the right key for this server?"
WITHHELD = (
    "{name} was not sent: the address was not given for this session. Give it again with --model-base-url or "
    "--judge-base-url, and with evalsuite_model_key_env or evalsuite_judge_key_env if the key is in another variable"
)


@dataclass(frozen=True, slots=True)
class AddressGrant:
    """An address that the user gave, and the variable with the key for this address."""

    model: str  # The model's name, as the user gave it.
    # The address as the user gave it, including any login; None means the backend's default.
    base_url: str | None = field(repr=False)
    key_env: str | None = None  # The environment variable with the key; None if the user named no variable.
    fresh: bool = True  # Whether the user gave the address in this session, not in an earlier run.

    @property
    def public_url(self) -> str | None:
        """The address without secrets, as requests and files store it."""
        return self.base_url and redact(self.base_url)


class Credentials:
    """Stores the API keys and logins that the user gave, and decides which one is sent to an address."""

    def __init__(
        self, grants: Sequence[AddressGrant] = (), access: Access | None = None, environ: Mapping[str, str] = os.environ
    ) -> None:
        self._grants, self._access, self._environ = tuple(grants), access or Access(), environ
        keys: dict[tuple[str, str | None], str | None] = {}
        for grant in grants:
            if keys.setdefault((grant.model, grant.base_url), grant.key_env) != grant.key_env:
                raise SettingsError(
                    "two of evalsuite_model_key_env, evalsuite_judge_key_env and evalsuite_user_key_env differ, and "
                    f"are for {grant.model} at one address"
                )

    def resolve_address(self, base_url: str | None) -> ServerAddress:
        """Parse a base URL, and add the login that the user gave for this address.

        If `base_url` is None, the variable `OPENAI_BASE_URL` has the address. If neither this variable nor OpenAI's key
        is set, `AZURE_OPENAI_ENDPOINT` has the address. If no variable is set, the address is OpenAI's own.
        """
        if base_url is not None:
            whole = next((grant.base_url for grant in self._grants if grant.public_url == redact(base_url)), None)
            return parse_address(whole or base_url)
        named = self._environ.get("OPENAI_BASE_URL")
        azure = self._environ.get("AZURE_OPENAI_ENDPOINT")
        if not named and azure and not self._environ.get(OPENAI_KEY):
            return parse_address(azure)
        return parse_address(named or OPENAI)

    def make_access(self, model: str, base_url: str | None) -> Access:
        """Return the `Access` for a model's calls to an address, with the key that may be sent there, if any."""
        address = self.resolve_address(base_url)
        public = base_url and redact(base_url)
        matching = [grant for grant in self._grants if grant.public_url == public]
        # If the user gave this address only for another model, use the key of that model.
        usable = [grant for grant in matching if grant.model == model] or (matching if base_url else [])
        grant = usable[0] if usable else None
        named = grant.key_env if grant else None
        name = named or self._find_key_variable(address)
        key = read_key(name, self._environ)
        if named and key is None:
            raise SettingsError(f"evalsuite_model_key_env or evalsuite_judge_key_env names {named}, which is not set")
        if named or base_url is None or address.is_openai or (grant is not None and grant.fresh):
            return replace(self._access, key=key, key_name=name, trusted=True, advice=REFUSED.format(name=name))
        return replace(self._access, key_name=name, advice=(REFUSED if key is None else WITHHELD).format(name=name))

    def _find_key_variable(self, address: ServerAddress) -> str:
        if not address.host.endswith(".azure.com"):
            return OPENAI_KEY
        names = (AZURE_KEY, AZURE_TOKEN, OPENAI_KEY)
        return next((name for name in names if self._environ.get(name)), AZURE_KEY)
