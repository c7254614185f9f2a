"""Programs on a server or in a container: the same results as behind this machine's own walls."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest

from evalsuite.core.errors import SandboxError, SandboxUnavailable, SettingsError
from evalsuite.sandbox import Limits, Sandbox, TableFile, tiers
from evalsuite.sandbox.script_hosts import RESULT, ContainerHost, FusionServer, describe_engine, run_program
from evalsuite.sandbox.tiers import TIERS, parse_tiers
from tests.fusion_server import fusion_server

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

Lab = Any
TABLES = {"df": TableFile(b"city,people\nOslo,700\nRome,2800\n")}


@pytest.fixture(scope="module")
def remote(lab: Lab) -> Iterator[Lab]:
    """Programs on a loopback server, which is there only where this machine's own sandbox works."""
    with fusion_server() as (url, heard):
        other = type(lab)(tiers=(url,))
        other.url, other.heard = url, heard
        yield other
        other.close()


PROGRAMS = {
    "an exception": "def f():\n    return 1 / 0\nf()",
    "an exit": "print('so far')\nexit(3)",
    "a death": "import os; os._exit(4)",
    "an exit whose message cannot be written": "class Code:\n    def __str__(self): 1 / 0\nexit(Code())",
    "a table by a path that is made up": "print(len(pd.read_csv('/mnt/data/tmp.csv')))",
    "chance": "import random, numpy; print(random.random(), numpy.random.rand())",
    "a file": "open('total.txt', 'w').write('3500')\nprint('done')",
    "threads that end later": "import threading, time\n"
    "threading.Thread(target=lambda: (time.sleep(0.05), print('late'))).start()",
}


@pytest.mark.parametrize("code", PROGRAMS.values(), ids=PROGRAMS)
def test_a_program_comes_to_the_same_as_here(lab: Lab, remote: Lab, code: str) -> None:
    here, there = lab.run(code, TABLES), remote.run(code, TABLES)
    assert (there.stdout, there.error, there.files) == (here.stdout, here.error, here.files)
    assert there.tier == remote.url


def test_a_session_goes_on_where_it_was_and_says_when_its_variables_are_lost(remote: Lab) -> None:
    codes = ("x = 2\nprint('first')", "1/0", "x + 1", "import os; os._exit(4)", "print('x' in globals(), len(df))")
    first, second, third, fourth, fifth = remote.rounds(*codes, tables=TABLES)
    assert (first.stdout, third.stdout, fifth.stdout) == ("first\n", "3\n", "False 2\n")
    assert 'File "<program>", line 1' in second.error
    assert [each.variables_lost for each in (first, second, third, fourth)] == [False, False, False, True]


UNTIMED = """
import signal
print('begun', flush=True)
for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
    signal.signal(number, signal.SIG_IGN)
signal.setitimer(signal.ITIMER_REAL, 0)
while True: pass
"""


def test_a_program_that_takes_too_long_is_stopped(remote: Lab) -> None:
    execution = remote.run(UNTIMED, TABLES, timeout=0.5)
    assert (execution.stdout, execution.error, execution.timed_out) == ("begun\n", "stopped after 0.5 s", True)


