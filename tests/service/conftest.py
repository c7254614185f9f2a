"""Real gateway services in processes of their own, before a real HTTP server."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import tempfile
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.warm_python import WarmProcess, WarmPython


@dataclass
class Service:
    """A running service.

    Attributes:
        url: where it is.
        process: in which it runs.
    """

    url: str
    process: WarmProcess

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
        return status, plain["choices"][0]["message"]["content"] if status == 200 else plain["error"]["message"]

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

    python: WarmPython
    folder: Path
    started: list[Service] = field(default_factory=list)

    def __call__(self, *options: str, port: int = 0) -> Service:
        environ = {name: value for name, value in os.environ.items() if not name.startswith("OPENAI_")}
        command = ["-mevalsuite", "gateway", f"--port={port}", *options]
        files = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE}
        with contextlib.chdir(self.folder):
            process = self.python.start(command, env=environ | {"NO_PROXY": "*"}, **files)
        assert process.stdout is not None
        url = process.stdout.readline().decode().partition(": ")[2].strip()
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
def start_gateway(warm_python: WarmPython, tmp_path: Path) -> Iterator[Starter]:
    starter = Starter(warm_python, tmp_path)
    yield starter
    starter.end()


@dataclass
class PostgresServer:
    """A PostgreSQL server of the tests' own, reached by a socket in its folder."""

    programs: Path
    home: str
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"postgresql://postgres@/postgres?host={self.home}"

    @property
    def _options(self) -> dict[str, Any]:
        # It refuses to run as root, and its own user cannot enter pytest's folders.
        user = {"user": "postgres"} if os.getuid() == 0 else {}
        return {"cwd": self.home, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, **user}

    def create(self) -> None:
        if os.getuid() == 0:
            shutil.chown(self.home, "postgres")
        made = [str(self.programs / "initdb"), "-D", f"{self.home}/data", "-A", "trust", "-U", "postgres", "--no-sync"]
        subprocess.run(made, check=True, timeout=120, **self._options)

    def start(self) -> None:
        served = [str(self.programs / "postgres"), "-D", f"{self.home}/data", "-k", self.home]
        self.process = subprocess.Popen([*served, "-c", "listen_addresses=", "-c", "fsync=off"], **self._options)
        ready = [str(self.programs / "pg_isready"), "-h", self.home, "-q"]
        while subprocess.run(ready, check=False, **self._options).returncode:
            assert self.process.poll() is None, "PostgreSQL did not start"

    def stop(self) -> None:
        assert self.process is not None
        # A fast shutdown, which ends all connections.
        self.process.send_signal(signal.SIGINT)
        self.process.wait(timeout=60)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    programs = [*Path("/usr/lib/postgresql").glob("*/bin"), *map(Path, os.environ["PATH"].split(":"))]
    folder = next((path for path in programs if (path / "initdb").is_file()), None)
    if folder is None:
        pytest.skip("PostgreSQL is not installed: apt-get install postgresql")
    pytest.importorskip("psycopg", reason="psycopg is not installed: pip install 'evalsuite[postgres]'")
    with tempfile.TemporaryDirectory(prefix="evalsuite-postgres-") as home:
        server = PostgresServer(folder, home)
        server.create()
        server.start()
        yield server
        server.stop()


@pytest.fixture
def postgres(postgres_server: PostgresServer) -> str:
    """The address of the server's first database."""
    return postgres_server.url
