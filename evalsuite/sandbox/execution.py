"""What goes into a program (code, tables, standard input), and what comes out (output, an error, files)."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import pickle
import re
import shutil
import signal
import struct
import sys
import unicodedata
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal, TypeAlias

from evalsuite.core.errors import SandboxError, shorten_to_ending
from evalsuite.sandbox.inside.files import HEAD

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import pandas as pd

    from evalsuite.sandbox.inside import Limits

    TableSource: TypeAlias = "TableFile | Path | str | pd.DataFrame"
else:
    TableSource = object


@dataclass(frozen=True, slots=True)
class TableFile:
    """A table in CSV, which programs get as a pandas DataFrame.

    Attributes:
        content: the bytes of the CSV, or the path of a CSV file, which is copied when a program starts. The encoding is
            UTF-8, with or without a byte-order mark, or GB18030; invalid bytes become U+FFFD.
        header_rows: how many rows at the top name the columns. With 0 rows, columns are numbered from 0; several rows
            make a MultiIndex.
    """

    content: bytes | Path
    header_rows: int = 1


def write_payload(
    target: IO[bytes],
    code: str,
    tables: Mapping[str, TableSource],
    *,
    is_last: bool,
    same_pandas: bool = True,
    earlier_code: Sequence[str] = (),
    stdin: bytes | None = None,
) -> None:
    """Write a round's code and inputs to an empty file, in the format that `inside/program.py` reads.

    The first 8 bytes state where the description begins, which is JSON with the code and the sizes of the tables. It
    follows the tables and the input, because a table's size is certain only after its copy.
    """
    described = []
    target.seek(8)
    for name, source in tables.items():
        begin = target.tell()
        kind, header_rows = _write_table(target, name, source, same_pandas=same_pandas)
        described.append({"name": name, "format": kind, "header_rows": header_rows, "size": target.tell() - begin})
    target.write(stdin or b"")
    place, length = target.tell(), None if stdin is None else len(stdin)
    facts = {"code": code, "earlier": list(earlier_code), "last": is_last, "stdin": length, "tables": described}
    target.write(json.dumps(facts).encode())
    target.seek(0)
    target.write(place.to_bytes(8, "big"))


def _write_table(
    target: IO[bytes], name: str, source: TableSource, *, same_pandas: bool
) -> tuple[Literal["csv", "pickle"], int]:
    """Write a table's bytes to the payload; return their format and the number of header rows."""
    if not re.fullmatch(r"[^\W\d]\w*", name):
        raise SandboxError(f"a table is called {name!r}, which cannot name a variable")
    if isinstance(source, (str, Path)):
        source = TableFile(Path(source))
    if isinstance(source, TableFile):
        if isinstance(source.content, bytes):
            target.write(source.content)
        else:
            # Copy in pieces, because a large file should not be in this process's memory.
            with _convert_path_errors(source.content), source.content.open("rb") as file:
                shutil.copyfileobj(file, target)
        return "csv", source.header_rows
    # Do not import pandas to check for a DataFrame: a caller that has one has already imported pandas.
    pandas = sys.modules.get("pandas")
    if pandas is None or not isinstance(source, pandas.DataFrame):
        kind = type(source).__name__
        raise SandboxError(f"the table {name!r} is a {kind}: give a path, a TableFile or a pandas DataFrame")
    if not same_pandas:
        target.write(source.to_csv(index=False).encode())
        return "csv", source.columns.nlevels
    # The host pickles the DataFrame; only the program, inside the sandbox, unpickles it.
    pickle.dump(source, target, protocol=5)
    return "pickle", 0


def compute_table_key(source: TableSource) -> object:
    """Return a key for a table's content; equal keys mean equal content."""
    if isinstance(source, (str, Path)):
        source = TableFile(Path(source))
    if not isinstance(source, TableFile):
        return object()  # A DataFrame gets a new key each time, because its content may change.
    if isinstance(source.content, bytes):
        return source.header_rows, hashlib.sha256(source.content).digest()
    with _convert_path_errors(source.content):
        status = source.content.stat()
    return source.header_rows, source.content, status.st_mtime_ns, status.st_size


