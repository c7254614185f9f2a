"""Live tools: small tool.py files of our own in bubblewrap, on loopback or without a network."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest

from evalsuite.core.errors import SandboxUnavailable, SettingsError, ToolError
from evalsuite.sandbox import Sandbox
from evalsuite.sandbox.environments import get_own_interpreter
from evalsuite.tools.execution import ToolDocument, ToolFailure
from evalsuite.tools.live import LiveExecutor, find_code_executing_tools

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NOBODY: Any = None
TOOL = """
import os
import urllib.request

from .numbers_of_mine import FACTOR

print("a tool may print what it likes")

def multiply(number, times=FACTOR):
    return {"product": int(number) * int(times)}

def fetch(url):
    return urllib.request.urlopen(url).read().decode()

def look(path):
    return sorted(os.listdir(path))

def surroundings():
    return dict(os.environ)

def write(path):
    open(path, "w").write("x")

def echo(text):
    return text

def fail():
    raise LookupError("nothing there")

def loop():
    while True:
        pass

def crash():
    os.abort()

def flood():
    return "x" * 5_000_000

def pairs():
    return {(1, 2): 3}

def late():
    import a_package_that_is_nowhere
"""
LACKING = "import a_package_that_is_nowhere\n\ndef reach():\n    return 1\n"
SHELL = "import subprocess\n\ndef run(line):\n    return subprocess.run(line, shell=True)\n"
PYTHON = "def run(code):\n    exec(code)\n    return 'done'\n"


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    try:
        asyncio.run(_probe())
    except SandboxUnavailable as error:
        pytest.skip(str(error))
    folder = tmp_path_factory.mktemp("Tool_Library")
    subject = folder / "Numbers" / "Products"
    subject.mkdir(parents=True)
    (subject / "tool.py").write_text(TOOL)
    (subject / "numbers_of_mine.py").write_text("FACTOR = 3\n")
    for name, text in (("Lacking", LACKING), ("Shell", SHELL), ("Python", PYTHON), ("Broken", "def (")):
        (folder / "Execute" / name).mkdir(parents=True)
        (folder / "Execute" / name / "tool.py").write_text(text)
    return folder


async def _probe() -> None:
    sandbox = Sandbox()
    await sandbox.run("pass")
    await sandbox.aclose()


def call(library: Path, name: str, seconds: float = 30.0, origin: str = "Numbers/Products", **arguments: Any) -> Any:
    document = ToolDocument(name, "", {}, origin)
    live = LiveExecutor(library, allow_network=True, allow_code=True, seconds=seconds)
    return asyncio.run(live.run_tool(document, arguments, NOBODY))


def test_a_published_function_is_called_with_its_own_imports(library: Path) -> None:
    assert call(library, "multiply", number="14") == {"product": 42}


def test_code_in_arguments_stays_text(library: Path) -> None:
    hostile = "__import__('os').system('touch /tmp/owned')\"; import os #"
    assert call(library, "echo", text=hostile) == hostile


def test_what_goes_wrong_in_a_tool_is_a_failure(library: Path) -> None:
    for name, words in (
        ("fail", "LookupError: nothing there"),
        ("absent", "has no attribute 'absent'"),
        ("pairs", "^TypeError: keys must be str"),
        ("crash", "ended without an answer"),
        ("flood", "more than 1048576 bytes"),
    ):
        with pytest.raises(ToolFailure, match=words):
            call(library, name)
    with pytest.raises(ToolFailure, match="unexpected keyword argument 'sneaky'"):
        call(library, "multiply", number=1, sneaky=2)


def test_a_package_or_file_that_is_not_on_this_machine_is_no_failure_of_the_tool(library: Path) -> None:
    for origin, name, words in (
        ("Execute/Lacking", "reach", "No module named 'a_package_that_is_nowhere'; install"),
        ("Numbers/Products", "late", "No module named 'a_package_that_is_nowhere'"),
        ("Numbers/Absent", "any", r"No module named 'Numbers\.Absent'"),
    ):
        with pytest.raises(ToolError, match=words):
            call(library, name, origin=origin)
    # What the model's own code imports is its own business.
    with pytest.raises(ToolFailure, match="ModuleNotFoundError"):
        call(library, "run", origin="Execute/Python", code="import a_package_that_is_nowhere")


def test_tools_that_execute_code_need_a_switch_of_their_own(library: Path) -> None:
    assert find_code_executing_tools(library) == {"Execute/Shell", "Execute/Python"}
    live = LiveExecutor(library, allow_network=True)
    document = ToolDocument("run", "", {}, "Execute/Python")
    with pytest.raises(ToolError, match="allow_code=True"):
        asyncio.run(live.run_tool(document, {"code": "1"}, NOBODY))
    assert call(library, "run", origin="Execute/Python", code="1") == "done"


@pytest.mark.parametrize(
    "text",
    [
        "from subprocess import run as go\ndef tool(line):\n    return go(line, shell=True)",
        "import subprocess as sp\ndef tool(line):\n    return sp.getoutput(line)",
        "def tool(line):\n    import os as system\n    return system.popen(line).read()",
        "from os import system\ndef tool(line):\n    return system(line)",
        "from os import *\ndef tool(line):\n    return system(line)",
        "from .other import os\ndef tool(line):\n    return os.system(line)",
        "import os\ndef tool(line):\n    return os.system(line)\ndef other():\n    import posixpath as os",
        "def tool(code):\n    return list(map(eval, [code]))",
        "run = exec\ndef tool(code):\n    run(code)",
        "import builtins as b\ndef tool(code):\n    b.exec(code)",
        "def tool(line):\n    return __import__('os').system(line)",
        "from langchain.utilities import PythonREPL as R\ndef tool(code):\n    return R().run(code)",
    ],
)
def test_a_tool_that_executes_code_under_another_name_or_in_another_file_is_found(tmp_path: Path, text: str) -> None:
    for name, helper in (("Direct", ""), ("Helped", text)):
        (tmp_path / "Execute" / name).mkdir(parents=True)
        (tmp_path / "Execute" / name / "tool.py").write_text("from .helper import tool" if helper else text)
        (tmp_path / "Execute" / name / "helper.py").write_text(helper)
    (tmp_path / "Text" / "Plain").mkdir(parents=True)
    plain = "import os, re, platform\nWORD = re.compile('a')\ndef tool():\n    return os.path.join(platform.system())"
    (tmp_path / "Text" / "Plain" / "tool.py").write_text(plain)
    assert find_code_executing_tools(tmp_path) == {"Execute/Direct", "Execute/Helped"}


def test_a_tool_that_never_ends_is_stopped(library: Path) -> None:
    with pytest.raises(ToolFailure, match="no answer within 2 s"):
        call(library, "loop", seconds=2.0)


def test_a_tool_sees_nothing_of_this_machine_and_can_change_nothing(
    library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    assert "secret" not in str(call(library, "surroundings"))
    with pytest.raises(ToolFailure, match="FileNotFoundError"):
        call(library, "look", path=str(tmp_path))
    for path in (str(library / "x"), "/library/x", "/etc/x"):
        with pytest.raises(ToolFailure, match=r"OSError|FileNotFoundError|PermissionError"):
            call(library, "write", path=path)
    call(library, "write", path="/tmp/x")
    assert call(library, "look", path="/tmp") == []


@pytest.fixture
def page() -> Iterator[str]:
    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"from the network")

        def log_message(self, *_: Any) -> None:
            """Nothing on the terminal."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Page)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()
    thread.join()


def test_a_tool_has_the_network(library: Path, page: str) -> None:
    assert call(library, "fetch", url=page) == "from the network"


def test_the_network_must_be_allowed(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="allow_network=True"):
        LiveExecutor(tmp_path, allow_network=False)


def test_a_folder_without_tools_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"no <category>/<subcategory>/tool\.py"):
        LiveExecutor(tmp_path, allow_network=True)


def test_a_sandbox_that_does_not_start_is_an_error_and_no_observation(
    library: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nowhere = replace(get_own_interpreter(), executable="/no/such/python")
    monkeypatch.setattr("evalsuite.tools.live.get_own_interpreter", lambda: nowhere)
    with pytest.raises(SandboxUnavailable, match="/no/such/python"):
        call(library, "multiply", number=1)
