"""Removes secrets from requests and settings before these are stored or sent; computes the keys of requests.

Wherever a request is stored, compared or sent to a worker, the start of a secret's SHA-256 hash replaces the secret.
Only the gateway keeps the secrets; it puts them back into the request that it sends to the server.
"""

import dataclasses
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from itertools import pairwise
from typing import Any

from evalsuite.core.errors import SettingsError
from evalsuite.core.json_codec import dumps, encode_request, parse_json
from evalsuite.core.redaction import HEADERS, is_secret_name, mask_secrets, redact
from evalsuite.core.settings import Settings
from evalsuite.core.types import Completion, Request
from evalsuite.models.protocol import Backend

PARAMETER_FLAGS = ("--model-param", "--judge-param")
PARAMETER_OPTION = re.compile(r"--(model|judge)-param|(-o|--override-ini=)?evalsuite_(model|judge)_param")
SHORTEST_MASKED_SECRET = 8  # Minimum length of a secret that is masked in a server's answer.
MARK = "sha256:"


class HashedSecrets:
    """Maps hashes to the secrets that they replace."""

    def __init__(self) -> None:
        self._secrets: dict[str, str] = {}

    def __repr__(self) -> str:
        return "HashedSecrets(***)"

    def conceal_request(self, request: Request) -> Request:
        """Hash the secret parameters of a request, and remove secrets from its address."""
        params = self._conceal_params(request.params)
        base_url = request.base_url and redact(request.base_url)
        if params is request.params and base_url == request.base_url:
            return request
        return dataclasses.replace(request, params=params, base_url=base_url)

    def reveal_request(self, request: Request) -> Request:
        return dataclasses.replace(request, params=self._reveal_secrets(request.params)) if self._secrets else request

    async def complete_request(self, backend: Backend, request: Request) -> Completion:
        """Send a request with its secrets restored; if the answer repeats secrets, replace them by hashes."""
        try:
            completion = await backend.complete(self.reveal_request(request))
        except Exception as error:
            error.args = tuple(self._mask_secrets(words) if isinstance(words, str) else words for words in error.args)
            raise
        if not self._secrets:
            return completion
        calls = tuple(
            dataclasses.replace(call, arguments=self._mask_secrets(call.arguments)) for call in completion.tool_calls
        )
        text, reasoning = self._mask_secrets(completion.text), self._mask_secrets(completion.reasoning)
        response = json.loads(self._mask_secrets(dumps(completion.response)))
        return dataclasses.replace(completion, text=text, reasoning=reasoning, tool_calls=calls, response=response)

    def _mask_secrets(self, text: str) -> str:
        for mark, secret in self._secrets.items():
            # Do not mask short secrets, because they may also occur as ordinary words.
            if len(secret) >= SHORTEST_MASKED_SECRET:
                text = text.replace(secret, mark)
        return text

    def conceal_settings(self, settings: Settings) -> Settings:
        changed: dict[str, Any] = {}
        for name in ("model_base_url", "judge_base_url", "user_base_url"):
            changed[name] = getattr(settings, name) and mask_secrets(getattr(settings, name))
        for name in ("model_param", "judge_param"):
            changed[name] = tuple(map(self._conceal_option_value, getattr(settings, name)))
        return dataclasses.replace(settings, **changed)

    def conceal_arguments(self, arguments: Sequence[str]) -> list[str]:
        concealed = []
        for before, argument in pairwise(("", *arguments)):
            option = PARAMETER_OPTION.match(argument)
            if before in PARAMETER_FLAGS:
                concealed.append(self._conceal_option_value(argument))
            elif option and argument[option.end() :].startswith("="):
                start = option.end() + 1
                concealed.append(argument[:start] + self._conceal_option_value(argument[start:]))
            else:
                concealed.append(argument)
        return concealed

    def _conceal_option_value(self, name_and_value: str) -> str:
        name, equals, value = name_and_value.partition("=")
        plain = parse_json(value, value)
        concealed = self._conceal_params({name: plain})[name]
        if concealed is plain:
            return name_and_value
        return f"{name}{equals}{concealed if isinstance(concealed, str) else json.dumps(concealed)}"

    def _conceal_params(self, params: Mapping[str, Any], *, conceals_all: bool = False) -> Mapping[str, Any]:
        """Hash the secrets in parameters; return `params` itself if it contains none, as in nearly every request."""
        changed = {}
        for name, value in params.items():
            concealed = value
            if isinstance(value, Mapping):
                concealed = self._conceal_params(value, conceals_all=conceals_all or name.lower() in HEADERS)
            elif isinstance(value, str) and (conceals_all or is_secret_name(name)) and not value.startswith(MARK):
                concealed = MARK + hashlib.sha256(value.encode("utf-8", "replace")).hexdigest()[:16]
                self._secrets[concealed] = value
            if concealed is not value:
                changed[name] = concealed
        return {**params, **changed} if changed else params

    def _reveal_secrets(self, value: Any) -> Any:
        if isinstance(value, Mapping):
            return {name: self._reveal_secrets(inner) for name, inner in value.items()}
        if isinstance(value, str) and value.startswith(MARK):
            return self._secrets.get(value, value)
        return value


