"""A forge on loopback: it runs the jobs of a workflow file as they are written, and keeps comments."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.warm_python import WITHOUT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tests.warm_python import WarmPython

ROOT = Path(__file__).parents[2]
SKIPPED = re.compile(r"(pip install|sudo sysctl) ")
"""Commands that prepare a fresh machine."""

TOKEN = "token-of-the-forge"


@dataclass
class Comments:
    """What a forge keeps of one pull request.

    Attributes:
        url: of its API.
        kept: comments, oldest first.
        status: what calls are answered with, where it is an error.
        tokens: that calls came with.
    """

    url: str
    kept: list[dict[str, Any]] = field(default_factory=list)
    status: int = 200
    tokens: set[str] = field(default_factory=set)


@pytest.fixture
def comments() -> Iterator[Comments]:
    state = Comments("")

    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body: dict[str, Any] = json.loads(self.rfile.read(length)) if length else {}
            state.tokens |= {self.headers.get("Authorization", ""), self.headers.get("PRIVATE-TOKEN", "")}
            if self.command == "POST":
                new = {"id": len(state.kept) + 1, "system": False, "user": {"type": "Bot"}}
                state.kept.append({**new, **body})
            elif self.command != "GET":
                number = int(self.path.rpartition("/")[2])
                next(one for one in state.kept if one["id"] == number).update(body)
            page = int((re.findall(r"&page=(\d+)", self.path) or ["1"])[0]) - 1
            data = json.dumps(state.kept[100 * page : 100 * (page + 1)]).encode()
            self.send_response(state.status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def __getattr__(self, name: str) -> Any:
            if name.startswith("do_"):
                return self.answer
            raise AttributeError(name)

        def log_message(self, *_: Any) -> None:
            """Nothing on the terminal."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    state.url = f"http://127.0.0.1:{server.server_port}"
    yield state
    server.shutdown()
    server.server_close()
    thread.join()