FORGED = (
    """head = b'{"ending": "ok", "seconds": 0, "sizes": [1, 0, 0]}'\n"""
    "head = bytes([0] * 7 + [len(head)]) + head + b'7'\n"
)
FORGERIES = {
    "an old marker": "import os; os.write(2, b'\\n' + b'0' * 32 + b'eA=='); print(1)",
    "a result on standard error": f"import os\n{FORGED}os.write(2, head); os._exit(3)",
    "a result on standard output": f"import sys\n{FORGED}sys.stdout.buffer.write(head); sys.stdout.flush(); 1 / 0",
    "a result on every descriptor": f"import os\n{FORGED}for n in range(6, 200):\n    try: os.write(n, head)\n"
    "    except OSError: pass\n1 / 0",
    "a result's file": f"{FORGED}for at in ('', '../', '../../'):\n"
    "    try: open(at + 'evalsuite-result', 'wb').write(head)\n"
    "    except OSError: pass\n1 / 0",
    "the descriptors of the parent": f"import os\n{FORGED}for n in range(64):\n"
    "    try: open(f'/proc/{os.getppid() or 1}/fd/{n}', 'wb').write(head)\n    except OSError: pass\n1 / 0",
    "the parent's death": "import os\n"
    "try: os.kill(os.getppid() or 1 << 21, 9)\nexcept OSError: print('refused')\n1 / 0",
    "the parent's limits": "import resource, os\n"
    "try: resource.prlimit(os.getppid() or 1 << 21, resource.RLIMIT_FSIZE, (0, 0))\n"
    "except OSError: print('refused')\n1 / 0",
    "a success": "import os, time; os.write(3, b'o'); time.sleep(9)",
    "a table's fault": "import os, time; os.write(3, b't'); time.sleep(9)",
    "a fault of isolation": "import os, time; os.write(3, b'u'); time.sleep(9)",
    "many beginnings": "import os\nfor _ in range(500): os.write(3, b'l')\n1 / 0",
    "the status of a table's fault": "import os, sys; os.write(2, b'tables'); os._exit(97)",
    "a failure whose channel is closed": "import os; os.close(3); 1 / 0",
    "a success whose channel is closed": "import os; os.close(3); print(1)",
    "no standard error": "import os; os.close(2); print(1)",
    "a long standard error": "import os; os.write(2, b'x' * 100000); 1 / 0",
    "an earlier standard error": "import sys; print('warning', file=sys.stderr); 1 / 0",
    "files that are none": "import os; os.write(5, b'x' * 9000); print(1)",
    "a file elsewhere": "import os, struct; os.write(5, struct.pack('>HI', 8, 1) + b'../a.txt1'); print(1)",
    "a taken-back output": "import os; os.write(1, b'abc'); os.ftruncate(1, 0); os.write(1, b'd')",
    "a late child": "import os, time\nif os.fork() == 0:\n"
    "    time.sleep(1)\n    os.write(1, b'late')\n    os._exit(0)\nprint(1)",
    "a secret of the reader": "import gc, re, sys\nframe, texts = sys._getframe(), []\nwhile frame:\n"
    "    texts += [*frame.f_locals.values(), *frame.f_globals.values()]\n    frame = frame.f_back\n"
    "print([text for text in texts if isinstance(text, str) and re.fullmatch('[0-9a-f]{16,}', text)])",
}


@pytest.mark.parametrize("code", FORGERIES.values(), ids=FORGERIES)
def test_a_program_that_forges_its_result_gets_what_it_gets_here(lab: Lab, remote: Lab, code: str) -> None:
    here, there = lab.run(code, TABLES), remote.run(code, TABLES)
    assert (there.stdout, there.error, there.files) == (here.stdout, here.error, here.files)
    if "1 / 0" in code:
        assert "ZeroDivisionError" in there.error


def test_a_table_that_cannot_be_loaded_is_no_fault_of_the_program(remote: Lab) -> None:
    with pytest.raises(SandboxError, match="tables could not be loaded"):
        remote.run("print(1)", {"df": TableFile(b"")})


def test_the_prompt_names_what_is_installed_there(remote: Lab) -> None:
    assert remote.sandbox.environment.description.startswith("Python 3.")
    assert "pandas" in remote.sandbox.environment.installed
    assert remote.heard[-1]["language"] == "python"


def test_files_of_several_hundred_kilobytes_come_back_from_a_server(remote: Lab) -> None:
    write = "import os\nfor n in range(6): open(f'{n}.txt', 'w').write(os.urandom(30000).hex())\nprint(1)"
    execution = remote.run(write, TABLES)
    assert [len(file.content) for file in execution.files] == [60000] * 6


def test_a_server_is_told_no_limit_on_memory_and_the_key_of_the_environment(
    monkeypatch: pytest.MonkeyPatch, lab: Lab, remote: Lab
) -> None:
    monkeypatch.setenv("SANDBOX_FUSION_API_KEY", "of-a-test")
    other = type(lab)(tiers=(remote.url,))
    assert other.run("print(6 * 7)").stdout == "42\n"
    other.close()
    assert remote.heard[-1]["memory_limit_MB"] == -1
    assert remote.heard[-1]["authorization"] == "Bearer of-a-test"


