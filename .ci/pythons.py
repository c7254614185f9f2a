"""Prints the Pythons of this machine that the package promises to run on, newest first: version and path, a line each.

Looked for are those of uv, of pyenv, and of the system. Of one minor version the newest release counts;
free-threaded builds are left out.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

PROMISED = [(3, minor) for minor in range(11, 15)]
"""As in `classifiers` in pyproject.toml."""

ASK = "import sys, sysconfig; print(*sys.version_info[:3], sysconfig.get_config_var('Py_GIL_DISABLED') or 0)"


def candidates() -> set[Path]:
    """All files that may be one of these Pythons."""
    home = Path.home()
    data = Path(os.environ.get("XDG_DATA_HOME", home / ".local/share"))
    folders = [
        *(Path(folder) for folder in os.environ.get("PATH", "").split(os.pathsep)),
        *(Path(os.environ.get("PYENV_ROOT", home / ".pyenv")) / "versions").glob("*/bin"),
        *Path(os.environ.get("UV_PYTHON_INSTALL_DIR", data / "uv/python")).glob("*/bin"),
        Path("/usr/bin"),
        Path("/usr/local/bin"),
    ]
    names = [f"python{major}.{minor}" for major, minor in PROMISED]
    found = (folder / name for folder in folders if folder.name != "shims" for name in names)
    return {path.resolve() for path in found if path.is_file()}


def version_of(python: Path) -> tuple[int, ...] | None:
    """Its version; None where it does not start, or has no lock around the interpreter."""
    try:
        said = subprocess.run(  # noqa: S603 - a Python of this machine
            [python, "-I", "-c", ASK], capture_output=True, text=True, timeout=60, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    *version, free_threaded = map(int, said.stdout.split())
    return None if free_threaded else tuple(version)


def pythons() -> dict[tuple[int, ...], Path]:
    """One Python of each promised minor version that is here, by version, newest first."""
    versions = {path: version for path in candidates() if (version := version_of(path)) is not None}
    newest = {version[:2]: (version, path) for path, version in sorted(versions.items(), key=lambda one: one[1])}
    return dict(newest[minor] for minor in sorted(newest, reverse=True) if minor in PROMISED)


if __name__ == "__main__":
    for version, path in pythons().items():
        print(".".join(map(str, version)), path)