@contextlib.contextmanager
def _convert_path_errors(path: Path | str) -> Iterator[None]:
    """Convert an OSError in the `with` block to a SandboxError about the table's file."""
    try:
        yield
    except OSError as error:
        raise SandboxError(f"the table {path} cannot be read: {error.strerror or error}") from error


ERROR_CHARACTERS = 4000
DEATH = "the program's process "  # Beginning of the error message if the program's process ended unexpectedly.


@dataclass(frozen=True, slots=True)
class Execution:
    """The result of a program, or of one round of a session.

    Attributes:
        stdout: the printed text, cut at the output limit; it is also returned if the program failed.
        error: None if the program ended normally or by `exit()` with status 0. Otherwise the program's traceback,
            without frames of other files; if the program exceeded a limit, a sentence that names the limit.
        timed_out: whether the program was stopped because it used too much wall time or CPU time; `error` then says so,
            too.
        seconds: wall time in the sandbox, including the time to fork and to load tables.
        variables_lost: whether a session's process ended in this round, so that the next round starts without
            variables. Always False for a program that has only one round.
        tier: the isolation that was used: `bubblewrap`, `landlock`, `docker:IMAGE`, or the address of a server.
        files: pictures (PNG) and texts (CSV, TXT) that the round wrote to its folder: at most eight, and at most 1 MiB
            together. Figures that are still open in matplotlib are saved as pictures.
    """

    stdout: str
    error: str | None
    timed_out: bool
    seconds: float
    variables_lost: bool = False
    tier: str = ""
    files: tuple[ProgramFile, ...] = ()


def compute_read_limits(limits: Limits) -> tuple[int, int, int]:
    """Return the maximum bytes to read of a round's output, of its error message (from the end), and of its files."""
    return limits.output + 1, 4 * ERROR_CHARACTERS + 4, 2 * MOST_BYTES


def make_execution(
    ending: str, stdout: bytes, stderr: bytes, files: bytes, *, timeout: float, seconds: float, limits: Limits
) -> Execution:
    """Convert the outcome of a round to an `Execution`; `inside/forking.py` lists the possible values of `ending`.

    Raise SandboxError if the program's own code did not start, because the sandbox is then at fault.
    """
    if len(stdout) > limits.output:
        ending = "output"
    message = shorten_to_ending(stderr.decode("utf-8", "replace").strip(), ERROR_CHARACTERS)
    kind, _, detail = ending.partition(" ")
    reasons = {
        "refused": f"a program could not be started: {detail}",
        "unfit": f"a program could not be isolated: {message}",
        "table": f"the program's tables could not be loaded: {message}",
        "early": f"the program's tables could not be loaded within its {timeout:g} s and its limits ({detail})",
    }
    if kind in reasons:
        raise SandboxError(reasons[kind])
    printed = stdout[: limits.output].decode("utf-8", "replace")
    error = _explain_ending(ending, message, timeout, limits)
    return Execution(printed, error, ending in ("timeout", "cpu"), seconds, files=read_program_files(files))


def _explain_ending(ending: str, message: str, timeout: float, limits: Limits) -> str | None:
    if ending in ("ok", "exit 0"):
        return None
    exceeded = {
        "timeout": f"stopped after {timeout:g} s",
        "cpu": f"stopped after more than {timeout:g} s of CPU time",
        "output": f"stopped: more than {limits.output:,} bytes were printed",
        "processes": f"stopped: it had more than {limits.processes} processes and threads",
        "files": f"stopped: its files had more than {limits.files >> 20:,} MiB",
        "memory": f"stopped: its processes together had more than {limits.memory >> 20:,} MiB of memory",
    }
    if ending in exceeded:
        return exceeded[ending]
    if ending == "raised":
        return message or "the program failed without a message"
    kind, _, number = ending.partition(" ")
    if kind == "exit":
        return f"{DEATH}ended with status {number}\n{message}".strip()
    try:
        name = signal.Signals(int(number)).name
    except ValueError:
        name = f"signal {number}"
    if name == "SIGSEGV":  # The kernel ignores SIGABRT of a namespace's first process; `abort` then ends it like this.
        name = "SIGSEGV or SIGABRT"
    return f"{DEATH}was killed ({name})\n{message}".strip()


