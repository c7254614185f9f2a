"""The database of a build, which reads dumps as tables: tab-separated values, JSON objects, triples.

The database's errors name only the pipe, not the line in the dump, and their wording varies between versions. If
reading a dump fails, the dump is read again to find the malformed line.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evalsuite.builders.head_to_tail.dump_reader import (
    LONGEST,
    Check,
    decompress_file,
    drop_carriage_returns,
    drop_comments,
    find_malformed_line,
    open_pipe,
    read_first_line,
    refuse_long_lines,
    replace_surrogates,
)
from evalsuite.core.errors import DatasetError, EvalsuiteError, SettingsError

if TYPE_CHECKING:
    from evalsuite.builders.building import BuildProgress


# Memory limit of the database: half of a build's 2 GB, because Python and the readers' buffers need the other half.
MEMORY = "1GB"


class Workspace:
    """A database in a private folder (see `building`), and the seed for all random draws."""

    def __init__(self, folder: Path, progress: BuildProgress, seed: int = 0) -> None:
        self.folder, self.progress, self.seed = folder, progress, seed
        self._pipes = 0
        self._database = _open_database(folder)
        # The result of `drawing.compute_shuffle_key` for a text: the last 8 of the hash's 16 bytes, little-endian.
        self.run_sql(f"CREATE MACRO shuffle_key(text) AS md5_number_lower('{seed}:' || text)")

    def close(self) -> None:
        self._database.close()

    def run_sql(self, query: str, values: Mapping[str, Any] | None = None) -> list[tuple[Any, ...]]:
        import duckdb

        try:
            return self._database.execute(query, values).fetchall()  # type: ignore[no-any-return]
        except duckdb.Error as error:
            raise EvalsuiteError(f"the build's database failed: {error}") from error

    @contextmanager
    def open_stream(self, blocks: Iterable[bytes], make_sql: Callable[[str], str]) -> Iterator[str]:
        """Write blocks to a pipe; yield SQL, made by `make_sql` from the pipe's path, that only one query may use."""
        self._pipes += 1
        pipe = self.folder / f"pipe-{self._pipes}"
        with open_pipe(blocks, pipe):
            yield make_sql(quote_sql(str(pipe)))


def quote_sql(text: str) -> str:
    """Quote a text for SQL."""
    return "'" + text.replace("'", "''") + "'"


