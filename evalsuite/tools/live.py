"""The executor `live`: the published tool.py files, in bubblewrap, with this machine's network.

Weaker than `evalsuite.sandbox`, which gives programs no network at all: these files are published code that
calls web services, and their user chose them. They see their own folder, Python and its packages, an empty
/tmp and the network, loopback included; nothing else of this machine.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from evalsuite.errors import SandboxUnavailable, SettingsError
from evalsuite.sandbox import bubblewrap
from evalsuite.sandbox.unavailable import why
from evalsuite.threads import in_thread
from evalsuite.tools.execution import ToolFailure

if TYPE_CHECKING:
    from collections.abc import Mapping

    from evalsuite.protocols import Model
    from evalsuite.tools.documents import ToolDocument

DRIVER = Path(__file__).parent / "live_driver.py"
SECONDS = 30.0
MAX_OUTPUT = 1 << 20
_STARTED = b"started\n"
# What names and certificates are looked up with; absent ones are passed over.
_NETWORK_FILES = (
    "/etc/resolv.conf", "/etc/hosts", "/etc/nsswitch.conf", "/etc/ssl", "/etc/pki",
    "/etc/ca-certificates", "/usr/share/ca-certificates", "/usr/local/share/ca-certificates",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class LiveLibrary:
    """A folder of published tools.

    Attributes:
        folder: holds `<category>/<subcategory>/tool.py`.
        allow_network: the user's leave to let these tools use the network.
        seconds: a call may take.
    """

    folder: Path
    allow_network: bool
    seconds: float = SECONDS

    def __post_init__(self) -> None:
        """Refuses what the user has not allowed, and a folder without tools.

        Raises:
            SettingsError: the network is not allowed, or there are no tools.
        """
        if not self.allow_network:
            raise SettingsError(
                "executor='live' runs published code that calls services on the internet with arguments "
                "written by the model; allow it with allow_network=True, or use executor='simulated'"
            )
        if not any(self.folder.glob("*/*/tool.py")):
            raise SettingsError(f"{self.folder} holds no tools: there is no <category>/<subcategory>/tool.py")


@dataclass(frozen=True, slots=True)
class Live:
    """Runs each call in a process of its own."""

    library: LiveLibrary
    kind: str = "live"

    async def run(self, document: ToolDocument, arguments: Mapping[str, Any], model: Model) -> Any:  # noqa: ARG002 - the executors' signature
        """What the tool returned.

        Raises:
            ToolFailure: the tool raised, is missing, took too long or said too much.
            SandboxUnavailable: there is no bubblewrap, or none that works here.
        """
        module = ".".join([*document.origin.split("/"), "tool"])
        call = {"module": module, "name": document.name, "arguments": dict(arguments)}
        answer = await in_thread(self._answer, json.dumps(call).encode())
        if "error" in answer:
            raise ToolFailure(str(answer["error"]))
        return answer.get("result")

    def _answer(self, call: bytes) -> dict[str, Any]:
        """What the first bubblewrap that works made of a call."""
        failures = {}
        for bwrap in bubblewrap.candidates():
            output, complaints = self._run(command(bwrap, self.library.folder), call)
            if output.startswith(_STARTED):
                return _read(output.removeprefix(_STARTED), complaints)
            failures[bwrap] = complaints.strip()[-500:]
        raise SandboxUnavailable(why(failures))

    def _run(self, told: list[str], call: bytes) -> tuple[bytes, str]:
        """What the process wrote on standard output, up to a limit, and on standard error."""
        # Files and not pipes: the limit on the size of files then holds for output too.
        with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as complaints:
            with subprocess.Popen(  # noqa: S603 - the command is ours; the call is data on its input
                told,
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=complaints,
                env=bubblewrap.environment(),
                start_new_session=True,
            ) as process:
                try:
                    process.communicate(call, self.library.seconds)
                except subprocess.TimeoutExpired:
                    process.kill()
                    raise ToolFailure(f"no answer within {self.library.seconds:g} seconds") from None
            return _start_of(output), _start_of(complaints).decode("utf-8", "replace")


def command(bwrap: str, folder: Path) -> list[str]:
    """The sandbox's own command, with the network, the tools' folder and our driver."""
    told = bubblewrap.command(bwrap)
    told.remove("--unshare-net")
    shown = ["--tmpfs", "/tmp", "--ro-bind", str(folder.resolve()), "/library", "--cap-drop", "ALL"]  # noqa: S108 - its own
    for path in _NETWORK_FILES:
        # resolv.conf is often a link to a place that the sandbox does not show.
        shown += ["--ro-bind-try", str(Path(path).resolve()), path]
    at = told.index("--remount-ro")
    told[at:at] = shown
    end = told.index("--")
    return [*told[: end + 1], bubblewrap.interpreter(), "-s", "-S", "-B", "-c", _program()]


def _program() -> str:
    # -S leaves the packages out, which stand elsewhere in a virtual environment than in its interpreter.
    return f"import sys; sys.path += {bubblewrap.packages()!r}\n" + DRIVER.read_text(
        encoding="utf-8"
    ).replace("from __future__ import annotations\n", "")


def _read(line: bytes, complaints: str) -> dict[str, Any]:
    if len(line) + len(_STARTED) >= MAX_OUTPUT:
        raise ToolFailure(f"the tool returned more than {MAX_OUTPUT} bytes")
    try:
        answer = json.loads(line)
    except (ValueError, RecursionError):
        raise ToolFailure(f"the tool ended without an answer: {complaints.strip()[-500:]}") from None
    return answer if isinstance(answer, dict) else {}


def _start_of(file: IO[bytes]) -> bytes:
    file.seek(0)
    return file.read(MAX_OUTPUT)