# Limits for a round's files: the number of files, the bytes of all files together, and the bytes of one text file.
MOST_FILES, MOST_BYTES, MOST_TEXT = 8, 1 << 20, 64 << 10
# Maximum width and height of a picture, because a small file may contain a picture too large for browsers.
MOST_PIXELS = 4096
_PNG = b"\x89PNG\r\n\x1a\n"
_SIZE = struct.Struct(">II")


@dataclass(frozen=True, slots=True)
class ProgramFile:
    """One file that a program wrote."""

    name: str  # The name contains only letters, digits and `.-_`, and is unique in its round.
    # Bytes of a PNG picture (at most 4096 pixels wide and high), or of a text in UTF-8 (`.csv`, `.txt`).
    content: bytes = field(repr=False)

    @property
    def is_picture(self) -> bool:
        """Whether the file is a PNG picture; otherwise it is text."""
        return self.name.endswith(".png")


def read_program_files(sent_bytes: bytes) -> tuple[ProgramFile, ...]:
    """Read the files that a program's process sent, up to the limits; skip malformed files."""
    files: list[ProgramFile] = []
    room, end = MOST_BYTES, 0
    while end + HEAD.size <= len(sent_bytes):
        name_size, size = HEAD.unpack_from(sent_bytes, end)
        begin = end + HEAD.size + name_size
        end = begin + size
        if end > len(sent_bytes):
            break
        written, content = sent_bytes[begin - name_size : begin].decode("utf-8", "replace"), sent_bytes[begin:end]
        # Keep the last 60 characters of a name, and replace those that are not letters, digits or `.-_`.
        name = re.sub(r"[^\w.-]+", "_", unicodedata.normalize("NFC", written)).lstrip(".")[-60:].lower()
        if any(file.name == name for file in files):
            name = f"{len(files) + 1}_{name}"
        file = ProgramFile(name, content)
        if len(files) < MOST_FILES and len(content) <= room and _is_harmless_file(file):
            files.append(file)
            room -= len(content)
    return tuple(files)


def encode_files(files: Sequence[ProgramFile]) -> Mapping[str, Any]:
    """Convert a program's files to JSON data for the transcript; return {} if it wrote no files.

    `figures` lists pictures (`name`, and `png` in base64), `files` lists texts (`name`, `text`).
    """
    figures = [{"name": file.name, "png": base64.b64encode(file.content).decode()} for file in files if file.is_picture]
    texts = [{"name": file.name, "text": file.content.decode()} for file in files if not file.is_picture]
    return {**({"figures": figures} if figures else {}), **({"files": texts} if texts else {})}


def _is_harmless_file(file: ProgramFile) -> bool:
    """Tell whether a file is a PNG picture or a text in UTF-8, within the limits of size."""
    if file.is_picture:
        head = file.content[: 16 + _SIZE.size]
        if not head.startswith(_PNG) or head[12:16] != b"IHDR" or len(head) < 16 + _SIZE.size:
            return False
        return all(0 < side <= MOST_PIXELS for side in _SIZE.unpack_from(head, 16))
    if not file.name.endswith((".csv", ".txt")) or len(file.content) > MOST_TEXT or b"\0" in file.content:
        return False
    with contextlib.suppress(UnicodeDecodeError):
        file.content.decode()
        return True
    return False
