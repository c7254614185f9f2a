"""Reads compressed dumps as tables of a build's database: tab-separated values, JSON objects, triples.

With a named pipe, one thread decompresses while the database parses. Decompressed data are never written to disk, and
the progress bar can count the compressed bytes. The database's errors name only the pipe, not the line in the dump, and
their wording varies between versions. If reading a dump fails, the dump is read again to find the malformed line.
"""

import bz2
import gzip
import json
import os
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import chain, islice
from pathlib import Path
from threading import Thread
from typing import Any

from evalsuite.builders.building import BuildProgress
from evalsuite.core.errors import DatasetError, EvalsuiteError, SettingsError

# Checks a line; returns what is wrong and what was expected, or None if the line is correct.
Check = Callable[[str], "tuple[str, str] | None"]
BLOCK = 1 << 16  # Bytes per block; larger blocks exceed the processor's cache and were 10% slower.
_ZSTD_WINDOW = 1 << 31  # Maximum zstd window in bytes; MAG's files need this much.
_ZSTD_SLICE = 1 << 10


def find_dump_file(folder: Path, name: str) -> Path:
    """Find a downloaded file; the user may have decompressed the file or compressed it in another format."""
    plain = name.removesuffix(Path(name).suffix) if Path(name).suffix in _DECODERS else name
    for candidate in (name, plain, *(plain + suffix for suffix in _DECODERS)):
        if (folder / candidate).is_file():
            return folder / candidate
    problem = "no such file" if folder.is_dir() else "no such folder"
    raise DatasetError(folder / name, "", problem, "the downloaded file")


def decompress_file(path: Path, advance: Callable[[int], object]) -> Iterator[bytes]:
    """Decompress a file in the format of its suffix; call `advance` with the number of compressed bytes read."""
    read = 0
    try:
        with path.open("rb") as file:
            for block in _DECODERS.get(path.suffix, _read_blocks)(file):
                advance(file.tell() - read)
                read = file.tell()
                yield block
            advance(file.tell() - read)
    except EOFError:
        place, problem = f"byte {path.stat().st_size}", "the end amid compressed data"
        raise DatasetError(path, place, problem, "a complete file: download it again") from None
    except (OSError, zlib.error) as error:
        place, problem = f"about byte {max(0, read - BLOCK)}", getattr(error, "strerror", None) or str(error)
        raise DatasetError(path, place, problem, "a readable, undamaged file") from error


def _decompress_without_returns(path: Path, advance: Callable[[int], object]) -> Iterator[bytes]:
    """Decompress a file as `decompress_file` does, and remove all carriage returns."""
    return (block.replace(b"\r", b"") for block in decompress_file(path, advance))


def _read_blocks(file: Any) -> Iterator[bytes]:
    while piece := file.read(BLOCK):
        yield piece


def _read_zstd(file: Any) -> Iterator[bytes]:
    """Decompress slice by slice, because this decoder cannot limit its output."""
    import zstandard

    decoder: Any = None
    ready: list[bytes] = []
    while data := file.read(_ZSTD_SLICE):
        while data:
            if decoder is None or decoder.eof:
                decoder = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW).decompressobj()
            try:
                ready.append(decoder.decompress(data))
            except zstandard.ZstdError as error:
                raise OSError(str(error)) from error
            data = decoder.unused_data
        if sum(map(len, ready)) > BLOCK:
            yield b"".join(ready)
            ready = []
    yield b"".join(ready)
    if decoder is None or not decoder.eof:
        raise EOFError


_DECODERS: dict[str, Callable[[Any], Iterator[bytes]]] = {
    ".gz": lambda file: _read_blocks(gzip.GzipFile(fileobj=file)),
    ".bz2": lambda file: _read_blocks(bz2.BZ2File(file)),
    ".zst": _read_zstd,
}


