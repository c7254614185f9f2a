"""Defines which models a gateway service calls at which addresses; only these addresses get its keys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from evalsuite.core.entry_points import find_import_target
from evalsuite.core.errors import ModelError, RequestRefused, SettingsError
from evalsuite.gateway.spend import can_call_other_model
from evalsuite.models.choice import open_backend
from evalsuite.models.credentials import Access, AddressGrant, Credentials, parse_address
from evalsuite.models.openai import OpenAIBackend
from evalsuite.models.protocol import Backend, RateLimited, Transient

if TYPE_CHECKING:
    from evalsuite.core.types import Request

OWN_HEADERS = frozenset(
    {"authorization", "proxy-authorization", "api-key", "x-api-key", "host", "cookie"}
    | {"openai-organization", "openai-project"}
)
"""Headers of a call that decide which server it reaches and who pays for it."""


class AllowedUpstreams:
    """The models and servers that a service may call; opens backends for them, and refuses requests for any other.

    Args:
        models: the only models that may be called; if empty, all models of the upstream servers may be called.
    """

    def __init__(self, models: Sequence[str], addresses: Sequence[str], access: Access | None = None) -> None:
        pairs = [text.partition(",") for text in addresses]
        self._grants = [AddressGrant("", url, name.strip() or None) for url, _, name in pairs]
        self.credentials = Credentials(self._grants, access)
        self.models = tuple(models)
        for url, _, _ in pairs:
            try:
                parse_address(url)
            except SettingsError as error:
                raise SettingsError(f"--upstream: {error}") from error
        usual = [] if self._grants else [self.credentials.resolve_address(None).shown]
        self._allowed = {*usual, *(self.credentials.resolve_address(grant.public_url).shown for grant in self._grants)}
        for model in models:
            open_backend(model, None, self.credentials)

    def open_backend(self, model: str, base_url: str | None) -> Backend:
        return open_backend(model, base_url, self.credentials)

    async def list_models(self) -> list[str]:
        """List the models that may be called: those in the service's options or, without any, those of its servers."""
        if self.models:
            return list(self.models)
        listed = [await self._list_server_models(url) for url in [grant.public_url for grant in self._grants] or [None]]
        return list(dict.fromkeys(name for names in listed for name in names))

    async def _list_server_models(self, url: str | None) -> list[str]:
        """List the models of one server; return an empty list if the server has no list or cannot be reached."""
        backend = OpenAIBackend(self.credentials.resolve_address(url), self.credentials.make_access("", url))
        try:
            return await backend.list_offered_models() or []
        except (ModelError, Transient, RateLimited):
            return []
        finally:
            await backend.aclose()

    def admit_request(self, request: Request) -> Request:
        """Return the request, with its server's address if it needs one; raise RequestRefused if it is not allowed."""
        model = request.model
        if can_call_other_model(request):
            raise RequestRefused(
                "the body names another model (model, models or fallbacks among its parameters or in extra_body); name "
                "the model of the request itself"
            )
        headers = request.params.get("extra_headers")
        names = headers if isinstance(headers, Mapping) else ()
        refused = [name for name in names if str(name).lower() in OWN_HEADERS]
        if refused:
            raise RequestRefused(
                f"extra_headers: {', '.join(map(repr, refused))} would override what this gateway sends to its "
                "upstream server; leave it out"
            )
        if self.models and model not in self.models:
            raise RequestRefused(f"this gateway serves {', '.join(self.models)}, and not {model!r:.200}")
        kind, colon, _ = model.partition(":")
        if colon and find_import_target("evalsuite.models", kind) is not None:
            if model not in self.models:
                raise RequestRefused(
                    f"{model!r:.200} would run on the gateway's own machine; whoever runs it has to name it: "
                    f"evalsuite gateway --model {model!r:.200}"
                )
            if request.base_url is None:
                return request
        return self._add_allowed_address(request)

    def _add_allowed_address(self, request: Request) -> Request:
        """Return the request with an address; raise RequestRefused if this gateway may not call the given address."""
        if request.base_url is None and self._grants:
            return replace(request, base_url=self._grants[0].public_url)
        try:
            shown = self.credentials.resolve_address(request.base_url).shown
        except SettingsError as error:
            raise RequestRefused(str(error)) from error
        if shown not in self._allowed:
            raise RequestRefused(
                f"this gateway calls only {', '.join(sorted(self._allowed))}, not {shown}; name one of these addresses "
                f"with --model-base-url, or start the gateway with: evalsuite gateway --upstream {shown}"
            )
        return request
