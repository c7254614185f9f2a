"""`evalsuite init`: what a project of one's own needs, written beside what is there."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from evalsuite.models.choice import INSTALL_LOCAL

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

CONFTEST = 'pytest_plugins = ["evalsuite.plugin"]\n'

CASE = '''"""A first case. Each sample becomes a test of its own; replace them with questions that matter to you."""

from evalsuite import Sample, benchmark, contains, generate

CAPITALS = [
    Sample(id="fr", input="What is the capital of France? One word.", target="Paris", tags={"region": "eu"}),
    Sample(id="jp", input="What is the capital of Japan? One word.", target="Tokyo", tags={"region": "asia"}),
    Sample(id="ke", input="What is the capital of Kenya? One word.", target="Nairobi", tags={"region": "africa"}),
]


@benchmark("capitals", CAPITALS, solver=generate(max_tokens=16), scorers=[contains()])
def test_capitals(scores):
    assert scores["contains"] == 1.0
'''

GATE = """evalsuite_gates = [
  "capitals.contains >= 0.9", # the mean over all cases; a missed gate ends the run with status 10
]
"""

WORKFLOW = """# Decides about each pull request; the job turns red where a gate is missed.
name: evals

on:
  pull_request:

permissions:
  contents: read

jobs:
  evals:
    runs-on: ubuntu-latest
    timeout-minutes: 60
    steps:
      - uses: actions/checkout@v4
      - uses: actions/setup-python@v5
        with:
          python-version: "3.12"
          cache: pip
      - run: pip install -r requirements.txt # name evalsuite in it
      - name: Ask and score
        env:
          OPENAI_API_KEY: ${{ secrets.OPENAI_API_KEY }}
        run: pytest evals/ --model=gpt-4 --max-cost=5 --run=pr --junit-xml=junit.xml
      - uses: actions/upload-artifact@v4
        if: always() # a run that failed is the one that somebody wants to read
        with:
          name: evals
          path: |
            reports/pr
            junit.xml
"""

CONFIGURED = {
    "pytest.toml": "",
    ".pytest.toml": "",
    "pytest.ini": "",
    ".pytest.ini": "",
    "pyproject.toml": "[tool.pytest",
    "tox.ini": "[pytest]",
    "setup.cfg": "[tool:pytest]",
}
"""Files that pytest reads its settings from, each with what it then holds."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the folder."""
    parser.add_argument(
        "folder",
        type=Path,
        nargs="?",
        default=Path(),
        metavar="DIR",
        help="the project's root (default: here)",
    )
    parser.epilog = (
        "Writes conftest.py, evals/test_first.py, .github/workflows/evals.yml and a gate in pytest.toml. "
        "A file that is there already stays as it is; what it lacks is printed."
    )


def run(options: argparse.Namespace) -> int:
    """Writes what is not there yet, and says what comes next."""
    root: Path = options.folder
    for line in (*_write_files(root), *_write_gate(root)):
        sys.stdout.write(f"{line}\n")
    sys.stdout.write(
        "\nRun it:  pytest evals/ --model=gpt-4        (the key comes from OPENAI_API_KEY)\n"
        f"Without a key:  {INSTALL_LOCAL}\n"
        "                pytest evals/ --model=local:smollm2\n"
    )
    return 0


def _write_files(root: Path) -> Iterator[str]:
    yield _write(root / "conftest.py", CONFTEST, "evalsuite.plugin")
    yield _write(root / "evals" / "test_first.py", CASE)
    yield _write(root / ".github" / "workflows" / "evals.yml", WORKFLOW)


def _write_gate(root: Path) -> Iterator[str]:
    configured = next((name for name, mark in CONFIGURED.items() if _holds(root / name, mark)), None)
    if configured is None:
        yield _write(root / "pytest.toml", f"[pytest]\n{GATE}")
    elif not _holds(root / configured, "evalsuite_gate"):
        # A further file of settings would hide the one that is there.
        yield f"kept     {root / configured}: add this gate to its pytest settings yourself:\n{GATE.rstrip()}"
    else:
        yield f"kept     {root / configured}: it has gates"


def _write(file: Path, text: str, needed: str = "") -> str:
    file.parent.mkdir(parents=True, exist_ok=True)
    try:
        with file.open("x", encoding="utf-8") as stream:
            stream.write(text)
    except FileExistsError:
        lacking = needed and not _holds(file, needed)
        return f"kept     {file}{f': add this line yourself:  {text.strip()}' if lacking else ''}"
    return f"written  {file}"


def _holds(file: Path, mark: str) -> bool:
    return file.is_file() and mark in file.read_text("utf-8", "replace")
