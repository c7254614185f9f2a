"""Script hosts run each program as one script: in a container (Docker, Podman) or on a SandboxFusion server."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import io
import json
import os
import secrets
import shutil
import subprocess
import time
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from evalsuite.core.errors import SandboxError, SandboxUnavailable
from evalsuite.core.redaction import redact
from evalsuite.sandbox.environments import MENTIONED, Interpreter, ProgramEnvironment
from evalsuite.sandbox.execution import Execution, TableSource, compute_read_limits, make_execution, write_payload
from evalsuite.sandbox.tiers import DOCKER, INSIDE, SERVERS

if TYPE_CHECKING:
    import aiohttp

    from evalsuite.sandbox.inside import Limits

ScriptHost: TypeAlias = "ContainerHost | FusionServer"
START_SECONDS = 60.0  # Extra time that a script gets to start an interpreter, import pandas and read tables.
# Names of the files next to the script: the code that runs the program, and the program's result.
BUNDLE, RESULT = "evalsuite-program.zip", "evalsuite-result"
_SCRIPT = """\
import base64, io, os, sys, tempfile, zipfile
folder = tempfile.mkdtemp()
zipfile.ZipFile({source}).extractall(folder)
sys.path.insert(0, folder)
for name in ("numpy", "pandas"):
    try: __import__(name)
    except ImportError: pass
from inside import program
sys.path.remove(folder)
program.run_in_child(os.path.join(folder, "payload"), {result!r}, {seconds!r}, {most!r})
"""
_INSTALLED = f"""\
import json, platform
from importlib.metadata import PackageNotFoundError, version
versions = {{}}
for name in {MENTIONED!r}:
    try: versions[name] = version(name)
    except PackageNotFoundError: pass
