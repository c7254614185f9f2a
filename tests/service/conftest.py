"""Real gateway services in processes of their own, before a real HTTP server."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@dataclass
class Service:
    """A running service.

    Attributes:
        url: where it is.
        process: in which it runs.
    """

    url: str
    process: subprocess.Popen[str]

    def kill(self) -> None:
        """At once, as `kill -9`."""
        self.process.kill()
        self.process.wait()

    def get(self, path: str, token: str = "", **headers: str) -> tuple[int, str]:
        return fetch(urllib.request.Request(self.url + path, headers=_headers(token, headers)))

    def post(self, path: str, body: Any, token: str = "", **headers: str) -> tuple[int, str]:
        headers = {"Content-Type": "application/json", **headers}
        data = json.dumps(body).encode()
        return fetch(urllib.request.Request(self.url + path, data, _headers(token, headers)))

    def chat(self, text: str, token: str = "", **more: Any) -> tuple[int, Any]:
        """The status, and the answer's text or the error's message."""
        body = {"model": "gpt-test", "messages": [{"role": "user", "content": text}], **more}
        status, content = self.post("/v1/chat/completions", body, token)
        plain = json.loads(content)
        return status, plain["choices"][0]["message"]["content"] if status == 200 else plain["error"][
            "message"
        ]

    def metric(self, name: str, token: str = "") -> float:
        """A metric's value, by its name and labels."""
        lines = self.get("/metrics", token)[1].splitlines()
        return next(float(line.rpartition(" ")[2]) for line in lines if line.rpartition(" ")[0] == name)


def _headers(token: str, more: dict[str, str]) -> dict[str, str]:
    return {**more, **({"Authorization": f"Bearer {token}"} if token else {})}


def fetch(request: urllib.request.Request) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(request, timeout=60) as response:
            return response.status, response.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


@dataclass
class Starter:
    """Starts services, and ends them after the test."""

    folder: Path
    started: list[Service] = field(default_factory=list)

    def __call__(self, *options: str, port: int = 0) -> Service:
        environ = {name: value for name, value in os.environ.items() if not name.startswith("OPENAI_")}
        command = [sys.executable, "-m", "evalsuite", "gateway", f"--port={port}", *options]
        process = subprocess.Popen(
            command, cwd=self.folder, env=environ | {"NO_PROXY": "*"}, stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        url = process.stdout.readline().partition(": ")[2].strip()
        assert url, "it did not start"
        self.started.append(Service(url, process))
        return self.started[-1]

    def end(self) -> None:
        for service in self.started:
            service.process.terminate()
        for service in self.started:
            service.process.wait(timeout=30)
            assert service.process.stdout is not None
            service.process.stdout.close()


@pytest.fixture
def start_gateway(tmp_path: Path) -> Iterator[Starter]:
    starter = Starter(tmp_path)
    yield starter
    starter.end()