def test_a_server_that_is_not_there_is_one_message(new_lab: Callable[..., Lab]) -> None:
    sandbox = Sandbox(tiers=("http://user:secret@127.0.0.1:9",))
    with pytest.raises(SandboxUnavailable, match=r"127\.0\.0\.1:9.*runs no programs") as caught:
        asyncio.run(sandbox.probe())
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("facts", [b"[]", b"{}", b"3", b'{"sizes": 1}', b'{"sizes": [0, 0, 0]}', b"cut", b""])
def test_a_server_that_returns_another_file_ends_the_program_with_an_error(facts: bytes) -> None:
    result = base64.b64encode(len(facts).to_bytes(8, "big") + facts).decode()
    ran = {"return_code": 1, "stderr": "no space left", "execution_time": 0.5}
    answer = json.dumps({"status": "Failed", "run_result": ran, "files": {RESULT: result}}).encode()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(200)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: Any) -> None:
            """Nothing is logged."""

    async def run(url: str) -> str | None:
        host = FusionServer(url)
        try:
            return (await run_program(host, "", {}, 5, Limits(), is_last=True)).error
        finally:
            await host.aclose()

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever).start()
        try:
            error = asyncio.run(run(f"http://127.0.0.1:{server.server_port}"))
        finally:
            server.shutdown()
    assert "no space left" in (error or "")


@pytest.fixture
def containers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A `docker` that runs the command of a container without one, and keeps its own words."""
    docker = tmp_path / "docker"
    docker.write_text(
        f'#!/bin/sh\necho "$@" >> {tmp_path}/words\n'
        'if [ "$1" = kill ]; then kill -9 "$(cat ' + f'{tmp_path}/pid)"; exit; fi\n'
        'while [ "$1" != python:mine ]; do shift; done; shift\n'
        f"echo $$ > {tmp_path}/pid\n"
        f'cd {tmp_path} && exec "$@"\n'
    )
    docker.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    return tmp_path / "words"


def test_a_container_is_without_network_rights_and_room_but_what_limits_allow(containers: Path) -> None:
    words = ContainerHost("python:mine", Limits(memory=1 << 30)).build_container_command("box")
    told = " ".join(words)
    for word in ("--rm", "--network none", "--read-only", "--cap-drop ALL", "--user 65534:65534", "--pids-limit 32"):
        assert word in told
    assert f"--memory {1 << 30} --memory-swap {1 << 30}" in told
    assert "no-new-privileges" in told
    assert words[-4:] == ["python:mine", "python3", "-B", "-"]


def test_docker_runs_a_program_from_standard_input_on_any_system(
    containers: Path, new_lab: Callable[..., Lab], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tiers, "require_supported_machine", lambda: pytest.fail("it needs no walls of this machine"))
    lab = new_lab(tiers=("docker:python:mine",))
    execution = lab.run("print(6 * 7)")
    assert (execution.stdout, execution.error, execution.tier) == ("42\n", None, "docker:python:mine")
    assert containers.read_text().count("--network none") == 3  # what is installed, and two programs


def test_docker_that_is_not_there_or_cannot_start_a_container_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import asyncio

    monkeypatch.setenv("PATH", str(tmp_path))
    sandbox = Sandbox(tiers=("docker:python:mine",))
    with pytest.raises(SandboxUnavailable, match="neither docker nor podman"):
        asyncio.run(sandbox.probe())
    docker = tmp_path / "docker"
    docker.write_text("#!/bin/sh\necho Cannot connect to the Docker daemon >&2\nexit 125\n")
    docker.chmod(0o755)
    with pytest.raises(SandboxUnavailable, match="Cannot connect to the Docker daemon"):
        asyncio.run(sandbox.probe())


@pytest.mark.parametrize("name", ["docker", "docker:", "gvisor", "ftp://there"])
def test_an_unknown_sandbox_lists_what_there_is(name: str) -> None:
    with pytest.raises(SettingsError, match=r"auto, bubblewrap, landlock, docker:IMAGE"):
        parse_tiers(name)


def test_auto_means_this_machines_own_walls() -> None:
    assert parse_tiers("auto") == TIERS
    assert parse_tiers("https://sandbox.example") == ("https://sandbox.example",)


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("#!/bin/sh\nexit 0\n", "docker answers here, so --sandbox docker:IMAGE can run programs"),
        ("#!/bin/sh\nexit 1\n", "docker is installed, but its engine does not answer"),
        (None, "no container engine is here"),
    ],
)
def test_an_engine_that_answers_is_told_from_one_that_is_only_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str | None, words: str
) -> None:
    if script is not None:
        (tmp_path / "docker").write_text(script)
        (tmp_path / "docker").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert describe_engine() == words
