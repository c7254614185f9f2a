"""Calls by way of the openai package; imported late, as the package takes a second to load.

The package decides what a call bears: its address, its headers, and in them the credentials. Where these are the same
for each call, it is asked once for each path and what it says is sent with every content, since to work it out anew
takes twice as long as to send it.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import httpx2

from evalsuite.models.direct_client import rehearse
from evalsuite.models.openai_client import call_headers, open_client
from evalsuite.models.transport import AiohttpTransport, PreparedCall, ServerAnswer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from openai import AsyncOpenAI

    from evalsuite.models.access import Access
    from evalsuite.models.address import Address


class OpenAICalls:
    """An open client of the package.

    Args:
        address: where the API is.
        access: the key for it, time-outs and sizes.

    Attributes:
        client: the package's own.
        headers: of every call besides the client's own.
    """

    def __init__(self, address: Address, access: Access) -> None:
        self._address = address
        self._transport = AiohttpTransport(access, tls=address.root.startswith("https://"))
        self.headers = call_headers(address, access)
        self.client: AsyncOpenAI = open_client(address, access, self._transport)
        self._prepared: dict[str, PreparedCall] = {}

    async def post(
        self, path: str, content: bytes, headers: Mapping[str, Any], query: Mapping[str, Any]
    ) -> ServerAnswer:
        """Makes one call.

        Args:
            path: of the API, such as `/chat/completions`.
            content: JSON.
            headers: of this call alone.
            query: parameters of this call's address.

        Raises:
            Exception: whatever the package, httpx2 and aiohttp raise where there is no answer; a refusal of the
                server may be returned, or raised as the package's exception.
        """
        # Azure's address depends on the content, and tokens of Entra ID expire.
        if headers or query or self._address.is_azure:
            return await self._post_by_package(path, content, headers, query)
        prepared = self._prepared.get(path) or await self._prepare(path)
        return await self._transport.exchange(prepared, content)

    async def _prepare(self, path: str) -> PreparedCall:
        self._prepared[path] = await rehearse(lambda: self._post_by_package(path, b"{}", {}, {}))
        return self._prepared[path]

    async def _post_by_package(
        self, path: str, content: bytes, headers: Mapping[str, Any], query: Mapping[str, Any]
    ) -> ServerAnswer:
        azure = self._address.is_azure
        # Azure reads the deployment's name from the body, which must be an object for that.
        sent: dict[str, Any] = {"body": json.loads(content)} if azure else {"content": content}
        # Azure's client makes the address of the deployment. A whole address need not be put together.
        place = path if azure else f"{self._address.root}{path}"
        options: Any = {"headers": {**self.headers, **headers}, "params": query}
        response = await self.client.post(place, cast_to=httpx2.Response, options=options, **sent)
        return ServerAnswer(response.status_code, response.headers, response.headers.raw, response.content)

    async def aclose(self) -> None:
        """Closes the connections."""
        await self.client.close()
