"""Where programs run whole, one script each: the seam, the script, and how its end is read."""

from __future__ import annotations

import base64
import binascii
import io
import secrets
import zipfile
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Protocol

from evalsuite.core.errors import SandboxError, SandboxUnavailable
from evalsuite.sandbox.bubblewrap import INSIDE
from evalsuite.sandbox.environments import MENTIONED, ProgramEnvironment
from evalsuite.sandbox.execution import execution
from evalsuite.sandbox.files import read_files
from evalsuite.sandbox.interpreters import Interpreter
from evalsuite.sandbox.tables import payload

if TYPE_CHECKING:
    from evalsuite.sandbox.execution import Execution
    from evalsuite.sandbox.inside.limits import Limits

START_SECONDS = 60.0
"""What a script may take beyond its program: an interpreter starts, pandas is imported, tables are read."""
_NO_TABLE, _ALARM = 97, 14
_SCRIPT = """\
import base64, io, os, sys, tempfile, zipfile
folder = tempfile.mkdtemp()
zipfile.ZipFile(io.BytesIO(base64.b64decode({bundle!r}))).extractall(folder)
sys.path.insert(0, folder)
for name in ("numpy", "pandas"):
    try: __import__(name)
    except ImportError: pass
from inside import single_program
sys.path.remove(folder)
single_program.main(os.path.join(folder, "payload"), {word!r}, {seconds!r})
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
    """What came of a script.

    Attributes:
        stdout: as printed.
        stderr: likewise.
        status: its exit status; negative, or 128 and more, where a signal ended it.
        seconds: how long it took.
        timed_out: whether its host stopped it for time.
    """

    stdout: bytes
    stderr: bytes
    status: int
    seconds: float
    timed_out: bool = False


class ScriptHost(Protocol):
    """A place that runs Python scripts and keeps them apart from everything else.

    Attributes:
        tier: its name in records.
        at_once: how many scripts may run at a time.
        alive: whether scripts can be run.
    """

    tier: str
    at_once: int
    alive: bool

    async def run(self, script: str, seconds: float) -> ScriptEnd:
        """Runs a script.

        Raises:
            SandboxError: the place failed, which says nothing about the script.
        """
        ...

    async def aclose(self) -> None:
        """Lets go of everything."""
        ...


async def run_program(host: ScriptHost, content: bytes, seconds: float, limits: Limits) -> Execution:
    """Runs one program.

    Args:
        host: where.
        content: see `tables.payload`.
        seconds: that it may take.
        limits: of which the one on output is kept here; the others are the host's business.

    Raises:
        SandboxError: the host failed, or a table could not be loaded.
    """
    word = secrets.token_hex(16)
    bundle = base64.b64encode(_bundle(content)).decode()
    end = await host.run(_SCRIPT.format(bundle=bundle, word=word, seconds=seconds), seconds + START_SECONDS)
    error, reached, files = end.stderr.rpartition(f"\n{word}".encode())
    if not reached:
        # It ended before it could hand over anything.
        error, files = files, b""
    how = _how(end)
    if end.status == _NO_TABLE and reached:
        words = error.decode("utf-8", "replace").strip()
        raise SandboxError(f"the program's tables could not be loaded: {words}")
    result = execution(how, end.stdout, error, timeout=seconds, seconds=end.seconds, limits=limits)
    return replace(result, tier=host.tier, files=read_files(_decoded(files)))


async def installed(host: ScriptHost, limits: Limits) -> ProgramEnvironment:
    """What programs find there.

    Raises:
        SandboxUnavailable: it runs no programs; the message says why.
    """
    import json

    try:
        answer = await run_program(host, payload(_INSTALLED, {}, last=True), START_SECONDS, limits)
        version, packages = json.loads(answer.stdout)
    except SandboxError as error:
        raise SandboxUnavailable(f"{host.tier} runs no programs: {error}") from error
    except (ValueError, TypeError) as error:
        words = answer.error or f"it printed {answer.stdout[:200]!r}"
        raise SandboxUnavailable(f"{host.tier} runs no programs as it should: {words}") from error
    return ProgramEnvironment(host.tier, Interpreter("", "", (), str(version)), (), packages)


def _how(end: ScriptEnd) -> str:
    signal = -end.status if end.status < 0 else end.status - 128
    if end.timed_out or signal == _ALARM:
        return "timeout"
    if end.status in {0, 1}:
        return "raised" if end.status else "ok"
    return f"signal {signal}" if signal > 0 else f"exit {end.status}"


def _bundle(content: bytes) -> bytes:
    data = io.BytesIO(_modules())
    with zipfile.ZipFile(data, "a") as archive:
        archive.writestr("payload", content)
    return data.getvalue()


@cache
def _modules() -> bytes:
    """The code that runs a program, as a zip file."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(INSIDE.glob("*.py")):
            archive.write(path, f"inside/{path.name}")
    return data.getvalue()


def _decoded(files: bytes) -> bytes:
    try:
        return base64.b64decode(files)
    except binascii.Error:
        return b""
