"""AM: files in a private folder that is deleted after the episode."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from evalsuite.benchmarks.tool_eyes.toolbox.limits import bounded, short
from evalsuite.tools import tool

if TYPE_CHECKING:
    from evalsuite.core.types import Sample

_DATA = Path(__file__).parent.parent / "data" / "files.json"
_MAX_FILES = 50


class Files:
    """A folder with a few files to begin with. Messages never name its real place."""

    def __init__(self, sample: Sample) -> None:  # noqa: ARG002 - every subject is made with the sample
        self._temporary = tempfile.TemporaryDirectory(prefix="tool-eyes-")
        self.folder = Path(self._temporary.name).resolve()
        for name, text in json.loads(_DATA.read_text(encoding="utf-8")).items():
            (self.folder / name).write_text(text, encoding="utf-8")

    def close(self) -> None:
        """Deletes the folder."""
        self._temporary.cleanup()

    @tool
    def list_files(self) -> dict[str, int]:
        """Lists the files of your folder with their sizes in bytes."""
        return {path.name: path.stat().st_size for path in sorted(self.folder.iterdir())}

    @tool
    def read_file(self, name: str) -> str:
        """Reads a text file.

        Args:
            name: the file's name.
        """
        return self._existing(name).read_text(encoding="utf-8")

    @tool
    def write_file(self, name: str, text: str) -> str:
        """Writes a text file, in place of an older one of that name.

        Args:
            name: the file's name.
            text: the whole new content.
        """
        path = self._path(name)
        bounded("the number of files", len(list(self.folder.iterdir())), 0, _MAX_FILES - 1)
        path.write_text(short("text", text), encoding="utf-8")
        return f"{path.name} now has {path.stat().st_size} bytes"

    @tool
    def append_line(self, name: str, line: str) -> str:
        """Adds a line at the end of a text file.

        Args:
            name: the file's name.
            line: the line.
        """
        path = self._existing(name)
        text = path.read_text(encoding="utf-8")
        path.write_text(
            short("the file", f"{text}{'' if text.endswith(chr(10)) or not text else chr(10)}{line}\n"),
            encoding="utf-8",
        )
        return f"{path.name} now has {path.stat().st_size} bytes"

    @tool
    def rename_file(self, name: str, new_name: str) -> str:
        """Gives a file another name.

        Args:
            name: the file's name.
            new_name: a name that no file has yet.
        """
        old, new = self._existing(name), self._path(new_name)
        if new.exists():
            raise ValueError(f"there is already a file {new.name!r}")
        old.rename(new)
        return f"{old.name} is now {new.name}"

    @tool
    def delete_file(self, name: str) -> str:
        """Deletes a file.

        Args:
            name: the file's name.
        """
        path = self._existing(name)
        path.unlink()
        return f"{path.name} is deleted"

    def _path(self, name: str) -> Path:
        """The place of a file directly in the folder; a name that means any other place is refused."""
        plain = name.isprintable() and not set(name) & set('/\\:*?"<>|') and name.strip(". ") != ""
        if not plain or len(name.encode()) > 100:
            raise ValueError(
                "a file's name must be a plain name of at most 100 bytes, without folders, such as notes.txt"
            )
        return self.folder / name

    def _existing(self, name: str) -> Path:
        path = self._path(name)
        if not path.is_file():
            raise ValueError(f"there is no file {name!r}")
        return path
