"""`evalsuite init`: write a new project's files; `--ci` adds a CI workflow and a first baseline, and tries them out."""

import argparse
import configparser
import json
import os
import re
import shlex
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from evalsuite.commands import print_lines, run_own_command
from evalsuite.commands.baseline import refuse_unfit_run, write_baseline
from evalsuite.core.errors import RunError
from evalsuite.core.option_values import declare_arguments
from evalsuite.models.choice import INSTALL_LOCAL
from evalsuite.models.scripted import MODEL, SCRIPT
from evalsuite.results.run_folders import RunFolder

CONFTEST = 'pytest_plugins = ["evalsuite.plugin"]\n'

CASE = '''"""A first case. Each sample becomes a test of its own; replace them with questions that matter to you."""

from evalsuite import Sample, benchmark, contains, generate

CAPITALS = [
    Sample(id="fr", input="What is the capital of France? One word.", target="Paris", tags={"region": "eu"}),
    Sample(id="jp", input="What is the capital of Japan? One word.", target="Tokyo", tags={"region": "asia"}),
    Sample(id="ke", input="What is the capital of Kenya? One word.", target="Nairobi", tags={"region": "africa"}),
]


@benchmark("capitals", CAPITALS, solver=generate(max_tokens=16), scorers=[contains()])
def test_capitals(scores: dict[str, float]) -> None:
    assert scores["contains"] == 1.0
'''

TOML_GATE = """evalsuite_gates = [
  "capitals.contains >= 0.9", # the mean over all cases; a missed gate ends the run with status 10
]
"""
INI_GATE = """# The mean over all cases; a missed gate ends the run with status 10.
evalsuite_gates =
    capitals.contains >= 0.9
"""

PYTEST_FILES = {
    "pytest.toml": "pytest",
    ".pytest.toml": "pytest",
    "pytest.ini": "pytest",
    ".pytest.ini": "pytest",
    "pyproject.toml": "tool.pytest",
    "tox.ini": "pytest",
    "setup.cfg": "tool:pytest",
}
"""The files that may contain pytest's settings, in pytest's order of search, each with its section."""


# The file from which pytest reads a project's settings, the header of their section, and whether they have gates.
SettingsFile = tuple[Path, str, bool]


@declare_arguments(
    """
    folder=DIR?    the project's root (default: here)
    --model MODEL  with --ci: the model of the workflow (default: gpt-4). With --model, the model is also asked now, for
        the first baseline
    --ci FORGE?    also write a CI workflow, and prove it: its commands run once green and once red with a scripted
        model

    Writes conftest.py, evals/test_first.py and a gate in pytest.toml. Existing files do not change; lines that an
    existing file lacks are printed in its format.
    """,
    folder=Path(),
    ci={"choices": ("auto", "github", "gitlab"), "const": "auto"},
)
def run_init(options: argparse.Namespace) -> int:
    """Write the files that do not exist yet, and print the next steps."""
    root: Path = options.folder
    print_lines(_write_project_files(root))
    if options.ci:
        installer = choose_install_commands(root)
        print_lines(_make_first_baseline(root, options.model))
        print_lines(_write_workflow_file(root, options.ci, options.model, installer))
        if installer.lacking:
            sys.stdout.write(f"lacking  {installer.reason} does not name evalsuite: {installer.lacking}\n")
        with tempfile.TemporaryDirectory(prefix="evalsuite-proof-") as scratch:
            return _prove_workflow(root, Path(scratch))
    sys.stdout.write(
        "\nRun it:  pytest evals/ --model=gpt-4        (the key comes from OPENAI_API_KEY)\n"
        f"Without a key:  {INSTALL_LOCAL}\n"
        "                pytest evals/ --model=local:smollm2\n"
        "For each pull request:  evalsuite init --ci\n"
    )
    return 0


def _write_project_files(root: Path) -> Iterator[str]:
    """Write conftest.py, a first case and a gate, unless they exist; yield a line about each file."""
    yield write_new_file(root / "conftest.py", CONFTEST, "evalsuite.plugin")
    if not any((root / "evals").rglob("test_*.py")):
        yield write_new_file(root / "evals" / "test_first.py", CASE)
    found = find_settings_file(root)
    if found is None:
        yield write_new_file(root / "pytest.toml", f"[pytest]\n{TOML_GATE}")
        return
    path, section, has_gates = found
    # Do not write a new settings file, because pytest would then ignore the existing file.
    gate = TOML_GATE if path.suffix == ".toml" else INI_GATE
    advice = "it has gates" if has_gates else f"add this gate below [{section}] yourself:\n{gate.rstrip()}"
    yield f"kept     {path}: {advice}"


