"""What is uploaded: a wheel and an sdist that anybody can build again, small, with nothing that only tests need."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from email import message_from_bytes
from typing import TYPE_CHECKING

import pytest

from tests.package.conftest import ROOT

if TYPE_CHECKING:
    from email.message import Message
    from pathlib import Path

LARGEST = 2_000_000
"""Bytes of each file."""


def build(source: Path, target: Path, mask: int) -> list[Path]:
    """Builds wheel and sdist, the way `pip` and `uv build` call the build backend."""
    code = "import sys, hatchling.build as b; b.build_wheel(sys.argv[1]); b.build_sdist(sys.argv[1])"
    target.mkdir()
    subprocess.run(
        [sys.executable, "-c", code, target],
        cwd=source,
        env={**os.environ, "SOURCE_DATE_EPOCH": "1700000000"},
        umask=mask,
        check=True,
        capture_output=True,
    )
    return sorted(target.iterdir())


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The sdist and the wheel of this repository."""
    target = tmp_path_factory.mktemp("built") / "dist"
    wheel, sdist = build(ROOT, target, 0o022)
    return sdist, wheel


@pytest.fixture(scope="session")
def metadata(built: tuple[Path, Path]) -> Message:
    with zipfile.ZipFile(built[1]) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        return message_from_bytes(archive.read(name))


def names(built: tuple[Path, Path]) -> tuple[set[str], set[str]]:
    with tarfile.open(built[0]) as archive:
        inside = {member.name.partition("/")[2] for member in archive.getmembers() if member.isfile()}
    with zipfile.ZipFile(built[1]) as wheel:
        return inside, set(wheel.namelist())


def test_the_same_sources_give_the_same_bytes_elsewhere_and_later(built: tuple[Path, Path], tmp_path: Path) -> None:
    with tarfile.open(built[0]) as archive:
        archive.extractall(tmp_path, filter="data")
    (source,) = tmp_path.iterdir()
    for file in source.rglob("*"):
        os.utime(file, (1, 1))
    again = build(source, tmp_path / "again", 0o077)
    assert [file.name for file in again] == [built[1].name, built[0].name]
    assert [file.read_bytes() for file in again] == [built[1].read_bytes(), built[0].read_bytes()]


def test_both_are_small_and_hold_the_package_alone(built: tuple[Path, Path]) -> None:
    assert max(file.stat().st_size for file in built) < LARGEST
    sdist, wheel = names(built)
    assert {name for name in sdist if not name.startswith("evalsuite/")} == {
        "CHANGELOG.md", "LICENSE", "PKG-INFO", "README.md", "pyproject.toml", ".gitignore"
    }  # fmt: skip
    package = {name for name in wheel if not name.split("/")[0].endswith(".dist-info")}
    assert package == {name for name in sdist if name.startswith("evalsuite/")}
    assert not {name for name in package if name.rpartition("/")[2].startswith(("test_", "conftest"))}
    assert not {name for name in package if name.endswith((".pyc", ".sqlite", ".gguf", ".parquet"))}


def test_the_wheel_holds_every_file_of_the_package_that_git_keeps(built: tuple[Path, Path]) -> None:
    if not (ROOT / ".git").exists() or shutil.which("git") is None:
        pytest.skip("what Git keeps is known in a clone")
    kept = subprocess.run(
        ["git", "ls-files", "-z", "evalsuite"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split("\0")
    there = {name for name in kept if name and (ROOT / name).is_file()}
    assert there <= names(built)[1]


def test_the_metadata_says_what_it_is_for_whom_and_under_which_licence(metadata: Message) -> None:
    assert metadata["Name"] == "evalsuite"
    assert metadata["License-Expression"] == "MIT"
    assert metadata["Requires-Python"] == ">=3.11"
    assert metadata["Description-Content-Type"] == "text/markdown"
    assert {"pytest", "evaluation", "LLM"} <= set(metadata["Keywords"].split(","))
    classifiers = metadata.get_all("Classifier", [])
    kinds = {text.partition(" :: ")[0] for text in classifiers}
    assert kinds >= {
        "Development Status", "Framework", "Intended Audience", "Operating System", "Programming Language",
        "Topic", "Typing",
    }  # fmt: skip
    assert {"local", "sandbox", "plots"} <= set(metadata.get_all("Provides-Extra", []))
