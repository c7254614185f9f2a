"""`evalsuite init`: write the files that a new project needs; `--ci` adds a CI workflow and tries it out."""

from __future__ import annotations

import argparse
import configparser
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

from evalsuite.commands import print_lines
from evalsuite.commands.init_ci import find_repository, set_up_workflow, write_new_file
from evalsuite.core.option_values import declare_arguments
from evalsuite.models.choice import INSTALL_LOCAL

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


def _add_ci_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--ci",
        choices=("auto", "github", "gitlab"),
        nargs="?",
        const="auto",
        help="also write a CI workflow, and prove it: its commands run once green and once red with a scripted model",
    )


@declare_arguments(
    """
    folder=DIR?    the project's root (default: here)
    --model MODEL  with --ci: the model of the workflow (default: gpt-4). With --model, the model is also asked now, for
        the first baseline

    Writes conftest.py, evals/test_first.py and a gate in pytest.toml. Existing files do not change; lines that an
    existing file lacks are printed in its format.
    """,
    folder=Path(),
    extend_parser=_add_ci_option,
)
def run_init(options: argparse.Namespace) -> int:
    """Write the files that do not exist yet, and print the next steps."""
    root: Path = options.folder
    print_lines(_write_project_files(root))
    if options.ci:
        return set_up_workflow(root, options.ci, options.model)
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
    except (tomllib.TOMLDecodeError, configparser.Error, AttributeError, TypeError):
        there, present = {}, section in text
    # From a file with its own name, pytest reads its settings even if the file is empty.
    if not present and not file.stem.endswith("pytest"):
        return None
    return shown_folder / file.name, section, bool({"evalsuite_gate", "evalsuite_gates"} & set(there))