print(json.dumps([platform.python_version(), versions]))
"""


@dataclass(frozen=True, slots=True)
class ScriptEnd:
    """How a script ended."""

    result: bytes  # The result that `run_in_child` of `inside/program.py` wrote; empty if it wrote none.
    stderr: bytes
    status: int  # Exit status of the script; if signal N ended it, the status is -N or 128 + N.
    seconds: float
    timed_out: bool = False  # Whether the script exceeded its time limit, so that the host stopped it.


async def run_program(
    host: ScriptHost, code: str, tables: Mapping[str, TableSource], seconds: float, limits: Limits, **options: Any
) -> Execution:
    """Run one program (`options` as in `write_payload`); the script limits time and output, the host all else."""
    payload, data = io.BytesIO(), io.BytesIO()
    write_payload(payload, code, tables, same_pandas=False, **options)
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(INSIDE.glob("*.py")):
            archive.write(path, f"inside/{path.name}")
        archive.writestr("payload", payload.getvalue(), zipfile.ZIP_STORED)
    bundle = data.getvalue()
    files: Mapping[str, bytes] = {BUNDLE: bundle} if host.takes_files else {}
    source = repr(BUNDLE) if files else f"io.BytesIO(base64.b64decode({base64.b64encode(bundle)!r}))"
    result = RESULT if files else ""
    script = _SCRIPT.format(source=source, seconds=seconds, result=result, most=compute_read_limits(limits))
    ending, took, contents = _read_result(await host.run_script(script, seconds + START_SECONDS, files))
    execution = make_execution(ending, *contents, timeout=seconds, seconds=took, limits=limits)
    return replace(execution, tier=host.tier)


def _read_result(end: ScriptEnd) -> tuple[str, float, tuple[bytes, bytes, bytes]]:
    """Return how a program ended, its duration in seconds, and its output, error and files."""
    begin = 8 + int.from_bytes(end.result[:8], "big")
    try:
        facts = json.loads(end.result[8:begin])
        out, error, files = (begin + sum(facts["sizes"][:place]) for place in (1, 2, 3))
        if not end.timed_out and files == len(end.result):
            contents = end.result[begin:out], end.result[out:error], end.result[error:files]
            return facts["ending"], facts["seconds"], contents
    except (ValueError, KeyError, TypeError):
        pass  # The result is incomplete because the script ended early, or it is not the file that was asked for.
    signal = -end.status if end.status < 0 else end.status - 128
    ending = "timeout" if end.timed_out else f"signal {signal}" if signal > 0 else f"exit {end.status or 1}"
    return ending, end.seconds, (b"", end.stderr, b"")


async def inspect_host(host: ScriptHost, limits: Limits) -> ProgramEnvironment:
    """Ask a host for its Python version and packages; if it cannot run programs, raise SandboxUnavailable."""
    try:
        answer = await run_program(host, _INSTALLED, {}, START_SECONDS, limits, is_last=True)
        version, packages = json.loads(answer.stdout)
    except SandboxError as error:
        raise SandboxUnavailable(f"{host.tier} runs no programs: {error}") from error
    except (ValueError, TypeError) as error:
        message = answer.error or f"it printed {answer.stdout[:200]!r}"
        raise SandboxUnavailable(f"{host.tier} does not run programs correctly: {message}") from error
    return ProgramEnvironment(host.tier, Interpreter("", "", (), str(version)), (), packages)


COMMANDS = ("docker", "podman")
REFUSED = 125  # Exit status of `docker run` if the container could not be started.
NOBODY = 65534
# Maximum number of processes of the user `nobody`, over all containers; some engines allow no higher limit.
MOST_PROCESSES = 8192
VERSION_SECONDS = 10.0


class ContainerHost:
    """Runs scripts in containers, on this machine or on the machine that DOCKER_HOST names.

    The image must contain `python3` (3.11 or newer) and the packages that programs may import. If neither docker nor
    podman is installed, SandboxUnavailable is raised.
    """

    is_alive = True
    takes_files = False

    def __init__(self, image: str, limits: Limits) -> None:
        self.tier, self._image, self._limits = f"docker:{image}", image, limits
        self.at_once = os.cpu_count() or 1
        commands = [command for command in map(shutil.which, COMMANDS) if command]
        if not commands:
            raise SandboxUnavailable(f"{self.tier}: neither docker nor podman is installed here")
        # Prefer the command whose engine is running; if there is none, the first command's error explains the problem.
        self._command = next(filter(_is_engine_running, commands), commands[0]) if len(commands) > 1 else commands[0]

    async def run_script(self, script: str, seconds: float, files: Mapping[str, bytes]) -> ScriptEnd:  # noqa: ARG002 - no files
        """Run a script in a new container, and remove the container afterwards."""
        name, started = f"evalsuite-{secrets.token_hex(8)}", time.monotonic()
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            *self.build_container_command(name), stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True
        )
        timed_out = False
        answer = asyncio.ensure_future(process.communicate(script.encode()))
        try:
            stdout, stderr = await asyncio.wait_for(asyncio.shield(answer), seconds)
        except TimeoutError:
            timed_out = True
            await self._kill_container(name)
            stdout, stderr = await answer
        except asyncio.CancelledError:
            await self._kill_container(name)
            raise
        status = process.returncode or 0
        if status == REFUSED and not timed_out:
            message = stderr.decode("utf-8", "replace").strip()[-1000:]
            raise SandboxError(f"{self.tier}: a container could not be started: {message}")
        return ScriptEnd(stdout, stderr, status, time.monotonic() - started, timed_out)

    def build_container_command(self, container_name: str) -> list[str]:
        limits = self._limits
        return [
            *(self._command, "run", "--rm", "--interactive", "--name", container_name, "--network", "none"),
            *("--read-only", "--tmpfs", f"/tmp:rw,nosuid,nodev,size={limits.files}"),  # noqa: S108 - a private tmpfs
            *("--workdir", "/tmp", "--user", f"{NOBODY}:{NOBODY}", "--cap-drop", "ALL"),  # noqa: S108 - as above
            *("--security-opt", "no-new-privileges", "--pids-limit", str(limits.processes)),
            *("--memory", str(limits.memory), "--memory-swap", str(limits.memory), "--cpus", "1"),
            *("--ulimit", f"fsize={limits.file}", "--ulimit", f"nofile={limits.descriptors}"),
            # Switch off the log driver; otherwise the engine would store the output on disk.
            *("--ulimit", f"nproc={MOST_PROCESSES}", "--log-driver", "none"),
            *("--env", "HOME=/tmp", "--env", "MPLBACKEND=agg", "--env", "PYTHONHASHSEED=0"),
            *("--env", "TZ=UTC", "--env", "LANG=C.UTF-8", "--pull", "missing"),
            *(self._image, "python3", "-B", "-"),
        ]

    async def _kill_container(self, name: str) -> None:
        quiet = asyncio.subprocess.DEVNULL
        with contextlib.suppress(OSError):
            process = await asyncio.create_subprocess_exec(self._command, "kill", name, stdout=quiet, stderr=quiet)
            await process.wait()

    async def aclose(self) -> None:
        """Do nothing: each container was already removed after its program."""


def describe_engine() -> str:
    """State whether a container engine works on this machine, and with which option evalsuite uses it."""
    commands = [command for command in map(shutil.which, COMMANDS) if command]
    for command in filter(_is_engine_running, commands):
        return f"{Path(command).name} answers here, so --sandbox docker:IMAGE can run programs"
    names = " and ".join(Path(command).name for command in commands)
    return f"{names} is installed, but its engine does not answer" if names else "no container engine is here"


def _is_engine_running(command: str) -> bool:
    """Tell whether the engine behind a command answers, because a client may be installed without an engine."""
    try:
        asked = subprocess.run([command, "version"], capture_output=True, timeout=VERSION_SECONDS, check=False)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired):
        return False
    return asked.returncode == 0


GRACE_SECONDS = 30.0
LARGEST = 64 << 20  # Maximum number of bytes in a server's answer.


class FusionServer:
    """Runs scripts on a SandboxFusion server, for example `http://127.0.0.1:8080`.

    If the server's address contains a user and a password, they are sent to the server. The key in the environment
    variable `SANDBOX_FUSION_API_KEY` is sent as a bearer token. No memory limit is sent, because the server would
    apply it to address space instead of used memory. Libraries such as OpenBLAS reserve far more address space than
    they use.
    """

    at_once = 16
    is_alive = True
    takes_files = True

    def __init__(self, url: str) -> None:
        self._url = url.rstrip("/")
        self.tier = redact(self._url)
        self._client: aiohttp.ClientSession | None = None

    async def run_script(self, script: str, seconds: float, files: Mapping[str, bytes]) -> ScriptEnd:
        """Run a script on the server: send its files with it, and fetch the file `RESULT`."""
        request = {
            "code": script,
            "language": "python",
            "run_timeout": seconds,
            "memory_limit_MB": -1,
            "files": {name: base64.b64encode(content).decode() for name, content in files.items()},
            "fetch_files": [RESULT] if files else [],
        }
        answer = await self._post_request(request, seconds + GRACE_SECONDS)
        result = answer.get("run_result") or answer.get("compile_result")
        if answer.get("status") == "SandboxError" or not isinstance(result, dict):
            raise SandboxError(f"{self.tier} could not run a program: {str(answer.get('message'))[:500]}")
        status, fetched = result.get("return_code"), answer.get("files")
        try:
            content = base64.b64decode(fetched[RESULT] if isinstance(fetched, dict) else "")
        except (KeyError, TypeError, ValueError):
            content = b""
        return ScriptEnd(
            content,
            str(result.get("stderr") or "").encode("utf-8", "replace"),
            status if isinstance(status, int) else 1,
            float(result.get("execution_time") or 0.0),
            result.get("status") == "TimeLimitExceeded",
        )

    async def _post_request(self, request: dict[str, Any], seconds: float) -> dict[str, Any]:
        import aiohttp

        if self._client is None:
            key = os.environ.get("SANDBOX_FUSION_API_KEY")
            self._client = aiohttp.ClientSession(headers={"Authorization": f"Bearer {key}"} if key else {})
        limit = aiohttp.ClientTimeout(total=seconds)
        try:
            async with self._client.post(f"{self._url}/run_code", json=request, timeout=limit) as response:
                data = bytearray()
                async for piece in response.content.iter_chunked(1 << 16):
                    data += piece
                    if len(data) > LARGEST:
                        raise SandboxError(f"{self.tier} answers with more than {LARGEST >> 20} MiB")
                if response.status != 200:
                    beginning = data[:300].decode("utf-8", "replace")
                    raise SandboxError(f"{self.tier} answers with status {response.status}: {beginning}")
                answer = json.loads(data)
        except (aiohttp.ClientError, TimeoutError, ValueError) as error:
            raise SandboxError(f"{self.tier}/run_code cannot be used: {str(error) or type(error).__name__}") from error
        if not isinstance(answer, dict):
            raise SandboxError(f"{self.tier}/run_code answers with something that is not a JSON object")
        return answer

    async def aclose(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.close()


def make_script_host(tier: str, limits: Limits) -> ScriptHost | None:
    """Make the container host or the server that a tier names; return None for tiers on this machine."""
    if tier.startswith(SERVERS):
        return FusionServer(tier)
    if tier.startswith(DOCKER):
        return ContainerHost(tier.removeprefix(DOCKER), limits)
    return None