@contextmanager
def open_pipe(blocks: Iterable[bytes], pipe: Path) -> Iterator[None]:
    """Write blocks into a new named pipe, in another thread; the caller's `with` block must read the pipe once.

    If the iteration over `blocks` fails, its error is raised at the end of the `with` block. This error replaces any
    error of the `with` block, because incomplete data caused that error.
    """
    os.mkfifo(pipe, 0o600)
    failures: list[BaseException] = []

    def write_blocks() -> None:
        try:
            with pipe.open("wb") as out:
                for block in blocks:
                    out.write(block)
        except BrokenPipeError:
            pass  # Ignore this error, because the reader has finished or raises its own error.
        except BaseException as error:  # noqa: BLE001 - raised in the waiting thread
            failures.append(error)

    feeder = Thread(target=write_blocks, name=f"feed {pipe.name}", daemon=True)
    feeder.start()
    try:
        yield
    finally:
        while feeder.is_alive():
            # If the `with` block failed before it opened the pipe, open it here, because the feeder waits for a reader.
            os.close(os.open(pipe, os.O_RDONLY | os.O_NONBLOCK))
            feeder.join(0.05)
        pipe.unlink()
        if failures:
            raise failures[0]


LONGEST = 1 << 21  # Maximum length of a line; a longer line is damaged or malicious.
# Escapes in JSON. The group `half` matches only lone surrogates, because complete pairs and escaped backslashes match
# earlier alternatives.
_ESCAPE = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(?P<half>\\u[dD][89a-fA-F][0-9a-fA-F]{2})|\\."
)


