"""A run's rows: in memory or, if there are many, in a temporary file that is read block by block."""

from __future__ import annotations

import marshal
import os
import re
import tempfile
import weakref
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, make_dataclass, replace
from functools import lru_cache, partial
from itertools import islice
from operator import attrgetter
from typing import IO, TYPE_CHECKING, Any, TypeVar

from evalsuite.core.types import Usage
from evalsuite.results.tally import Row, Tally

if TYPE_CHECKING:
    from evalsuite.core.types import Record

MOST_IN_MEMORY = 100_000
"""Maximum rows that a run keeps in memory; a row takes about 1 KiB, much less than the case's item in a session."""
BLOCK = 250  # Number of rows per block of the file; a block is written and read as a whole, in less than a millisecond.
IS_HASH = re.compile("[0-9a-f]{16}").fullmatch
MOST_SHARED = 10_000  # Maximum number of distinct objects that are kept for sharing, because they take memory.


class SharedHashes(Mapping[str, str]):
    """Maps names to hashes of 16 hexadecimal digits, stored as bytes; to save memory, rows share one tuple of names."""

    __slots__ = ("digits", "names")

    def __init__(self, names: tuple[str, ...], digits: bytes) -> None:
        self.names, self.digits = names, digits

    def __getitem__(self, name: str) -> str:
        if name not in self.names:
            raise KeyError(name)
        start = 8 * self.names.index(name)
        return self.digits[start : start + 8].hex()

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)


class RowMaker:
    """Makes rows; to save memory, rows whose tags, scores, facts or usages are equal share one object."""

    def __init__(self) -> None:
        self._known: dict[Any, Any] = {}

    def make_row(self, record: Record) -> Row:
        row = Row.of(record)
        hashes = row.fingerprints
        if hashes and all(map(IS_HASH, hashes.values())):
            names = tuple(hashes)
            hashes = SharedHashes(self._share_value(names), bytes.fromhex("".join(hashes.values())))
        shared = {name: self._share_mapping(getattr(row, name)) for name in ("tags", "scores", "facts")}
        usages = {name: self._share_value(getattr(row, name)) for name in _USAGE_FIELDS}
        return replace(row, fingerprints=hashes, **shared, **usages)

    def _share_value(self, value: Any, key: Any = None) -> Any:
        """Return the value that was stored first under this key; store no further values after `MOST_SHARED`."""
        find = self._known.get if len(self._known) >= MOST_SHARED else self._known.setdefault
        return find(value if key is None else key, value)

    def _share_mapping(self, value: Mapping[str, Any]) -> Any:
        """Return the first stored mapping with equal keys, equal values and equal types of values."""
        try:  # Compare types as well: 1, 1.0 and true are equal, but their JSON differs.
            return self._share_value(value, (*value.items(), *map(type, value.values())))
        except TypeError:
            # Do not share facts that contain lists or mappings, because these have no hash.
            return value


Found = tuple[int, str, Row]  # For one record: its offset in the file, its benchmark and its row.
_T = TypeVar("_T")
_ROW_FIELDS = tuple(item.name for item in fields(Row))
_USAGE_FIELDS = ("usage", "judge_usage", "simulator_usage")
_USAGES = tuple(map(_ROW_FIELDS.index, _USAGE_FIELDS))
_CASE, _HASHES = _ROW_FIELDS.index("case"), _ROW_FIELDS.index("fingerprints")
# This class has the same slots as `Row` but is not frozen, because setting 15 fields of a frozen class is slow.
_MutableRow: Any = make_dataclass("_MutableRow", _ROW_FIELDS, slots=True)
_get_fields, _get_amounts = attrgetter(*_ROW_FIELDS), attrgetter(*(item.name for item in fields(Usage)))


def make_tallies(records: Iterable[Found], *, in_temporary_file: bool) -> tuple[dict[str, Tally], Mapping[str, int]]:
    """Make a tally per benchmark, and map cases to their records' offsets; a repeated case's last record counts.

    Args:
        records: the records, in the order of their file.
        in_temporary_file: whether to store rows in a temporary file; if records are not sorted by case, memory is used.
    """
    if in_temporary_file:
        file = RowFile(records)
        if file.is_sorted:
            return {name: _StoredTally(_StoredRows(file, numbers)) for name, numbers in file.numbers.items()}, file
        records = file.iterate_records()
    latest = {row.case: (offset, benchmark, row) for offset, benchmark, row in records}
    grouped: dict[str, list[Row]] = {}
    for _, benchmark, row in latest.values():
        grouped.setdefault(benchmark, []).append(row)
    offsets = {case: offset for case, (offset, _, _) in latest.items()}
    return {name: Tally.of(rows) for name, rows in grouped.items()}, offsets


