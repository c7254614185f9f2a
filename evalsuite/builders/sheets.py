"""Read and write CSV files that people edit: the encoding and the delimiter are detected."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from evalsuite.core.errors import DatasetError
from evalsuite.output.exports import escape_formula
from evalsuite.sandbox.inside.files import guess_encoding

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
