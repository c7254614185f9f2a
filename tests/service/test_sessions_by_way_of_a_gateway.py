"""pytest sessions that ask by way of a gateway service."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from evalsuite.core.errors import BackendUnavailable
from evalsuite.service.clients import parse_services
from evalsuite.service.remote import check_services

if TYPE_CHECKING:
    from pathlib import Path

CASES = """
from evalsuite import Sample, benchmark, exact_match, generate

SAMPLES = [Sample(id=f"s{number}", input=f"word {number}", target=f"word {number}") for number in range(8)]

@benchmark("words", SAMPLES, solver=generate(max_tokens=8), scorers=[exact_match()])
def test_words(scores):
    assert scores["exact_match"] == 1.0
"""


def session(pytester: pytest.Pytester, *options: str, **environ: str) -> subprocess.CompletedProcess[str]:
    pytester.makeconftest('pytest_plugins = ["evalsuite.plugin"]')
    pytester.makepyfile(test_words=CASES)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {"NO_PROXY": "*", **environ}.items():
            patch.setenv(name, value)
        arguments = ("-q", "-pno:cacheprovider", "--model=gpt-test", *options)
        result = pytester.runpytest_subprocess(*arguments, timeout=120)
    return subprocess.CompletedProcess(arguments, result.ret, result.stdout.str(), result.stderr.str())


def test_shards_pay_each_request_once_and_no_session_needs_a_key(
    start_gateway: Any, chat_server: Any, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    service = start_gateway(f"--upstream={chat_server.url}", "--price=gpt-test=100/100")
    by_way = (f"--gateway={service.url}", f"--model-base-url={chat_server.url}")
    first = session(pytester, *by_way, "--run=first", "-n2")
    assert first.returncode == 0, first.stdout
    second = session(pytester, *by_way, "--run=second")
    assert second.returncode == 0, second.stdout
    assert len(chat_server.bodies) == 8
    # Nor is one demanded for OpenAI, which the gateway would have to ask.
    openai = session(pytester, f"--gateway={service.url}", "--run=openai")
    assert "not https://api.openai.com/v1; name one of these addresses" in openai.stdout
    records = [(pytester.path / "reports" / run / "records.jsonl").read_text() for run in ("first", "second")]
    assert '"cost":0.0015' in records[0]
    # Each run keeps its own answers, and is replayed without any gateway.
    service.kill()
    assert session(pytester, "--replay=second").returncode == 0


def test_a_gateway_that_is_not_there_is_one_message_before_any_case(pytester: pytest.Pytester) -> None:
    result = session(pytester, "--gateway=http://127.0.0.1:9")
    assert result.returncode == 4
    assert "is `evalsuite gateway` running there?" in result.stderr
    beyond = session(pytester, "--gateway=http://build.example:4747")
    assert "ssh -L 4747:127.0.0.1:4747 build.example" in beyond.stderr


def test_a_gateway_asked_by_the_other_scheme_says_so(start_gateway: Any, tmp_path: Path) -> None:
    certificate, key = make_certificate(tmp_path, "127.0.0.1")
    plain = start_gateway("--upstream=http://127.0.0.1:9/v1", "--store=plain.sqlite")
    secured = start_gateway("--upstream=http://127.0.0.1:9/v1", f"--tls-cert={certificate}", f"--tls-key={key}")
    for url, words in (
        (plain.url.replace("http:", "https:"), "speaks no TLS.*takes http://"),
        (secured.url.replace("https:", "http:"), "a gateway with --tls-cert takes https://"),
    ):
        with pytest.raises(BackendUnavailable, match=words):
            check_services(parse_services(url))


def own_address() -> str:
    """An address of this host that is no loopback; nothing is sent to find it."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            pytest.skip("this host has no network")
        return str(probe.getsockname()[0])


def make_certificate(folder: Path, address: str) -> tuple[Path, Path]:
    """A certificate for an address, signed by itself, and its private key."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed: apt-get install openssl")
    certificate, key = folder / "cert.pem", folder / "key.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=gateway"]
    command += ["-addext", f"subjectAltName=IP:{address}", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run(command, check=True, capture_output=True, timeout=60)
    return certificate, key


# aiohttp reads which certificates are trusted as it is imported.
@pytest.mark.own_interpreter
def test_beyond_loopback_a_session_trusts_the_certificate_or_sends_nothing(
    start_gateway: Any, chat_server: Any, pytester: pytest.Pytester, tmp_path: Path
) -> None:
    address = own_address()
    certificate, key = make_certificate(tmp_path, address)
    clients = tmp_path / "clients.json"
    clients.write_text(json.dumps({"ci": {"token": "token-of-the-ci-server"}}))
    clients.chmod(0o600)
    service = start_gateway(
        f"--host={address}",
        f"--tls-cert={certificate}",
        f"--tls-key={key}",
        f"--clients={clients}",
        f"--upstream={chat_server.url}",
    )
    assert service.url.startswith(f"https://{address}:")
    asked = (f"--gateway={service.url}", f"--model-base-url={chat_server.url}")
    token = {"EVALSUITE_GATEWAY_TOKEN": "token-of-the-ci-server"}
    stranger = session(pytester, *asked, **token)
    assert stranger.returncode == 4
    assert "its certificate is not trusted here (self-signed certificate); SSL_CERT_FILE" in stranger.stderr
    assert not chat_server.bodies
    trusted = session(pytester, *asked, **token, SSL_CERT_FILE=str(certificate))
    assert trusted.returncode == 0, trusted.stdout + trusted.stderr
    assert len(chat_server.bodies) == 8
    without_token = session(pytester, *asked, SSL_CERT_FILE=str(certificate))
    assert without_token.returncode == 4
    plain = session(pytester, f"--gateway=http://{address}:1", **token)
    assert plain.returncode == 4
    assert "--tls-cert" in plain.stderr
