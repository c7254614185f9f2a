"""Lets a program read its tables under any file name, and collects the files that the program writes."""

import builtins
import codecs
import contextlib
import csv
import io
import os
import re
import struct
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

# Maximum bytes of all tables that are written before a program starts; larger tables are written when it opens them.
MOST_WRITTEN = 16 << 20
TABULATED, WORKBOOKS, JSON = {".tsv", ".txt"}, {".xlsx", ".xls"}, ".json"
BINARY = "binary"
_UTF8 = {"", "utf8", "utf8sig", "ascii", "locale"}


class TableFileProvider:
    """Lets one program read its input tables as files.

    Args:
        contents: each table's CSV content, by variable name; None if the table was given as a DataFrame.
        frames: functions that load a table again, by variable name, because the program may have changed its DataFrame.
    """

    def __init__(self, contents: dict[str, bytes | None], frames: dict[str, Callable[[], Any]]) -> None:
        self._originals = contents
        self._contents = {name: content and _convert_to_utf8(content) for name, content in contents.items()}
        self._frames = frames
        self._open, self._exists = builtins.open, os.path.exists
        self._assigned: dict[str, str] = {}
        self._beforehand: dict[str, tuple[int, int]] = {}

    def install_tables(self) -> None:
        """Write each table to a CSV file named like its variable; replace functions that open or find files."""
        if sum(len(content or b"") for content in self._contents.values()) <= MOST_WRITTEN:
            for name, content in self._contents.items():
                if content is not None:
                    Path(f"{name}.csv").write_bytes(content)
                    self._beforehand[f"{name}.csv"] = _get_time_and_size(Path(f"{name}.csv").stat())
        builtins.open = io.open = self.open
        os.path.exists = os.path.isfile = self.exists
        Path.exists = Path.is_file = lambda path, **_: self.exists(path)  # type: ignore[method-assign]
        pandas: Any = sys.modules.get("pandas")
        if pandas is not None:
            pandas.read_excel = partial(self._read_excel, pandas.read_excel)
        numpy_files: Any = sys.modules.get("numpy.lib._datasource")
        if numpy_files is not None:
            numpy_files._file_openers._file_openers[None] = self.open  # noqa: SLF001 - for `numpy.loadtxt`

    def open(self, file: Any, mode: str = "r", *args: Any, **kwargs: Any) -> Any:
        """Open a file as `builtins.open` does; if the file does not exist, provide a table in its place.

        Provide the table in the encoding that the program asks for, because the question may name this encoding. In
        binary mode, programs get the table's original bytes; pandas gets UTF-8, because it assumes this encoding.
        """
        encoding = str(kwargs.get("encoding") or (args[1] if len(args) > 1 else "") or "")
        if "b" in mode:
            caller = sys._getframe(1).f_globals.get("__name__", "")  # noqa: SLF001 - the program or a package
            encoding = "" if str(caller).startswith("pandas") else BINARY
        plain = re.sub(r"[\W_]", "", encoding).lower()
        reads = set(mode) <= set("rbtU")
        try:
            if reads and plain not in _UTF8 and self._is_unchanged_table_file(file):
                raise FileNotFoundError(file)
            return self._open(file, mode, *args, **kwargs)
        except (FileNotFoundError, NotADirectoryError):
            written = self._write_table(file, "" if plain in _UTF8 else encoding) if reads else None
            if written is None:
                raise
            return self._open(written, mode, *args, **kwargs)

    def exists(self, path: Any) -> bool:
        """Tell whether `open` could open a path: either the file exists, or `open` would provide a table instead."""
        if self._exists(path) or self._find_extension(path) is None:
            return bool(self._exists(path))
        path = Path(os.fsdecode(path))
        known = path.stem in self._contents or str(path) in self._assigned
        if not known and len(self._assigned) < len(self._contents):
            self._choose_table(str(path), path.stem)
            return True
        return known

    def _is_unchanged_table_file(self, file: Any) -> bool:
        name = os.path.relpath(os.fsdecode(file)) if isinstance(file, str | bytes | os.PathLike) else ""
        before = self._beforehand.get(name)
        return before is not None and self._exists(name) and _get_time_and_size(Path(name).stat()) == before

    def _find_extension(self, file: Any) -> str | None:
        """Return a path's extension if tables can be written in this format; otherwise return None."""
        kind = Path(os.fsdecode(file)).suffix.lower() if isinstance(file, str | bytes | os.PathLike) else ""
        return kind if kind in {".csv", *TABULATED, *WORKBOOKS, JSON} else None

    def _write_table(self, file: Any, encoding: str) -> str | None:
        """Write the table for a requested path; return the file's name, or None for an unsupported extension."""
        kind = self._find_extension(file)
        if kind is None:
            return None
        path = Path(os.fsdecode(file))
        name = self._choose_table(str(path), path.stem)
        target = f".{name}{f'.{encoding}' if encoding else ''}{kind}"
        if not self._exists(target):
            if kind in WORKBOOKS:
                frame = self._frames[name]()
                draft = f"{target}.draft.xlsx"
                # Write the index too if columns have several levels, because pandas cannot write them without it.
                frame.to_excel(draft, index=frame.columns.nlevels > 1)
                Path(draft).rename(target)
            elif kind == JSON:
                self._frames[name]().to_json(target, orient="records", force_ascii=False)
            else:
                self._write_text_table(name, target, "\t" if kind in TABULATED else ",", encoding)
        return target

    def _read_excel(self, read: Callable[..., Any], /, io: Any, sheet_name: Any = 0, **kwargs: Any) -> Any:
        """Call pandas' `read_excel`; a provided table has only one sheet, which a program may request by any name."""
        served = isinstance(io, str | os.PathLike) and not self._exists(io)
        is_single = sheet_name is not None and not isinstance(sheet_name, list)
        return read(io, sheet_name=0 if served and is_single else sheet_name, **kwargs)

    def _choose_table(self, path: str, stem: str) -> str:
        """Choose the table named `stem`; otherwise, each new path gets the next unassigned table (or the last)."""
        if stem in self._contents:
            return stem
        if path not in self._assigned:
            names = list(self._contents)
            self._assigned[path] = names[min(len(self._assigned), len(names) - 1)]
        return self._assigned[path]

    def _write_text_table(self, name: str, target: str, delimiter: str, encoding: str) -> None:
        content, original = self._contents[name], self._originals[name]
        if encoding == BINARY and delimiter == "," and original is not None:
            with self._open(target, "wb") as file:
                file.write(original)
            return
        encoding = "" if encoding == BINARY else encoding
        text = self._frames[name]().to_csv(index=False) if content is None else _decode_table(content, encoding)
        with self._open(target, "w", encoding=encoding or "utf-8", errors="replace", newline="") as stream:
            if delimiter == ",":
                stream.write(text)
            else:
                csv.writer(stream, delimiter=delimiter).writerows(csv.reader(io.StringIO(text)))


