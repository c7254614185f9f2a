"""A fresh environment with evalsuite's wheel, and the wheel of a package that builds on it."""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "docs" / "examples" / "proverbs"


@dataclass(frozen=True)
class Place:
    """Where the example's suite runs.

    Attributes:
        path: holds its conftest.py and cases/, and not its package.
        python: of the fresh environment.
    """

    path: Path
    python: Path

    def run(self, *args: str) -> subprocess.CompletedProcess[str]:
        command = [str(self.python), "-m", *args]
        return subprocess.run(command, cwd=self.path, capture_output=True, text=True, check=False)


def wheel(project: Path, target: Path) -> Path:
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(target)]
    subprocess.run(command, cwd=project, check=True, capture_output=True)
    return next(target.glob(f"{project.name if project != ROOT else 'evalsuite'}-*.whl"))


@pytest.fixture(scope="session")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Both wheels, installed; what they depend on is found where these tests run."""
    home = tmp_path_factory.mktemp("environment")
    project = home / "proverbs"
    shutil.copytree(EXAMPLE, project)
    wheels = [wheel(ROOT, home / "wheels"), wheel(project, home / "wheels")]
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(home / "venv")], check=True)
    base = {"base": str(home / "venv"), "platbase": str(home / "venv")}
    packages = Path(sysconfig.get_path("purelib", vars=base))
    for each in wheels:
        shutil.unpack_archive(each, packages, "zip")
    # The editable evalsuite of this environment is not seen: the .pth files of a folder named in one are not read.
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return home / "venv" / "bin" / "python"


@pytest.fixture
def place(environment: Path, tmp_path: Path) -> Place:
    shutil.copytree(EXAMPLE / "cases", tmp_path / "cases")
    shutil.copy(EXAMPLE / "conftest.py", tmp_path)
    return Place(tmp_path, environment)
