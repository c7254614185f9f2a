"""A package as a wheel, written here, so that environments can be built without a registry."""

from __future__ import annotations

import shutil
import zipfile
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

needs_uv = pytest.mark.skipif(shutil.which("uv") is None, reason="environments are built by uv: pip install uv")


def write_wheel(folder: Path, version: str = "1.0") -> Path:
    """A package `ruler` of one module, as a wheel."""
    path = folder / f"ruler-{version}-py3-none-any.whl"
    info = f"ruler-{version}.dist-info"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("ruler.py", f"LENGTH = {version!r}\n")
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: ruler\nVersion: {version}\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    return path
