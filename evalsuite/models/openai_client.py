"""The openai package's client for one address; imported late, as the package takes a second to load."""

from __future__ import annotations

import os
from base64 import b64encode
from typing import TYPE_CHECKING, Any

import httpx2
from openai import AsyncAzureOpenAI, AsyncOpenAI, Omit

from evalsuite.core.errors import BackendUnavailable
from evalsuite.models.access import AZURE_TOKEN
from evalsuite.models.direct_client import DirectClient
from evalsuite.models.transport import ACCEPTED

if TYPE_CHECKING:
    from azure.core.credentials_async import AsyncTokenCredential

    from evalsuite.models.access import Access
    from evalsuite.models.address import Address
    from evalsuite.models.transport import AiohttpTransport

NO_KEY = "none"
"""What the package gets where there is no key; the header that would carry it is omitted."""

AZURE_SCOPE = "https://cognitiveservices.azure.com/.default"


def open_client(address: Address, access: Access, transport: AiohttpTransport) -> AsyncOpenAI:
    """A client without retries of its own, since the gateway retries.

    Organisation, project and further headers come from `OPENAI_ORG_ID`, `OPENAI_PROJECT_ID` and
    `OPENAI_CUSTOM_HEADERS` as the package documents; they are sent wherever a key is.
    """
    times = access.timeouts
    timeout = httpx2.Timeout(times.silence, connect=times.connect, pool=None)
    shared: dict[str, Any] = {
        "max_retries": 0,
        "timeout": timeout,
        "http_client": DirectClient(transport, timeout),
        "admin_api_key": "",
        "default_query": address.parameters(),
    }
    if address.is_azure:
        return _azure(address, access, shared)
    client = AsyncOpenAI(
        api_key=access.key.reveal() if access.key else NO_KEY,
        base_url=address.root,
        **shared,
    )
    if not access.trusted:
        client.organization = client.project = None
    return client


def call_headers(address: Address, access: Access) -> dict[str, Any]:
    """Headers of every call besides the client's own: a login instead of a key, and those to be omitted."""
    headers: dict[str, Any] = {
        "Content-Type": "application/json",
        "Accept-Encoding": ACCEPTED,
        # What the package says about its retries and time-outs; to add it takes longer than to leave it out.
        "x-stainless-retry-count": Omit(),
        "x-stainless-read-timeout": Omit(),
    }
    if not access.key and not address.is_azure:
        headers["Authorization"] = Omit()
    if not access.trusted:
        # The package would add these by itself, and they may be secrets, too.
        lines = os.environ.get("OPENAI_CUSTOM_HEADERS", "").splitlines()
        headers |= {line.partition(":")[0].strip(): Omit() for line in lines if ":" in line}
    if address.login:
        headers["Authorization"] = f"Basic {b64encode(address.login.reveal().encode()).decode()}"
    return headers


def _azure(address: Address, access: Access, shared: dict[str, Any]) -> AsyncOpenAI:
    """Azure: a deployment per model, `api-key` or a token of Entra ID, and a version in the query."""
    query = shared.pop("default_query")
    version = query.pop("api-version", None) or os.environ.get("OPENAI_API_VERSION")
    if not version:
        raise BackendUnavailable(
            f"{address.shown} needs a version of its API: set OPENAI_API_VERSION, or write "
            "?api-version=2024-10-21 behind the address"
        )
    root = address.root if "/openai" in address.root else f"{address.root}/openai"
    placed: dict[str, Any] = {"base_url": root, "api_version": version, "default_query": query, **shared}
    if access.key:
        placed["azure_ad_token" if access.key_name == AZURE_TOKEN else "api_key"] = access.key.reveal()
        return AsyncAzureOpenAI(**placed)
    if not access.trusted:
        raise BackendUnavailable(f"{address.shown} needs a key: {access.advice}")
    return _MachineIdentity(_machine_credential(address), **placed)


def _machine_credential(address: Address) -> AsyncTokenCredential:
    """What gets tokens of Entra ID for this machine, whose command line or service is logged in."""
    try:
        from azure.identity.aio import DefaultAzureCredential
    except ImportError:
        raise BackendUnavailable(
            f"{address.shown} needs a key or a token: set AZURE_OPENAI_API_KEY or {AZURE_TOKEN}, or install "
            "evalsuite[azure], which finds the token of this machine"
        ) from None
    return DefaultAzureCredential()


class _MachineIdentity(AsyncAzureOpenAI):
    """A client with tokens of Entra ID, which closes what gets them.

    Args:
        credential: gets the tokens.
        placed: as `AsyncAzureOpenAI` takes it.
    """

    def __init__(self, credential: AsyncTokenCredential, **placed: Any) -> None:
        from azure.identity.aio import get_bearer_token_provider

        super().__init__(azure_ad_token_provider=get_bearer_token_provider(credential, AZURE_SCOPE), **placed)
        self._credential = credential

    async def close(self) -> None:
        await super().close()
        await self._credential.close()