def split_lines(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the lines without their ends; a line that is longer than the limit is split."""
    rest = b""
    for block in blocks:
        *lines, rest = (rest + block).split(b"\n")
        yield from lines
        if len(rest) > LONGEST:
            yield rest
            rest = b""
    if rest:
        yield rest


def refuse_long_lines(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the blocks; raise an error if a line is too long."""
    length = 0
    for block in blocks:
        end = block.rfind(b"\n")
        length = length + len(block) if end < 0 else len(block) - end - 1
        if length > LONGEST:
            raise EvalsuiteError(f"a line is longer than {LONGEST:,} bytes")
        yield block


def drop_comments(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Remove the lines that begin with `#`; yield blocks that end at line ends."""
    rest = b""
    for block in chain(blocks, (b"\n",)):
        whole, end, rest = (rest + block).rpartition(b"\n")
        if whole.startswith(b"#") or b"\n#" in whole:
            whole = b"\n".join(line for line in whole.split(b"\n") if not line.startswith(b"#"))
        yield whole + end


def replace_surrogates(blocks: Iterable[bytes]) -> Iterator[bytes]:
    r"""Replace lone surrogates (`\ud800`), which are common in dumps, by U+FFFD; yield whole lines of JSON."""
    rest = b""
    for block in chain(blocks, (b"",)):
        text = rest + block
        cut = text.rfind(b"\n") + 1 if block else len(text)
        whole, rest = text[:cut], text[cut:]
        if b"\\ud" in whole or b"\\uD" in whole:
            whole = _ESCAPE.sub(lambda escape: b"\\ufffd" if escape["half"] else escape[0], whole)
        yield whole


def find_malformed_line(path: Path, check: Check, skip: int) -> DatasetError | None:
    """Return an error about the first malformed line, ignoring the first `skip` lines; None if there is none."""
    endless = ("a line without end", f"at most {LONGEST:,} bytes")
    for number, line in enumerate(split_lines(_decompress_without_returns(path, int)), 1):
        too_long = endless if len(line) > LONGEST else None
        if number > skip and (wrong := too_long or _find_encoding_error(line) or check(line.decode())):
            return DatasetError(path, f"line {number}", *wrong)
    return None


def _find_encoding_error(line: bytes) -> tuple[str, str] | None:
    """Describe the first byte that is not UTF-8, and what was expected; None if all bytes are UTF-8."""
    try:
        line.decode()
    except UnicodeDecodeError as error:
        return f"the byte 0x{line[error.start]:02x} as its byte {error.start + 1}", "UTF-8 text"
    return None


# Memory limit of the database: half of a build's 2 GB, because Python and the readers' buffers need the other half.
MEMORY = "1GB"


class Workspace:
    """A database in a private folder (see `building`), and the seed for all random draws."""

    def __init__(self, folder: Path, progress: BuildProgress, seed: int = 0) -> None:
        self.folder, self.progress, self.seed = folder, progress, seed
        self._pipes = 0
        try:
            import duckdb
        except ImportError as error:
            raise SettingsError(
                "building Head-to-Tail needs duckdb; install the extra: pip install 'evalsuite[build]'"
            ) from error
        self._database: Any = duckdb.connect(
            config={
                "memory_limit": MEMORY,
                "temp_directory": str(folder / "spill"),
                "preserve_insertion_order": False,
                # Forbid downloads.
                "autoinstall_known_extensions": False,
            }
        )
        # Disable join reordering, because the planner does not know the size of a stream. In a join, the planner would
        # otherwise load the stream into memory instead of the small table. Therefore, queries in this package name the
        # larger side of a join first.
        self._database.execute("SET disabled_optimizers = 'join_order,build_side_probe_side'")
        # The result of `drawing.compute_shuffle_key` for a text: the last 8 of the hash's 16 bytes, little-endian.
        self.run_sql(f"CREATE MACRO shuffle_key(text) AS md5_number_lower('{seed}:' || text)")

    def close(self) -> None:
        self._database.close()

    def run_sql(self, query: str) -> list[tuple[Any, ...]]:
        import duckdb

        try:
            return self._database.execute(query).fetchall()  # type: ignore[no-any-return]
        except duckdb.Error as error:
            raise EvalsuiteError(f"the build's database failed: {error}") from error

    def read_dump(
        self,
        query: str,
        path: Path,
        blocks: Iterable[bytes],
        delimiter: str,
        types: Mapping[str, str],
        check: Check | None = None,
        skip: int = 0,
    ) -> None:
        """Run a query, in which `$dump` stands, once, for the table of a dump's lines, with columns of these types.

        The first `skip` lines are left out. If the query fails, raise an error that names the first line that `check`
        calls malformed.
        """
        self.progress.begin_stage(path.name)
        self._pipes += 1
        pipe = self.folder / f"pipe-{self._pipes}"
        columns = ", ".join(f"{quote_sql(name)}: {quote_sql(kind)}" for name, kind in types.items())
        nulls = ", ".join(map(quote_sql, _NULLS))
        table = (
            f"read_csv({quote_sql(str(pipe))}, delim = {quote_sql(delimiter)}, quote = '', escape = '', "
            f"comment = '', skip = {skip}, header = false, auto_detect = false, max_line_size = {LONGEST}, "
            f"nullstr = [{nulls}], columns = {{{columns}}})"
        )
        try:
            with open_pipe(blocks, pipe):
                self.run_sql(query.replace("$dump", table))
        except DatasetError:
            raise
        except EvalsuiteError as error:
            raise ((check and find_malformed_line(path, check, skip)) or error) from error


def quote_sql(text: str) -> str:
    """Quote a text for SQL."""
    return "'" + text.replace("'", "''") + "'"


_LIMITS = {"INTEGER": range(-1 << 31, 1 << 31), "UINTEGER": range(1 << 32)}
_NULLS = ("\\N", "")
_TRIPLE = "'<subject> <predicate> <object> .'"


def read_tsv(
    workspace: Workspace, query: str, path: Path, columns: Mapping[str, str], *, header: Sequence[str] = ()
) -> None:
    r"""Run a query in which `$dump` stands for a file of tab-separated values; `\N` and empty cells are null.

    `header` has the names of the first columns of a file without a header; the file may have more columns.
    """
    start = next(split_lines(_decompress_without_returns(path, int)), None)
    if not start:
        raise DatasetError(path, "line 1", "an empty file" if start is None else "an empty line", "data")
    if wrong := _find_encoding_error(start):
        raise DatasetError(path, "line 1", *wrong)
    heads = start.decode().split("\t")
    if header:
        if len(heads) < len(header):
            expected = f"at least {len(header)}: {', '.join(header)}"
            raise DatasetError(path, "line 1", f"{len(heads)} columns", expected)
        heads = [*header, *(f"further_{number}" for number in range(len(header), len(heads)))]
    elif missing := [name for name in columns if name not in heads]:
        columns_there = f"only the columns {', '.join(map(repr, heads))}"
        raise DatasetError(path, "line 1", columns_there[:300], f"a header with the column {missing[0]!r}")
    types = {head: columns.get(head, "VARCHAR") for head in heads}
    check, skip = partial(_find_row_defect, types=types), 0 if header else 1
    blocks = refuse_long_lines(_decompress_without_returns(path, workspace.progress.advance))
    workspace.read_dump(query, path, blocks, "\t", types, check, skip)


def read_json_rows(workspace: Workspace, query: str, path: Path, fields: Mapping[str, Any]) -> None:
    """Run a query in which `$dump` stands for a file with one JSON object per line.

    `fields` maps the wanted fields to their SQL types, such as `[{"id": "VARCHAR"}]` for a list of objects. Every line
    must have all fields in `fields`, but a value may be null.
    """
    blocks = replace_surrogates(refuse_long_lines(decompress_file(path, workspace.progress.advance)))
    # Do not use the database's JSON reader, because it keeps a whole pipe in memory. Read each line as one column and
    # parse it. The delimiter U+0001 cannot occur in JSON.
    check = partial(_find_json_defect, fields=fields)
    parsed = f"unnest(json_transform_strict(line, {quote_sql(json.dumps(fields))}))"
    rows = f"(SELECT {parsed} FROM $dump WHERE line IS NOT NULL)"  # noqa: S608 - no text of a dump
    workspace.read_dump(query.replace("$dump", rows), path, blocks, "\x01", {"line": "VARCHAR"}, check)


def read_triples(workspace: Workspace, query: str, path: Path) -> None:
    """Run a query in which `$dump` stands for a file of RDF triples of IRIs, one per line.

    The columns are `subject`, `predicate` and `object`. The IRIs keep their angle brackets. Lines that begin with
    `#` are comments.
    """
    types = dict.fromkeys(("subject", "predicate", "object", "dot"), "VARCHAR")
    blocks = drop_comments(refuse_long_lines(decompress_file(path, workspace.progress.advance)))
    workspace.read_dump(query, path, blocks, " ", types, _find_triple_defect)


def encode_tsv_rows(rows: Iterable[Sequence[str | int | None]]) -> Iterator[bytes]:
    """Yield blocks of tab-separated lines; the cells must not contain tabs or line ends."""
    rows = iter(rows)
    while batch := list(islice(rows, 1000)):
        lines = ("\t".join("\\N" if value is None else str(value) for value in row) for row in batch)
        yield ("\n".join(lines) + "\n").encode()


def _find_row_defect(line: str, types: Mapping[str, str]) -> tuple[str, str] | None:
    cells = line.split("\t")
    if line and len(cells) != len(types):
        return f"{len(cells)} columns", f"{len(types)}, as in the first line"
    for cell, (name, kind) in zip(cells, types.items(), strict=False):
        if kind in _LIMITS and cell not in _NULLS and not _is_number_in_range(cell, _LIMITS[kind]):
            return f"{cell[:60]!r} as {name}", "a whole number" + (" of at least 0" if kind[0] == "U" else "")
    return None


def _is_number_in_range(cell: str, limits: range) -> bool:
    """Tell whether the database can read a cell as a number in a range; it also reads ` 5`, `1_000` and `5.0`."""
    try:
        return cell.isascii() and limits.start <= float(cell) < limits.stop
    except ValueError:
        return False


def _find_json_defect(line: str, fields: Mapping[str, Any]) -> tuple[str, str] | None:
    try:
        value: Any = json.loads(line or "null")
    except RecursionError:
        return repr(line[:60]), "JSON of a few levels"
    except ValueError as error:
        return repr(line[:60]), f"JSON ({error})"
    if not isinstance(value, dict):
        return (repr(line[:60]), "a JSON object") if line else None
    if missing := [name for name in fields if name not in value]:
        return f"only the fields {', '.join(map(repr, value))}"[:300], f"the field {missing[0]!r}"
    for name, kind in fields.items():
        if not isinstance(kind, list) or value[name] is None:
            continue
        entries = value[name] if isinstance(value[name], list) else [None]
        if not all(isinstance(entry, dict) and kind[0].keys() <= entry.keys() for entry in entries):
            return f"{json.dumps(value[name])[:60]} as {name}", f"a list of objects of {', '.join(kind[0])}"
    return None


def _find_triple_defect(line: str) -> tuple[str, str] | None:
    parts = line.split(" ")
    iris = all(part.startswith("<") and part.endswith(">") for part in parts[:3])
    fine = not line or line.startswith("#") or (len(parts) == 4 and parts[3] == "." and iris)
    return None if fine else (repr(line[:80]), _TRIPLE)