@dataclass
class Machine:
    """Runs jobs of a repository, each in a fresh clone.

    Attributes:
        home: holds the repository `origin`, clones, and what jobs uploaded.
        environment: of every command.
    """

    home: Path
    environment: dict[str, str]
    log: str = ""

    @property
    def artifacts(self) -> Path:
        return self.home / "artifacts"

    def commit(self, files: Mapping[str, str]) -> None:
        """Writes files into the repository and commits everything that it holds."""
        origin = self.home / "origin"
        origin.mkdir(exist_ok=True)
        for name, text in files.items():
            (origin / name).parent.mkdir(parents=True, exist_ok=True)
            (origin / name).write_text(text, "utf-8")
        author = ["-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main"]
        for words in (["init", "-q"], ["add", "-Af"], ["commit", "-qm", "All"]):
            subprocess.run(["git", *author, *words], cwd=origin, check=True)

    def clone(self, job: str) -> Path:
        target = self.home / "jobs" / job
        subprocess.run(["git", "clone", "-q", self.home / "origin", target], check=True)
        return target

    def shell(self, command: str, folder: Path, **more: str) -> int:
        """Runs a step's commands as the forge's runner does."""
        if SKIPPED.match(command):
            return 0
        result = subprocess.run(
            ["bash", "-e", "-c", command],
            cwd=folder,
            env={**self.environment, **more},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        self.log += f"$ {command}\n{result.stdout}[{result.returncode}]\n"
        return result.returncode


@pytest.fixture
def machine(tmp_path: Path, warm_python: WarmPython) -> Machine:
    """One whose commands are copies of a warm process, without matplotlib, because no job is about pictures."""
    inherited = {name: os.environ[name] for name in ("HOME", "LANG") if name in os.environ}
    commands = tmp_path / "commands"
    inherited |= warm_python.write_commands(commands) | {WITHOUT: "matplotlib"}
    path = os.pathsep.join([str(commands), str(Path(sys.executable).parent), os.environ["PATH"]])
    plain = {"PATH": path, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_PLUGINS": "xdist.plugin"}
    return Machine(tmp_path, {**inherited, **plain})


@dataclass
class GitHub:
    """What GitHub's runner makes of a workflow.

    Attributes:
        machine: runs the commands.
        workflow: the parsed file.
        context: values of expressions, by name.
        outcome: exit statuses of steps, by job and place.
    """

    machine: Machine
    workflow: dict[str, Any]
    context: dict[str, str]
    outcome: dict[str, list[int]] = field(default_factory=dict)

    def run(self, job: str, **matrix: object) -> bool:
        """Runs one job; whether it is green."""
        spec, number = self.workflow["jobs"][job], len(self.outcome)
        name = f"{job}-{number}"
        folder, green = self.machine.home / "jobs" / name, True
        values = self.context | {f"matrix.{key}": str(value) for key, value in matrix.items()}
        values |= {f"env.{key}": str(value) for key, value in self.workflow.get("env", {}).items()}
        self.outcome[name] = []
        for step in spec["steps"]:
            if not green and not re.search(r"always|cancelled", str(step.get("if", ""))):
                continue
            status = self.step(step, name, folder, values)
            self.outcome[name].append(status)
            green = green and status == 0
        return green

    def step(self, step: dict[str, Any], job: str, folder: Path, values: dict[str, str]) -> int:
        step = json.loads(
            re.sub(r"\$\{\{ *(.*?) *\}\}", lambda found: json.dumps(values.get(found[1], ""))[1:-1], json.dumps(step))
        )
        given = step.get("with", {})
        match step.get("uses", "").partition("@")[0]:
            case "actions/checkout":
                self.machine.clone(job)
            case "actions/upload-artifact":
                return self.upload(given, folder)
            case "actions/download-artifact":
                for artifact in self.machine.artifacts.glob(given["pattern"]):
                    shutil.copytree(artifact, folder / given["path"] / artifact.name, dirs_exist_ok=True)
            case "":
                return self.command(step, folder, values)
            case "OWNER/evalsuite":
                return self.action(step, folder, values)
        return 0

    def action(self, call: dict[str, Any], folder: Path, values: dict[str, str]) -> int:
        """Runs the steps of the repository's composite action."""
        text = (ROOT / "action.yml").read_text("utf-8").replace("${{ github.token }}", values["github.token"])
        action = yaml.safe_load(text)
        inputs = {name: str(spec.get("default", "")) for name, spec in action["inputs"].items()} | call["with"]
        own, status = values | {f"inputs.{name}": str(value) for name, value in inputs.items()}, 0
        self.machine.environment |= call.get("env", {})
        for step in action["runs"]["steps"]:
            if not status or re.search(r"always|cancelled", str(step.get("if", ""))):
                status = self.step(step, "", folder, own) or status
        return status

    def command(self, step: dict[str, Any], folder: Path, values: dict[str, str]) -> int:
        output = self.machine.home / "output"
        output.write_text("")
        more = {"GITHUB_OUTPUT": str(output), **{key: str(text) for key, text in step.get("env", {}).items()}}
        status = self.machine.shell(step["run"], folder, **more)
        for line in output.read_text().splitlines():
            name, _, value = line.partition("=")
            values[f"steps.{step.get('id')}.outputs.{name}"] = value
        return status

    def upload(self, given: dict[str, Any], folder: Path) -> int:
        paths = [folder / path for path in given["path"].split()]
        target = self.machine.artifacts / given["name"]
        target.mkdir(parents=True, exist_ok=True)
        for path in paths:
            if path.is_dir():
                shutil.copytree(path, target, dirs_exist_ok=True)
            elif path.exists():
                shutil.copy(path, target)
        return 0


@dataclass
class GitLab:
    """What GitLab's runner makes of a pipeline: each job in a clone, with the artifacts of earlier stages."""

    machine: Machine
    pipeline: dict[str, Any]
    outcome: dict[str, list[int]] = field(default_factory=dict)

    def run(self, job: str, **variables: str) -> bool:
        spec, name = self.pipeline[job], f"{job}-{len(self.outcome)}"
        folder = self.machine.clone(name)
        earlier = self.machine.artifacts / "gitlab"
        if earlier.exists():
            shutil.copytree(earlier, folder, dirs_exist_ok=True)
        self.outcome[name] = []
        variables = {key: str(value) for key, value in spec.get("variables", {}).items()} | variables
        for command in (*spec.get("before_script", ()), *spec["script"]):
            self.outcome[name].append(self.machine.shell(command, folder, **variables))
            if self.outcome[name][-1]:
                break
        for command in spec.get("after_script", ()):
            self.machine.shell(command, folder, **variables)
        for path in spec["artifacts"]["paths"]:
            source = folder / path
            if source.is_dir():
                shutil.copytree(source, earlier / path, dirs_exist_ok=True)
            elif source.exists():
                (earlier / path).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(source, earlier / path)
        return not any(self.outcome[name])
