"""The guide's package, installed apart: own benchmark, report, derived gate, backend and hook."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.package.conftest import EXAMPLE, ROOT

if TYPE_CHECKING:
    from tests.package.conftest import Place

GUIDE = ROOT / "docs" / "write_a_benchmark.md"


def test_evalsuite_is_the_installed_wheel(place: Place) -> None:
    code = "import evalsuite; print(evalsuite.__file__, evalsuite.__version__)"
    shown = subprocess.run([place.python, "-c", code], cwd=place.path, capture_output=True, text=True, check=True)
    file, version = shown.stdout.split()
    assert Path(file).is_relative_to(place.python.parents[1])
    assert (Path(file).parent / "py.typed").is_file()
    assert re.fullmatch(r"\d+\.\d+\.\d+", version)


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["plain", "n2"])
def test_benchmark_backend_report_derived_gate_and_hook_work_from_the_outside(
    place: Place, workers: tuple[str, ...]
) -> None:
    asked = ("pytest", "cases", *workers, "--run=one", "-p", "no:cacheprovider")
    result = place.run(*asked, "--model=parrot:grey", "--gate=proverbs.gap <= 0.4")
    assert result.returncode == 10, result.stdout + result.stderr
    report = (place.path / "reports" / "one" / "report.md").read_text("utf-8")
    assert "Right by language" in report
    assert "Gap between the languages: 0.50." in report
    assert "## Never heard\n\nde-1, de-2, de-3, de-4, en-2, en-4" in report
    summary = json.loads((place.path / "reports" / "one" / "summary.json").read_text("utf-8"))
    assert summary["gates"][0]["found"]["value"] == 0.5
    records = (place.path / "reports" / "one" / "records.jsonl").read_text("utf-8").splitlines()
    assert {json.loads(line)["declared"] for line in records} == {"proverbs.benchmark:PROVERBS"}


def test_a_baseline_and_the_commands_know_the_package_s_benchmark(place: Place) -> None:
    base = ("pytest", "cases", "-p", "no:cacheprovider")
    assert place.run(*base, "--model=parrot:old", "--run=old", "--gate=proverbs.gap <= 0.1").returncode == 0
    worse = place.run(
        *base, "--model=parrot:grey", "--run=grey", "--baseline=old", "--gate=* no worse than old by 0.01"
    )
    assert worse.returncode in {1, 11, 12}, worse.stdout
    assert "Against old" in (place.path / "reports" / "grey" / "report.md").read_text("utf-8")
    # Without the suite's files, too: the package itself says what its report is.
    (place.path / "cases" / "test_proverbs.py").unlink()
    assert "Gap between the languages: 0.00." in place.run("evalsuite", "report", "old").stdout
    assert place.run("evalsuite", "gate", "old", "--gate", "proverbs.gap >= 0.4").returncode == 10
    assert place.run("evalsuite", "compare", "old", "grey", "--to", "both").returncode == 0
    assert "Gap between the languages: 0.00, 0.50." in (place.path / "both" / "comparison.md").read_text("utf-8")


def test_a_parrot_that_is_not_there_is_one_message(place: Place) -> None:
    result = place.run("pytest", "cases", "--model=parrot:pink", "-p", "no:cacheprovider")
    assert result.returncode == pytest.ExitCode.USAGE_ERROR
    assert "--model parrot:pink: there are grey, old" in result.stderr
    assert "Traceback" not in result.stderr


# To read the types of the libraries below evalsuite takes ten seconds and says nothing about a user's file.
MYPY = """
[mypy]
strict = true

[mypy-openai.*,scipy.*,pandas.*,matplotlib.*,numpy.*,aiohttp.*,duckdb.*]
follow_imports = skip
follow_imports_for_stubs = True
"""


def test_a_user_s_case_file_passes_a_strict_type_checker(place: Place) -> None:
    (place.path / "mypy.ini").write_text(MYPY)
    command = [sys.executable, "-m", "mypy", "--python-executable", str(place.python)]
    command += ["--cache-dir", str(place.path / "mypy"), "--config-file", "mypy.ini"]
    files = [str(path) for path in (place.path / "cases" / "test_proverbs.py", place.path / "conftest.py")]
    result = subprocess.run([*command, *files], cwd=place.path, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize("file", [path for path in sorted(EXAMPLE.rglob("*.*")) if path.stat().st_size > 60], ids=str)
def test_the_guide_includes_the_files_that_are_tested(file: Path) -> None:
    language = {".py": " { .python }", ".toml": "toml"}[file.suffix]
    name = file.relative_to(EXAMPLE)
    shown = f'[`{name}`](examples/proverbs/{name})\n\n```{language}\n--8<-- "{name}"\n```\n'
    assert shown in GUIDE.read_text("utf-8")
