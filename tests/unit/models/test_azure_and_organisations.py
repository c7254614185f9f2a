"""What the openai package knows of Azure and of organisations, on a loopback server that plays the proxy to them."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import TYPE_CHECKING, Any

import pytest

from evalsuite.core.errors import BackendUnavailable
from evalsuite.models.choice import open_backend
from evalsuite.models.credentials import AddressGrant, Credentials

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evalsuite.models.protocol import Backend
    from tests.conftest import ChatServer
    from tests.unit.models.conftest import Once

AZURE = "http://house.openai.azure.com"
VERSIONED = f"{AZURE}?api-version=2024-10-21"
VARIABLES = (
    "OPENAI_API_KEY",
    "OPENAI_API_VERSION",
    "OPENAI_ORG_ID",
    "OPENAI_PROJECT_ID",
    "OPENAI_CUSTOM_HEADERS",
    "AZURE_OPENAI_API_KEY",
    "AZURE_OPENAI_AD_TOKEN",
)


@pytest.fixture
def proxy(chat_server: ChatServer, monkeypatch: pytest.MonkeyPatch) -> ChatServer:
    """Hears what is sent to any plain address beyond this machine."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("http_proxy", chat_server.url.removesuffix("/v1"))
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    return chat_server


def given(url: str) -> Backend:
    return open_backend("m", url, Credentials([AddressGrant("m", url)]))


def test_azure_is_asked_by_deployment_version_and_its_own_key(
    once: Once, proxy: ChatServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", "az-key")
    assert once(given(VERSIONED)).text == "hello"
    path = "/openai/deployments/m/chat/completions?api-version=2024-10-21"
    assert proxy.paths == [f"{AZURE}{path}"]
    assert proxy.headers[0]["Api-Key"] == "az-key"
    assert "Authorization" not in proxy.headers[0]


def test_a_token_of_entra_id_from_the_environment_takes_the_key_s_place(
    once: Once, proxy: ChatServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AZURE_OPENAI_AD_TOKEN", "a-token")
    monkeypatch.setenv("OPENAI_API_VERSION", "2024-10-21")
    once(given(AZURE))
    assert proxy.headers[0]["Authorization"] == "Bearer a-token"
    assert "Api-Key" not in proxy.headers[0]


def test_the_key_for_openai_never_goes_to_azure(once: Once, proxy: ChatServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-openai")
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", "az-key")
    once(given(VERSIONED))
    assert "sk-openai" not in json.dumps(proxy.headers)


def test_an_address_of_azure_without_a_version_says_where_to_name_one(
    once: Once, proxy: ChatServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", "az-key")
    with pytest.raises(BackendUnavailable, match=r"OPENAI_API_VERSION.*api-version="):
        once(given(AZURE))
    assert proxy.paths == []


@pytest.fixture
def identity_service(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """What Azure's own machines have: a service on loopback that hands out the machine's token."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            token = {"access_token": "machine-token", "expires_on": "4102444800", "token_type": "Bearer"}
            body = json.dumps({**token, "resource": "https://cognitiveservices.azure.com"}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Nothing on the terminal."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    monkeypatch.setenv("IDENTITY_ENDPOINT", f"http://127.0.0.1:{server.server_port}/token")
    monkeypatch.setenv("IDENTITY_HEADER", "x")
    yield asked
    server.shutdown()
    server.server_close()
    thread.join()


def test_without_key_and_token_the_machine_s_own_identity_is_used(
    once: Once, proxy: ChatServer, identity_service: list[str]
) -> None:
    pytest.importorskip("azure.identity", reason="pip install 'evalsuite[azure]'")
    once(given(VERSIONED))
    assert proxy.headers[0]["Authorization"] == "Bearer machine-token"
    assert "cognitiveservices.azure.com" in identity_service[0]


def test_organisation_project_and_further_headers_go_where_the_user_s_key_goes(
    once: Once, chat_server: ChatServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-key")
    monkeypatch.setenv("OPENAI_ORG_ID", "org-1")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "proj-1")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "X-Team: eval")
    once(given(chat_server.url))
    assert chat_server.headers[0]["Openai-Organization"] == "org-1"
    assert chat_server.headers[0]["Openai-Project"] == "proj-1"
    assert chat_server.headers[0]["X-Team"] == "eval"
    once(open_backend("m", chat_server.url))
    assert not {"Openai-Organization", "Openai-Project", "X-Team", "Authorization"} & set(chat_server.headers[1])