class RowFile(Mapping[str, int]):
    """Rows in a temporary file; as a mapping, it maps each case to the offset of the case's record in `records.jsonl`.

    In memory, there are only the rows' numbers and, for each block, its position and its first case.

    Rows often share objects; `marshal` writes such an object only once per block. No other process can write the
    temporary file, because it has no name.
    """

    def __init__(self, found: Iterable[Found]) -> None:
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 - closed once no tally reads it
        weakref.finalize(self, self._file.close)
        self._starts = array("Q", [0])
        self._firsts: list[str] = []
        self.numbers: dict[str, array[int]] = {}  # The positions of each benchmark's rows, counted in rows from 0.
        self.is_sorted = True  # Whether the rows are sorted by case and no case is repeated.
        self._length, last = 0, ""
        found = iter(found)
        while block := list(islice(found, BLOCK)):
            for at, (_, benchmark, row) in enumerate(block, self._length):
                self.numbers.setdefault(benchmark, array("I")).append(at)
                self.is_sorted = self.is_sorted and (row.case > last or not at)
                last = row.case
            self._length += len(block)
            self._firsts.append(block[0][2].case)
            self._file.write(_encode_row_block(block))
            self._starts.append(self._file.tell())
        self._file.flush()
        # Keep some blocks in memory, because most look-ups proceed in order, and several may proceed at the same time.
        self._read_block = lru_cache(8)(partial(_read_block, self._file, self._starts))

    def iterate_rows(self, numbers: Iterable[int]) -> Iterator[Row]:
        for number in numbers:
            block, at = divmod(number, BLOCK)
            yield _decode_row(self._read_block(block)[1][at])

    def iterate_records(self) -> Iterator[Found]:
        for number in range(len(self._firsts)):
            for (offset, benchmark), encoded in zip(*self._read_block(number), strict=True):
                yield offset, benchmark, _decode_row(encoded)

    def __iter__(self) -> Iterator[str]:
        return (row.case for _, _, row in self.iterate_records())

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, case: str) -> int:
        number = bisect_right(self._firsts, case) - 1
        if number >= 0:
            where, rows = self._read_block(number)
            at = bisect_left(rows, case, key=lambda row: row[_CASE])
            if at < len(rows) and rows[at][_CASE] == case:
                return where[at][0]
        raise KeyError(case)


def _encode_row_block(block: Sequence[Found]) -> bytes:
    packed: dict[int, Any] = {}  # Maps the `id()` of a usage object, which rows may share, to a plain tuple.
    rows = []
    for _, _, row in block:
        plain = list(_get_fields(row))
        for at in _USAGES:
            plain[at] = packed.setdefault(id(plain[at]), _get_amounts(plain[at]))
        plain[_HASHES] = dict(plain[_HASHES])
        rows.append(plain)
    return marshal.dumps(([(offset, benchmark) for offset, benchmark, _ in block], rows))


def _read_block(file: IO[bytes], starts: Sequence[int], number: int) -> tuple[list[tuple[int, str]], list[list[Any]]]:
    """Read where the records of a block are, as pairs of offset and benchmark, and the block's encoded rows."""
    start, end = starts[number : number + 2]
    # This process wrote the data. Use `pread`, because threads and forked processes share the file's position.
    return marshal.loads(os.pread(file.fileno(), end - start, start))  # type: ignore[no-any-return]  # noqa: S302


_make_usage = lru_cache(MOST_SHARED, typed=True)(Usage)


def _decode_row(encoded: Sequence[Any]) -> Row:
    plain = list(encoded)
    for at in _USAGES:
        plain[at] = _make_usage(*plain[at])
    row = _MutableRow(*plain)
    row.__class__ = Row
    return row  # type: ignore[no-any-return]


class _StoredRows(Sequence[Row]):
    def __init__(self, file: RowFile, numbers: array[int]) -> None:
        self._file, self._numbers = file, numbers

    def __len__(self) -> int:
        return len(self._numbers)

    def __iter__(self) -> Iterator[Row]:
        return self._file.iterate_rows(self._numbers)

    def __getitem__(self, at: Any) -> Any:
        return next(self._file.iterate_rows([self._numbers[at]]))

    def select_rows(self, indices: Iterable[int]) -> _StoredRows:
        return _StoredRows(self._file, array("I", map(self._numbers.__getitem__, indices)))


@dataclass(frozen=True, slots=True)
class _StoredTally(Tally):
    """A tally of rows in a file; it computes each result only once, because reading takes long."""

    rows: _StoredRows
    _known: dict[object, Any] = field(default_factory=dict, compare=False, repr=False)

    def _select_rows(self, indices: Iterable[int]) -> Tally:
        return _StoredTally(self.rows.select_rows(indices))

    def _compute_once(self, _key: object, compute: Callable[[], _T]) -> _T:
        if _key not in self._known:
            self._known[_key] = compute()
        known: _T = self._known[_key]
        return known
