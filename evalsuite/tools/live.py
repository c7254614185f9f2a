"""The executor `live`: runs published tool.py files inside bubblewrap, with the network of this machine.

This sandbox is weaker than `evalsuite.sandbox`, in which programs have no network. The user chooses the tool.py files;
their code, which others published, calls web services. It can access its own folder, Python and its packages, an empty
/tmp, and the network, including loopback, but nothing else of this machine.
"""

import ast
import json
import subprocess
import tempfile
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO, Any

from evalsuite.core.errors import SandboxUnavailable, SettingsError, ToolError
from evalsuite.core.protocols import Model
from evalsuite.core.threads import run_in_thread
from evalsuite.sandbox import tiers
from evalsuite.sandbox.environments import get_own_environment, get_own_interpreter
from evalsuite.sandbox.tiers import explain_failures
from evalsuite.tools.execution import ToolDocument, ToolFailure

DRIVER = Path(__file__).parent / "live_driver.py"
SECONDS = 30.0
MAX_OUTPUT = 1 << 20
_STARTED = b"started\n"
# Functions, and modules of functions, that run code or commands given as text.
_EXECUTES = {
    *("eval", "exec", "compile", "__import__", "builtins", "__builtins__", "PythonREPL"),
    *("os.system", "os.popen", "os.*", "subprocess", "pexpect"),
}
# Files that are needed to resolve names and to check certificates; files that do not exist are left out.
_NETWORK_FILES = (
    "/etc/resolv.conf", "/etc/hosts", "/etc/nsswitch.conf", "/etc/ssl", "/etc/pki",
    "/etc/ca-certificates", "/usr/share/ca-certificates", "/usr/local/share/ca-certificates",
)  # fmt: skip


@cache
def find_code_executing_tools(folder: Path) -> frozenset[str]:
    """Find each `<category>/<subcategory>` whose files name `eval`, `exec` or a shell; the files are not run."""
    tools = [path.parent for path in folder.glob("*/*/tool.py")]
    return frozenset("/".join(tool.parts[-2:]) for tool in tools if any(map(_is_executing_code, tool.rglob("*.py"))))


def _is_executing_code(path: Path) -> bool:
    """Tell whether a file names a function that runs code or commands, such as `eval`, by this name or an alias."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            module = ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        # A file that cannot be parsed cannot be imported either, so it runs no code.
        return False
    nodes = list(ast.walk(module))
    imports: dict[str, str] = {}
    names = {node.id for node in nodes if isinstance(node, ast.Name)}
    for node in nodes:
        if isinstance(node, ast.Import | ast.ImportFrom):
            source = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
            imports |= {alias.asname or alias.name: source + alias.name for alias in node.names}
            names |= {alias.name for alias in node.names}
    names |= {*imports.values()}
    for node in nodes:
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            # Another file may have imported the module, and another function may import something else as this name.
            names |= {f"{owner}.{node.attr}" for owner in (node.value.id, imports.get(node.value.id))}
    return any(name in _EXECUTES or name.partition(".")[0] in _EXECUTES for name in names)


@dataclass(frozen=True, slots=True)
class LiveExecutor:
    """Runs each call of a published tool in a process of its own."""

    folder: Path  # Holds `<category>/<subcategory>/tool.py`.
    allow_network: bool  # Whether the user permits these tools to use the network.
    allow_code: bool = False  # Whether the user permits tools that run code written by the model.
    seconds: float = SECONDS  # Time limit of a call, in seconds.
    kind: str = "live"

    def __post_init__(self) -> None:
        if not self.allow_network:
            raise SettingsError(
                "executor='live' runs published code that calls services on the internet with arguments "
                "written by the model; allow it with allow_network=True, or use executor='simulated'"
            )
        if not any(self.folder.glob("*/*/tool.py")):
            raise SettingsError(f"{self.folder} holds no tools: there is no <category>/<subcategory>/tool.py")

    async def run_tool(self, document: ToolDocument, arguments: Mapping[str, Any], model: Model) -> Any:  # noqa: ARG002 - the executors' signature
        executes_code = document.origin in find_code_executing_tools(self.folder)
        if executes_code and not self.allow_code:
            raise ToolError(
                f"{document.name} of {document.origin} executes code that the model writes; allow it with "
                "allow_code=True"
            )
        call = {
            "module": ".".join([*document.origin.split("/"), "tool"]),
            "name": document.name,
            "arguments": dict(arguments),
            "executes_code": executes_code,
        }
        answer = await run_in_thread(self._run_in_bubblewrap, json.dumps(call).encode())
        if "missing" in answer:
            raise ToolError(
                f"the tool {document.name} of {document.origin} cannot be run on this machine: {answer['missing']}; "
                "install what it imports into this environment"
            )
        if "error" in answer:
            raise ToolFailure(str(answer["error"]))
        return answer.get("result")

    def _run_in_bubblewrap(self, call: bytes) -> dict[str, Any]:
        """Run a call in the first bubblewrap executable that works."""
        failures, python = {}, get_own_interpreter()
        for bwrap in tiers.find_bubblewrap():
            command_line, env = make_sandbox_command(bwrap, self.folder), tiers.make_environment_variables(python)
            # Use files instead of pipes: the limit on file sizes then also limits the output.
            with tempfile.TemporaryFile() as output_file, tempfile.TemporaryFile() as error_file:
                options: dict[str, Any] = {"stdout": output_file, "stderr": error_file, "timeout": self.seconds}
                try:
                    subprocess.run(command_line, check=False, input=call, env=env, start_new_session=True, **options)  # noqa: S603 - the command is ours; the call is data on its input
                except subprocess.TimeoutExpired:
                    raise ToolFailure(f"no answer within {self.seconds:g} s") from None
                output, written = _read_beginning(output_file), _read_beginning(error_file)
            error_output = written.decode("utf-8", "replace").strip()[-500:]
            if not output.startswith(_STARTED):
                failures[bwrap] = error_output
                continue
            if len(output) >= MAX_OUTPUT:
                raise ToolFailure(f"the tool returned more than {MAX_OUTPUT} bytes")
            try:
                answer = json.loads(output.removeprefix(_STARTED))
            except (ValueError, RecursionError):
                raise ToolFailure(f"the tool ended without an answer: {error_output}") from None
            return answer if isinstance(answer, dict) else {}
        raise SandboxUnavailable(explain_failures(failures))


def make_sandbox_command(bwrap: str, folder: Path) -> list[str]:
    """Make the command that runs evalsuite's driver in a sandbox with the network and the tools' folder."""
    words = tiers.build_bubblewrap_command(bwrap, get_own_environment())
    words.remove("--unshare-net")
    shown = ["--tmpfs", "/tmp", "--ro-bind", str(folder.resolve()), "/library", "--cap-drop", "ALL"]  # noqa: S108 - its own
    for path in _NETWORK_FILES:
        # Resolve links: resolv.conf, for example, is often a link to a path that the sandbox lacks.
        shown += ["--ro-bind-try", str(Path(path).resolve()), path]
    at = words.index("--remount-ro")
    words[at:at] = shown
    end = words.index("--")
    # `-S` leaves out the paths of installed packages, so add them.
    setup = f"import sys; sys.path += {list(get_own_environment().packages)!r}\n"
    driver = DRIVER.read_text("utf-8")
    return [*words[: end + 1], get_own_interpreter().executable, "-s", "-S", "-B", "-c", setup + driver]


def _read_beginning(file: IO[bytes]) -> bytes:
    file.seek(0)
    return file.read(MAX_OUTPUT)
