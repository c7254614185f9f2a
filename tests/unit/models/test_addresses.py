"""Addresses are told without the secrets in them."""

from __future__ import annotations

import pytest

from evalsuite.core.redaction import redact
from evalsuite.models.litellm import LitellmBackend
from evalsuite.models.openai import OpenAIBackend

SECRET = "v3ry-secret"


@pytest.mark.parametrize(
    ("address", "told"),
    [
        (f"http://me:{SECRET}@host:80/v1", "http://host:80/v1"),
        (f"https://host/v1?api-key={SECRET}", "https://host/v1?api-key=***"),
        (f"https://host/v1?api-version=3&KEY={SECRET}&x=1", "https://host/v1?api-version=3&KEY=***&x=1"),
        (f"https://host/v1?access_token={SECRET}#part", "https://host/v1?access_token=***#part"),
        (f"pytest '--model-base-url=http://h/v1?sig={SECRET}' -n 2", None),
        ("https://host/v1?api-version=2024-10-21", "https://host/v1?api-version=2024-10-21"),
    ],
)
def test_logins_and_keys_are_left_out_and_all_else_stays(address: str, told: str | None) -> None:
    assert SECRET not in redact(address)
    assert told is None or redact(address) == told


@pytest.mark.parametrize("address", [f"http://u:{SECRET}@host/v1", f"http://host/v1?api_key={SECRET}"])
def test_what_a_backend_tells_of_its_address_holds_no_secret(address: str) -> None:
    assert SECRET not in OpenAIBackend(address).identity
    assert SECRET not in OpenAIBackend(address).base_url
    assert SECRET not in LitellmBackend("openai/x", address).identity