def find_settings_file(root: Path) -> SettingsFile | None:
    """Find the settings file that pytest would read for `evals/`: the nearest file, up to the repository's root."""
    here, top = root.resolve(), find_repository(root)
    above = [folder for folder in here.parents if folder == top or top in folder.parents]
    candidates = (
        _read_settings_file(folder / name, root if folder == here else folder)
        for folder in (here, *above)
        for name in PYTEST_FILES
    )
    return next((found for found in candidates if found is not None), None)


def _read_settings_file(file: Path, shown_folder: Path) -> SettingsFile | None:
    """Read a settings file; None if pytest would ignore the file. Let pytest report files that cannot be parsed."""
    if not file.is_file():
        return None
    section, text = PYTEST_FILES[file.name], file.read_text("utf-8", "replace")
    try:
        if file.suffix == ".toml":
            there = tomllib.loads(text)
            for part in section.split("."):
                there = there.get(part, {})
            if "ini_options" in there:
                section, there = f"{section}.ini_options", there["ini_options"]
            present = bool(there) or f"[{section}]" in text
        else:
            parser = configparser.RawConfigParser(strict=False, allow_no_value=True)
            parser.read_string(text)
            present = parser.has_section(section)
            there = dict(parser[section]) if present else {}
        names = set(there)
    except (tomllib.TOMLDecodeError, configparser.Error, AttributeError, TypeError):
        names, present = set(), section in text
    # From a file with its own name, pytest reads its settings even if the file is empty.
    if not present and not file.stem.endswith("pytest"):
        return None
    return shown_folder / file.name, section, bool({"evalsuite_gate", "evalsuite_gates"} & names)


BASELINE = "evals/baseline"
"""The folder of the first baseline, relative to the project's root. Git often ignores `reports/`."""

GITHUB = """# Decides about each pull request: the job turns red where a gate is missed or the model got worse.
name: {name}

on:
  pull_request:

permissions:
  contents: read
  pull-requests: write # the comment

jobs:
  {name}:
    runs-on: ubuntu-latest
    timeout-minutes: 60
    defaults:
      run:
        working-directory: {folder}
    steps:
      - uses: actions/checkout@v4
      - uses: actions/setup-python@v5
        with:
          python-version: "3.12"
      - run: {install}
      - name: Ask, score and decide
        id: decide
        env:
          OPENAI_API_KEY: ${{{{ secrets.OPENAI_API_KEY }}}}
        run: {decide}
      - name: Comment
        if: ${{{{ !cancelled() }}}}
        env:
          GITHUB_TOKEN: ${{{{ github.token }}}}
          VERDICT: ${{{{ steps.decide.outputs.verdict }}}}
        run: {comment} --verdict="$VERDICT"
      - uses: actions/upload-artifact@v4
        if: ${{{{ !cancelled() }}}} # a run that failed is the one that somebody wants to read
        with:
          name: {name}
          path: {reports}
"""

GITLAB = """# Decides about each merge request: the job turns red where a gate is missed or the model got worse.
{name}:
  image: python:3.12
  rules:
    - if: $CI_PIPELINE_SOURCE == "merge_request_event"
  before_script:
    - {enter}
    - rm -rf reports/pr # a committed run must not decide
    - {install}
  script:
    # The key: OPENAI_API_KEY, a masked CI/CD variable.
    - {decide}
    - {confirm} # a process that ended itself has no verdict
  after_script:
    # GITLAB_TOKEN: a project access token with the scope `api`, as a masked variable.
    - {enter}
    - {comment}
  artifacts:
    when: always
    paths: [{reports}]
"""


@dataclass(frozen=True, slots=True)
class InstallCommands:
    """The commands that install a project's requirements and start its programs."""

    install: str
    prefix: str  # The prefix of every command that starts a program of the project's environment, such as `uv run`.
    reason: str  # The file that shows which installer the project uses.
    lacking: str = ""  # The command that adds evalsuite to the requirements; empty if they name evalsuite already.


def find_repository(root: Path) -> Path:
    """Find the root of the Git repository that contains a folder; without a repository, return the folder itself."""
    here = root.resolve()
    return next((folder for folder in (here, *here.parents) if (folder / ".git").exists()), here)


def write_new_file(file: Path, text: str, needed_text: str = "") -> str:
    """Write a file unless it exists; return a line for the user, with the text that an existing file lacks."""
    file.parent.mkdir(parents=True, exist_ok=True)
    try:
        with file.open("x", encoding="utf-8") as stream:
            stream.write(text)
    except FileExistsError:
        lacking = needed_text and needed_text not in file.read_text("utf-8", "replace")
        return f"kept     {file}{f': add this line yourself:  {text.strip()}' if lacking else ''}"
    return f"written  {file}"