def _open_database(folder: Path) -> Any:
    try:
        import duckdb
    except ImportError as error:
        raise SettingsError(
            "building Head-to-Tail needs duckdb; install the extra: pip install 'evalsuite[build]'"
        ) from error
    database = duckdb.connect(
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
    database.execute("SET disabled_optimizers = 'join_order,build_side_probe_side'")
    return database


_LIMITS = {"INTEGER": (-1 << 31, 1 << 31), "UINTEGER": (0, 1 << 32)}
_NULLS = ("\\N", "")
_TRIPLE = "'<subject> <predicate> <object> .'"


@contextmanager
def stream_tsv(
    workspace: Workspace, path: Path, columns: Mapping[str, str], *, header: Sequence[str] = ()
) -> Iterator[str]:
    r"""Read tab-separated values without quoting, where `\N` and empty cells are null; yield SQL for one FROM clause.

    Args:
        header: the names of the first columns of a file without a header; the file may have more columns.
    """
    line, blocks = read_first_line(drop_carriage_returns(decompress_file(path, workspace.progress.advance)), path)
    heads = line.split("\t")
    if header:
        blocks = chain((f"{line}\n".encode(),), blocks)
        if len(heads) < len(header):
            expected = f"at least {len(header)}: {', '.join(header)}"
            raise DatasetError(path, "line 1", f"{len(heads)} columns", expected)
        heads = [*header, *(f"further_{number}" for number in range(len(header), len(heads)))]
    elif missing := [name for name in columns if name not in heads]:
        columns_there = f"only the columns {', '.join(map(repr, heads))}"
        raise DatasetError(path, "line 1", columns_there[:300], f"a header with the column {missing[0]!r}")
    types = {head: columns.get(head, "VARCHAR") for head in heads}
    check = partial(_find_row_defect, types=types)
    make_sql = partial(_make_csv_reader_sql, delimiter="\t", types=types)
    with _stream_dump(workspace, path, refuse_long_lines(blocks), make_sql, check, skip=0 if header else 1) as stream:
        yield stream


def stream_json_rows(workspace: Workspace, path: Path, fields: Mapping[str, Any]) -> AbstractContextManager[str]:
    """Read a file with one JSON object per line; yield SQL for a FROM clause, to be used in exactly one query.

    `fields` maps the wanted fields to their SQL types, such as `[{"id": "VARCHAR"}]` for a list of objects. Every line
    must have all fields in `fields`, but a value may be null.
    """
    blocks = replace_surrogates(refuse_long_lines(decompress_file(path, workspace.progress.advance)))
    # Do not use the database's JSON reader, because it keeps a whole pipe in memory. Read each line as one column and
    # parse it. The delimiter U+0001 cannot occur in JSON.
    table = partial(_make_csv_reader_sql, delimiter="\x01", types={"line": "VARCHAR"})
    parsed = f"unnest(json_transform_strict(line, {quote_sql(json.dumps(fields))}))"

    def make_relation_sql(file: str) -> str:
        return f"(SELECT {parsed} FROM {table(file)} WHERE line IS NOT NULL)"  # noqa: S608 - no text of a dump

    return _stream_dump(workspace, path, blocks, make_relation_sql, partial(_find_json_defect, fields=fields))


def stream_triples(workspace: Workspace, path: Path) -> AbstractContextManager[str]:
    """Read RDF triples of IRIs, one per line; yield SQL for a FROM clause, to be used in exactly one query.

    The columns are `subject`, `predicate` and `object`. The IRIs keep their angle brackets. Lines that begin with
    `#` are comments.
    """
    types = dict.fromkeys(("subject", "predicate", "object", "dot"), "VARCHAR")
    blocks = drop_comments(refuse_long_lines(decompress_file(path, workspace.progress.advance)))
    make_sql = partial(_make_csv_reader_sql, delimiter=" ", types=types)
    return _stream_dump(workspace, path, blocks, make_sql, _find_triple_defect)


def stream_rows(
    workspace: Workspace, rows: Iterable[Sequence[str | int | None]], columns: Mapping[str, str]
) -> AbstractContextManager[str]:
    """Read rows of cells without tabs and line ends; yield SQL for a FROM clause, to be used in exactly one query."""
    return workspace.open_stream(_encode_tsv_rows(rows), partial(_make_csv_reader_sql, delimiter="\t", types=columns))


@contextmanager
def _stream_dump(
    workspace: Workspace,
    path: Path,
    blocks: Iterable[bytes],
    make_sql: Callable[[str], str],
    check: Check,
    *,
    skip: int = 0,
) -> Iterator[str]:
    """Yield SQL that reads a dump in one query; if that fails, raise an error that names the first malformed line."""
    workspace.progress.begin_stage(path.name)
    try:
        with workspace.open_stream(blocks, make_sql) as stream:
            yield stream
    except DatasetError:
        raise
    except EvalsuiteError as error:
        raise (find_malformed_line(path, check, skip) or error) from error


def _encode_tsv_rows(rows: Iterable[Sequence[str | int | None]]) -> Iterator[bytes]:
    rows = iter(rows)
    while batch := list(islice(rows, 1000)):
        lines = ("\t".join("\\N" if value is None else str(value) for value in row) for row in batch)
        yield ("\n".join(lines) + "\n").encode()


def _make_csv_reader_sql(file: str, delimiter: str, types: Mapping[str, str]) -> str:
    columns = ", ".join(f"{quote_sql(name)}: {quote_sql(kind)}" for name, kind in types.items())
    nulls = ", ".join(map(quote_sql, _NULLS))
    return (
        f"read_csv({file}, delim = {quote_sql(delimiter)}, quote = '', escape = '', comment = '', "
        f"header = false, auto_detect = false, max_line_size = {LONGEST}, nullstr = [{nulls}], columns = {{{columns}}})"
    )


def _find_row_defect(line: str, types: Mapping[str, str]) -> tuple[str, str] | None:
    cells = line.split("\t")
    if line and len(cells) != len(types):
        return f"{len(cells)} columns", f"{len(types)}, as in the first line"
    for cell, (name, kind) in zip(cells, types.items(), strict=False):
        if kind in _LIMITS and cell not in _NULLS and not _is_whole_number_in_range(cell, *_LIMITS[kind]):
            return f"{cell[:60]!r} as {name}", "a whole number" + (" of at least 0" if kind[0] == "U" else "")
    return None


def _is_whole_number_in_range(cell: str, least: int, limit: int) -> bool:
    try:
        return least <= int(cell) < limit
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
        if isinstance(kind, list) and not _is_null_or_record_list(value[name], kind[0]):
            return f"{json.dumps(value[name])[:60]} as {name}", f"a list of objects of {', '.join(kind[0])}"
    return None


def _is_null_or_record_list(value: Any, fields: Iterable[str]) -> bool:
    return value is None or (
        isinstance(value, list)
        and all(isinstance(entry, dict) and all(name in entry for name in fields) for entry in value)
    )


def _find_triple_defect(line: str) -> tuple[str, str] | None:
    parts = line.split(" ")
    iris = all(part.startswith("<") and part.endswith(">") for part in parts[:3])
    fine = not line or line.startswith("#") or (len(parts) == 4 and parts[3] == "." and iris)
    return None if fine else (repr(line[:80]), _TRIPLE)
