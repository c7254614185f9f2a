"""Progress bar, private folder and output files of a build, and CSV sheets that people edit."""

import csv
import fcntl
import io
import os
import re
import shutil
import signal
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from evalsuite.core.errors import DatasetError, SettingsError, escape_formula
from evalsuite.sandbox.inside.files import guess_encoding


def sum_file_sizes(files: Iterable[Path]) -> int:
    """Sum the sizes of files in bytes; a missing file has size 0, and a file that is listed twice counts twice."""
    return sum(path.stat().st_size for path in files if path.is_file())


class BuildProgress:
    """A progress bar with rate and remaining time, shown if tqdm is installed; the unit `B` is scaled to kB or MB."""

    def __init__(self, total: int, unit: str) -> None:
        try:
            from tqdm import tqdm  # type: ignore[import-untyped]  # it ships no types
        except ImportError:
            self._bar = None
        else:
            # `disable=None` shows the bar on a terminal only, not in a CI log.
            self._bar = tqdm(total=total, unit=unit, unit_scale=unit == "B", disable=None, leave=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        # Draw the bar once more, because a short build may end before tqdm draws the bar for the first time.
        if self._bar is not None:
            self._bar.refresh()
            self._bar.close()

    def begin_stage(self, stage: str) -> None:
        if self._bar is not None:
            self._bar.set_description(stage)

    def advance(self, count: int) -> None:
        if self._bar is not None:
            self._bar.update(count)


@contextmanager
def open_build_folder(target: Path) -> Iterator[Path]:
    """Open a private folder beside the target for the body of the `with`, and remove it afterwards, even on SIGTERM.

    The folder's name is fixed, so the next build clears the files of a build that was killed.
    """
    if target.is_dir():
        raise SettingsError(f"cannot write {target}: it is a folder; name a file")
    folder = target.parent / f".{target.name}.building"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise SettingsError(f"cannot write {target}: {error.strerror or error}") from error
    with os.fdopen(lock), _raise_on_sigterm():
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise SettingsError(f"another build is writing {target}; wait for its end, or write another file") from None
        for left in folder.iterdir():
            if left.is_dir():
                shutil.rmtree(left)
            elif left.name != "lock":
                left.unlink()
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def write_atomically(text: str, target: Path, folder: Path) -> None:
    """Write a draft in the folder, then rename it to the target, so that the target is never incomplete."""
    draft = folder / target.name
    try:
        with draft.open("w", encoding="utf-8", newline="\n") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(target)
        parent = os.open(target.parent, os.O_RDONLY)
        os.fsync(parent)
        os.close(parent)
    except OSError as error:
        raise SettingsError(f"cannot write {target}: {error.strerror or error}") from error


@contextmanager
def _raise_on_sigterm() -> Iterator[None]:
    """Raise an exception on SIGTERM, so that the cleanup of temporary files runs."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


DELIMITERS = ",;\t|"


def format_csv_sheet(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Write a CSV sheet for people; escape texts that a spreadsheet would run as formulas."""
    stream = io.StringIO()
    stream.write("\ufeff")  # Spreadsheets recognise UTF-8 by its byte order mark.
    csv.writer(stream).writerows([columns, *(map(escape_formula, row) for row in rows)])
    return stream.getvalue().encode("utf-8", "replace").decode()


def parse_csv_sheet(
    path: Path, columns: Sequence[str], optional: Sequence[str] = ()
) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the location (`line 3`) and the cells of each row; missing cells and `optional` columns are empty.

    Raises:
        DatasetError: the file cannot be read, or lacks one of the `columns`.
    """
    place = ""
    try:
        text = decode_text(path.read_bytes())
        head = re.split(r"[\r\n]", text, maxsplit=1)[0]
        stream, delimiter = io.StringIO(text, newline=""), max(DELIMITERS, key=head.count)
        reader = csv.DictReader(stream, delimiter=delimiter, restval="", strict=True)
        place = "line 1"
        if missing := [name for name in columns if name not in (reader.fieldnames or ())]:
            raise DatasetError(path, place, f"no column {missing[0]}", f"the columns {', '.join(columns)}")
        for row in reader:
            place = f"line {reader.line_num}"
            yield place, {name: row.get(name, "") for name in (*columns, *optional)}
    except OSError as error:
        raise DatasetError(path, "", error.strerror or str(error), "a sheet in CSV") from error
    except (ValueError, csv.Error) as error:
        raise DatasetError(path, place, str(error), "a sheet in CSV") from error


def decode_text(content: bytes) -> str:
    """Decode a text file as UTF-16 (if a byte-order mark or zero bytes show it), UTF-8, GB18030 or Windows-1252.

    Raises:
        ValueError: the content is binary, or text in another encoding.
    """
    halves = [content[start::2].count(0) * 4 > len(content) for start in (0, 1)]
    if content.startswith((b"\xff\xfe", b"\xfe\xff")) or sum(halves) == 1:
        byte_order = "" if content[:1] in (b"\xff", b"\xfe") else "-be" if halves[0] else "-le"
        return content.decode(f"utf-16{byte_order}")
    try:
        text = content.decode(guess_encoding(content))
    except UnicodeDecodeError as error:
        # In Latin-1, most bytes above 127 stand alone; in UTF-8 and other encodings, they follow each other.
        alone = len(re.findall(rb"(?<![\x80-\xff])[\x80-\xff](?![\x80-\xff])", content))
        if 2 * alone <= sum(byte > 127 for byte in content):
            place = f"byte {error.start}, 0x{content[error.start]:02x}"
            raise ValueError(f"it is not UTF-8 ({place}), UTF-16, GB18030 or Latin-1; save it as UTF-8") from error
        text = content.decode("latin-1" if set(content) & set(b"\x81\x8d\x8f\x90\x9d") else "cp1252")
    if "\0" in text:
        raise ValueError("it has NUL bytes, so it is not text")
    return text


def find_delimiter(text: str) -> str:
    """Find the delimiter that gives the most rows the first row's width; on a tie, choose the greater width."""

    def rate_delimiter(delimiter: str) -> tuple[float, int]:
        rows = [row for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter) if row] or [[]]
        width = len(rows[0])
        return (sum(len(row) == width for row in rows) / len(rows), width) if width > 1 else (0, 0)

    return max(DELIMITERS, key=rate_delimiter)
