"""Which key goes to which server: only to an address that it was given for.

`OPENAI_API_KEY` goes to OpenAI itself and to base URLs that the user gave for this session, on the command line,
in the configuration or in `OPENAI_BASE_URL`; never to an address that stood in a run's folder. Another variable
goes to the address of the model that names it, with `--model-key-env`, `--judge-key-env` or `--user-key-env`.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from evalsuite.core.errors import SettingsError
from evalsuite.core.redaction import redact
from evalsuite.models.access import AZURE_KEY, AZURE_TOKEN, OPENAI_KEY, Access, key_from
from evalsuite.models.address import OPENAI, parse_address

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from evalsuite.models.address import Address

REFUSED = "is {name} the right key for this server?"
WITHHELD = (
    "{name} was not sent: the address was not given for this session. Give it again with --model-base-url or "
    "--judge-base-url, and with --model-key-env or --judge-key-env if the key is in another variable"
)


@dataclass(frozen=True, slots=True)
class Grant:
    """An address that the user gave, and what may be sent there.

    Attributes:
        model: as the user names it.
        base_url: as the user gave it, login included; None is the backend's usual place.
        key_env: the variable with its key, if the user named one.
        fresh: given for this session, rather than taken over from an earlier run.
    """

    model: str
    base_url: str | None = field(repr=False)
    key_env: str | None = None
    fresh: bool = True

    @property
    def public_url(self) -> str | None:
        """The address as requests and files hold it: without secrets."""
        return self.base_url and redact(self.base_url)


class Credentials:
    """Decides which key an address gets.

    Args:
        grants: what the user gave; the first that matches counts.
        access: time-outs and sizes for all addresses.
        environ: the environment.

    Raises:
        SettingsError: two grants name different keys for one model at one address.
    """

    def __init__(
        self,
        grants: Sequence[Grant] = (),
        access: Access | None = None,
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        self._grants, self._access, self._environ = tuple(grants), access or Access(), environ
        keys: dict[tuple[str, str | None], str | None] = {}
        for grant in grants:
            if keys.setdefault((grant.model, grant.base_url), grant.key_env) != grant.key_env:
                raise SettingsError(
                    f"two of --model-key-env, --judge-key-env and --user-key-env differ, and are for {grant.model} at "
                    "one address"
                )

    def locate(self, base_url: str | None) -> Address:
        """The address behind a base URL, with the login that the user gave for it.

        Without one: `OPENAI_BASE_URL`, the endpoint of Azure where only its key is set, or OpenAI itself.
        """
        if base_url is not None:
            urls = (grant.base_url for grant in self._grants if grant.public_url == redact(base_url))
            whole = next(urls, None)
            return parse_address(whole or base_url)
        named = self._environ.get("OPENAI_BASE_URL")
        azure = self._environ.get("AZURE_OPENAI_ENDPOINT")
        if not named and azure and not self._environ.get(OPENAI_KEY):
            return parse_address(azure)
        return parse_address(named or OPENAI)

    def access(self, model: str, base_url: str | None) -> Access:
        """What may be sent to an address on behalf of a model."""
        address = self.locate(base_url)
        grant = self._grant(model, base_url)
        if grant is not None and grant.key_env:
            return self._with_key(grant.key_env, demanded=True)
        if base_url is None or address.is_openai or (grant is not None and grant.fresh):
            return self._with_key(self._usual_key(address))
        name = self._usual_key(address)
        if key_from(name, self._environ) is None:
            return replace(self._access, key_name=name, advice=REFUSED.format(name=name))
        return replace(self._access, key_name=name, advice=WITHHELD.format(name=name))

    def _grant(self, model: str, base_url: str | None) -> Grant | None:
        public = base_url and redact(base_url)
        matching = [grant for grant in self._grants if grant.public_url == public]
        exact = [grant for grant in matching if grant.model == model]
        # Another model at an address that was given is reached with that address's key.
        return next(iter(exact or (matching if base_url else ())), None)

    def _usual_key(self, address: Address) -> str:
        if not address.host.endswith(".azure.com"):
            return OPENAI_KEY
        names = (AZURE_KEY, AZURE_TOKEN, OPENAI_KEY)
        return next((name for name in names if self._environ.get(name)), AZURE_KEY)

    def _with_key(self, name: str, *, demanded: bool = False) -> Access:
        key = key_from(name, self._environ)
        if key is None and demanded:
            raise SettingsError(f"--model-key-env or --judge-key-env names {name}, which is not set")
        return replace(self._access, key=key, key_name=name, trusted=True, advice=REFUSED.format(name=name))