def choose_install_commands(root: Path) -> InstallCommands:
    """Choose the commands that install a project, by its lock file, its requirements or its pyproject.toml."""
    locked = {
        "uv.lock": ("pip install uv && uv sync --locked", "uv run --no-sync ", "uv add --dev evalsuite"),
        "poetry.lock": ("pip install poetry && poetry install", "poetry run ", "poetry add --group dev evalsuite"),
        "pdm.lock": ("pip install pdm && pdm sync --dev", "pdm run ", "pdm add --dev evalsuite"),
    }
    here = root.resolve()
    for folder in dict.fromkeys((here, find_repository(root))):
        for name, (install, prefix, add) in locked.items():
            if (folder / name).is_file():
                return InstallCommands(install, prefix, name, "" if _mentions_evalsuite(folder / name) else add)
        requirements = sorted(folder.glob("*requirements*.txt"), key=lambda file: (len(file.name), file.name))
        named = [file for file in requirements if _mentions_evalsuite(file)]
        if requirements:
            file, extra = (named or requirements)[0], "" if named else " evalsuite"
            return InstallCommands(f"pip install -r {os.path.relpath(file, here)}{extra}", "", file.name)
        pyproject = folder / "pyproject.toml"
        if pyproject.is_file() and re.search(r"^\[project\]", pyproject.read_text("utf-8", "replace"), re.MULTILINE):
            extra = "" if _mentions_evalsuite(pyproject) else " evalsuite"
            return InstallCommands(f"pip install {os.path.relpath(folder, here)}{extra}", "", pyproject.name)
    return InstallCommands("pip install evalsuite", "", "no requirements")


def _mentions_evalsuite(file: Path) -> bool:
    return re.search(r"""(^|["'\s/])evalsuite\b""", file.read_text("utf-8", "replace"), re.MULTILINE) is not None


def make_session_command(model: str, *more: str) -> list[str]:
    """Return the command that runs the cases and decides the gates; the workflow and its trial run use this command."""
    # Set no cost limit for models with a prefix (`local:`), because evalsuite does not know their prices.
    limit = [] if ":" in model else ["--max-cost=5"]
    return ["pytest", "evals/", f"--model={model}", *limit, "--run=pr", *more]


def _make_first_baseline(root: Path, model: str | None) -> Iterator[str]:
    target = root / BASELINE
    if target.is_dir():
        yield f"kept     {target}"
        return
    if model is None:
        yield f"later    {target}: `evalsuite init --ci --model=MODEL` asks the model once, and writes the baseline"
        return
    with tempfile.TemporaryDirectory(prefix="evalsuite-baseline-") as scratch:
        command = ["pytest", "evals/", f"--model={model}", "--run=baseline", f"--reports={scratch}"]
        status, shown = _run_command(command, root, Path(scratch), {})
        made = Path(scratch) / "baseline"
        if status not in {0, 1, 10} or not RunFolder(made).summary():
            yield f"failed   {target}: pytest ended with status {status}:\n{_quote_last_lines(shown)}"
            return
        info = RunFolder(made).info()
        try:
            refuse_unfit_run(RunFolder(made), info)
        except RunError as error:
            yield f"failed   {target}: {error}"
            return
        write_baseline(RunFolder(made), target, info)
    yield f"written  {target}: the answers of {model}; commit it"


def _write_workflow_file(root: Path, forge: str, model: str | None, installer: InstallCommands) -> Iterator[str]:
    repository, here = find_repository(root), root.resolve()
    folder = here.relative_to(repository).as_posix()
    name = "evals" if folder == "." else f"evals-{re.sub(r'[^a-z0-9]+', '-', folder.lower()).strip('-')}"
    if forge == "auto":
        forge = "gitlab" if (repository / ".gitlab-ci.yml").is_file() else "github"
    template, file = (
        (GITHUB, repository / ".github" / "workflows" / f"{name}.yml")
        if forge == "github"
        else (GITLAB, repository / ".gitlab" / f"{name}.yml")
    )

    def fill_template(*more: str) -> str:
        decide = installer.prefix + shlex.join(make_session_command(model or "gpt-4", *more))
        evalsuite = f"{installer.prefix}evalsuite"
        return template.format(
            name=name,
            folder=_quote_yaml_scalar(folder),
            enter=_quote_yaml_scalar(f"cd {shlex.quote(folder)}"),
            reports=_quote_yaml_scalar(f"{folder}/reports/pr"),
            install=_quote_yaml_scalar(installer.install),
            decide=_quote_yaml_scalar(decide),
            confirm=f"{evalsuite} gate pr",
            comment=f"{evalsuite} gate comment reports/pr",
        )

    # With these gates, the job fails if too few cases could show a loss.
    options = (f"--baseline={BASELINE}", "--gate=* no worse than baseline") if (root / BASELINE).is_dir() else ()
    compared = fill_template(*options)
    shown = file if root.is_absolute() else Path(os.path.relpath(file))
    if file.is_file() and file.read_text("utf-8") == fill_template() != compared:
        # Replace a workflow that was written when no baseline existed.
        file.unlink()
    yield write_new_file(shown, compared) + f" (its install step: {installer.install})"
    if forge == "gitlab":
        include = f"include:\n  - local: .gitlab/{name}.yml\n"
        yield write_new_file(repository / ".gitlab-ci.yml", include, f".gitlab/{name}.yml")