UTF8 = "utf-8-sig"
_SAMPLE = 1 << 20  # How many bytes at a table's beginning are used to guess its encoding.


def guess_encoding(content: bytes) -> str:
    """Guess a table's encoding: GB18030 if the bytes are not UTF-8 but decode to common Chinese, otherwise UTF-8."""
    head = content[:_SAMPLE]
    with contextlib.suppress(UnicodeDecodeError):
        codecs.getincrementaldecoder(UTF8)().decode(head)
        return UTF8
    with contextlib.suppress(UnicodeDecodeError):
        signs = [sign for sign in codecs.getincrementaldecoder("gb18030")().decode(head) if not sign.isascii()]
        # Check for common characters, because Latin text, or UTF-8 with an invalid byte, decodes to rare Chinese
        # characters.
        usual = "".join(signs).encode("gb2312", "ignore").decode("gb2312")
        return "gb18030" if 2 * len(usual) > len(signs) else UTF8
    return UTF8


def _convert_to_utf8(content: bytes) -> bytes:
    encoding = guess_encoding(content)
    return content if encoding == UTF8 else content.decode(encoding, "replace").encode()


def _decode_table(content: bytes, encoding: str) -> str:
    """Decode a table as UTF-8; if it is not valid UTF-8, use the encoding that the program asks for."""
    for candidate in (UTF8, encoding):
        with contextlib.suppress(UnicodeDecodeError, LookupError):
            if candidate:
                return content.decode(candidate)
    return content.decode("utf-8", "replace")


KINDS = (".png", ".csv", ".txt")
# Maximum bytes of one file, and maximum number of files, that are sent to the host. The host keeps at most eight.
LARGEST, MOST = 1 << 20, 16
FIGURES = 4
# Each file is sent with a header: the length of its name in UTF-8, and the length of its content.
HEAD = struct.Struct(">HI")
FileStates = dict[str, tuple[int, int]]


def list_files() -> FileStates:
    """List the files in the program's folder, with their sizes and the times of their last change."""
    return {entry.name: _get_time_and_size(entry.stat()) for entry in _list_result_files()}


def send_changed_files(old_files: FileStates) -> None:
    """Send the host each file that is new, or that differs from `old_files`."""
    # Import `kernel` only here: it needs ctypes, and the host imports this module without ctypes.
    from .kernel import FILES

    with contextlib.suppress(Exception):
        new = [entry for entry in _list_result_files() if old_files.get(entry.name) != _get_time_and_size(entry.stat())]
        for entry in sorted(new, key=lambda entry: entry.name)[:MOST]:
            with open(entry.path, "rb") as file:  # noqa: PTH123 - without pathlib
                content = file.read(LARGEST + 1)
            name = os.fsencode(entry.name)
            if len(content) <= LARGEST:
                os.write(FILES, HEAD.pack(len(name), len(content)) + name + content)


def _list_result_files() -> Iterator[os.DirEntry[str]]:
    with os.scandir(".") as entries:
        for entry in entries:
            # Skip everything but regular files: links may be broken, and reading a pipe would block.
            is_file = entry.is_file(follow_symlinks=False)
            if is_file and entry.name.lower().endswith(KINDS) and not entry.name.startswith("."):
                yield entry


def _get_time_and_size(file_status: os.stat_result) -> tuple[int, int]:
    return file_status.st_mtime_ns, file_status.st_size


def save_open_figures(old_files: FileStates) -> None:
    """Save figures that the program showed but did not save: in the sandbox, `plt.show()` cannot open a window.

    Call this function before functions registered with `atexit`, because matplotlib then closes all figures.
    """
    with contextlib.suppress(Exception):
        plt = sys.modules.get("matplotlib.pyplot")
        if plt is None or not plt.get_fignums():
            return
        new = (entry.name for entry in _list_result_files() if entry.name not in old_files)
        if not any(name.lower().endswith(".png") for name in new):
            for number in plt.get_fignums()[:FIGURES]:
                plt.figure(number).savefig(f"figure_{number}.png")
        plt.close("all")