def make_public_settings(settings: Settings) -> Settings:
    """Hash the secrets in settings, because settings are written to files and sent to workers."""
    return HashedSecrets().conceal_settings(settings)


def require_secrets(settings: Settings, run: str) -> None:
    """Check that the user gave a resumed run's secrets again, because the run's folder does not contain the secrets."""
    for name in ("model", "judge", "user"):
        base_url = getattr(settings, f"{name}_base_url")
        if "***" in (base_url or ""):
            raise SettingsError(
                f"--resume {run}: the address {base_url} had a login or a key, which the run's folder does not "
                f"hold: give --{name}-base-url again"
            )
    for flag, texts in zip(PARAMETER_FLAGS, (settings.model_param, settings.judge_param), strict=True):
        for text in texts:
            name, _, value = text.partition("=")
            if MARK in value:
                raise SettingsError(
                    f"--resume {run}: that run was given a secret {name}, which its folder does not hold: give "
                    f"{flag} {name}=... again"
                )


KEY_VERSION = 2  # Increase the version with every change that gives a request another key.
KEY_MARK = f"{KEY_VERSION}-"
"""Prefix of a key. Keys of older versions have no prefix: they are hexadecimal digits only."""

UNLIMITED_REQUEST: ContextVar[Request | None] = ContextVar("UNLIMITED_REQUEST", default=None)
"""The current request as its case made it, before `--max-cost` limited its answer."""

EPOCH_MARK = "\x1f"
"""Precedes the epoch in a case's name, such as `-e2`. A name without its epoch is the same for any number of epochs."""


def remove_epoch(name: str) -> str:
    """Remove the epoch from a case's name, because storage keys contain the epoch in a separate field."""
    return re.sub(rf"{EPOCH_MARK}-e\d+", "", name)


def remove_epoch_mark(name: str) -> str:
    """Remove only the mark before a case's epoch, because pytest shows the name with the epoch but without the mark."""
    return name.replace(EPOCH_MARK, "")


def get_case_name(draw: str) -> str:
    """Get the case's name, as pytest shows it, from a request's `draw`, which consists of the name and a counter."""
    return remove_epoch_mark(draw.rpartition(" #")[0].partition(", fixture ")[0])


def make_request_keys(backend_identity: str, request: Request, *, with_older_keys: bool = False) -> tuple[str, ...]:
    """Return the key under which a request's completion is stored, followed by the keys that older versions used.

    Two requests share a key only if all of these are equal: backend, address, model, parameters, messages, tools,
    epoch, and `draw` (the case and a counter of its equal requests). A lone surrogate counts as a question mark,
    because evalsuite sends a question mark in its place.
    """
    names = dict.fromkeys((remove_epoch(request.draw), remove_epoch_mark(request.draw)))
    hashes = (_hash_request(backend_identity, dataclasses.replace(request, draw=name), KEY_VERSION) for name in names)
    keys = tuple(KEY_MARK + each[len(KEY_MARK) :] for each in hashes)
    if not with_older_keys:
        return keys
    return (*keys, _hash_request(backend_identity, dataclasses.replace(request, draw=""), 1))


def _hash_request(backend_identity: str, request: Request, version: int) -> str:
    plain = encode_request(request) | {"base_url": backend_identity, "version": version}
    return hashlib.sha256(dumps(plain).encode()).hexdigest()
