"""Workers that xdist reaches over a socket. `perf/namespaces.sh` does it with hosts of their own addresses."""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from evalsuite.service.clients import is_loopback

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.plugin.conftest import Suite


@pytest.fixture
def host(tmp_path: Path) -> Iterator[str]:
    """An execnet server on loopback: its address."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    command = [sys.executable, "-u", "-m", "execnet.script.socketserver", address]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        assert "accept loop" in server.stdout.readline().lower()
        yield address
        server.terminate()


def test_a_worker_behind_a_socket_on_loopback_asks_the_model_of_the_controlling_process(
    suite: Suite, host: str, tmp_path: Path
) -> None:
    there = tmp_path / "checkout"
    there.mkdir()
    for name in ("conftest.py", "test_capitals.py"):
        shutil.copy(suite.path / name, there)
    # The model, app.py, is here only.
    result = suite.run("-d", "--tx", f"socket={host}//chdir={there}", "--gate=capitals.exact_match >= 0.6", fresh=True)
    result.assert_outcomes(passed=2, xfailed=1)
    assert result.ret == 0
    assert len(suite.records()) == 3


@pytest.mark.parametrize("spec", ["socket=192.0.2.1:8888", "2*socket=example.invalid:8888//chdir=x"])
def test_a_plain_socket_to_another_host_is_refused_before_anything_is_sent(suite: Suite, spec: str) -> None:
    result = suite.run("-d", "--tx", spec, fresh=True)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        ["ERROR: worker socket=*:8888: prompts, answers*Use --tx ssh=*evalsuite_allow_plain_workers"]
    )
    assert not suite.runs()


@pytest.mark.parametrize("text", ["127.0.0.1:1", "127.9.9.9:1", "localhost:8888"])
def test_loopback_is_known(text: str) -> None:
    assert is_loopback(text.rpartition(":")[0])


@pytest.mark.parametrize(
    "text", ["0.0.0.0:1", "10.0.0.1:1", "127.0.0.1.example:1", "localhost.example:1", "True", "", "::2:1"]
)
def test_all_else_is_another_host(text: str) -> None:
    assert not is_loopback(text.rpartition(":")[0])