def _quote_yaml_scalar(text: str) -> str:
    """Return a text as YAML reads it back: bare, or quoted where a character would end it or change its meaning."""
    return json.dumps(text, ensure_ascii=False) if re.search(r":(\s|$)|\s#|[,\[\]{}]|^[^\w./]", text) else text


def _run_command(command: Sequence[str], root: Path, scratch: Path, variables: dict[str, str]) -> tuple[int, str]:
    """Run one of the workflow's commands without CI variables and caches, so that nothing is posted or left behind."""
    forges = ("GITHUB_", "GITLAB_", "CI_")
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(forges)}
    clean = {"PYTHONDONTWRITEBYTECODE": "1", "COVERAGE_FILE": str(scratch / "coverage")}
    further = [f"--override-ini=cache_dir={scratch / 'cache'}"] if command[0] == "pytest" else []
    result = run_own_command([sys.executable, "-m", *command, *further], {**inherited, **clean, **variables}, root)
    return result.returncode, result.stdout


def _quote_last_lines(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.strip().splitlines()[-8:])


def _prove_workflow(root: Path, scratch: Path) -> int:
    """Run the workflow's commands with a scripted model; return 0 if a green and a red run have status and comment."""

    def run_session(name: str, *more: str, script: Path | None = None) -> tuple[int, str]:
        command = make_session_command(MODEL, f"--reports={scratch / name}", *more)
        given = {"GITHUB_OUTPUT": str(scratch / f"{name}.output"), SCRIPT: str(script or "")}
        return _run_command(command, root, scratch, given)

    def try_workflow(name: str, *more: str, script: Path | None = None) -> int | None:
        """Run the workflow's two commands and print the result; return their status, or None if the statuses differ."""
        status, shown = run_session(name, *more, script=script)
        output = scratch / f"{name}.output"
        verdict = output.read_text("utf-8").strip() if output.is_file() else ""
        command = ["evalsuite", "gate", "comment", str(scratch / name / "pr"), f"--{verdict or 'verdict='}"]
        posted, comment = _run_command(command, root, scratch, {})
        first = (comment.strip().splitlines() or ["no comment"])[0].lstrip("# ")
        sys.stdout.write(f"  {name + ':':<7}exit status {status}, comment “{first}”, {verdict or 'no verdict'}\n")
        if posted == status:
            return status
        sys.stdout.write(f"{_quote_last_lines(shown)}\n")
        return None

    sys.stdout.write("\nproof: the workflow's commands, with a scripted model that costs nothing\n")
    # Without a script, all answers are wrong. This run serves only to record each question's expected answer.
    status, shown = run_session("learn")
    records = scratch / "learn" / "pr" / "records.jsonl"
    if not records.is_file():
        sys.stdout.write(
            f"  not proven: pytest ended with status {status} before a case was scored:\n"
            f"{_quote_last_lines(shown)}\n  mend what it says, then run `evalsuite init --ci` again\n"
        )
        return 1
    script = scratch / "script.json"
    script.write_text(json.dumps(_read_expected_answers(records)), "utf-8")
    green = try_workflow("green", script=script)
    red = try_workflow("red", f"--baseline={scratch / 'green' / 'pr'}")
    if green == 0 and red not in {0, None}:
        sys.stdout.write("  proven: status and comment agree, green and red; nothing was kept or posted\n")
        return 0
    wrong = "green" if green else "red"
    sys.stdout.write(
        f"  not proven: the {wrong} run is not {wrong}. The scripted model answers each question with its "
        "sample's target; if a case needs more (a judge, tools, a program), try the workflow on a pull request\n"
    )
    return 1


def _read_expected_answers(records: Path) -> dict[str, str]:
    """Map each record's input to its target, or to the first of several targets; skip records without a target."""
    answers = {}
    for line in records.read_bytes().splitlines():
        record = json.loads(line)
        target = record.get("target")
        if isinstance(target, list) and target:
            target = target[0]
        if target is not None:
            answers[str(record.get("input") or "")] = target if isinstance(target, str) else json.dumps(target)
    return answers
