"""Columns of values that take little room: equal ones are kept once, numbers as numbers, the rest in a file."""

from __future__ import annotations

import json
import sys
import weakref
from array import array
from collections.abc import Mapping
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from evalsuite.core.types import Usage

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import IO

Shared = TypeVar("Shared")

LONGEST = 400
"""Characters of an object that is likely to stand in other rows, too."""

MOST = 10_000
"""Values that are kept for others to share; what is different in every row would only fill the memory."""

FIRST_OWN = 1 << 31
"""Numbers from here on are places of values that no other row shares."""


class TextColumn:
    """Texts one behind the other."""

    def __init__(self) -> None:
        self._bytes, self._ends = bytearray(), array("Q", [0])

    def append(self, text: str) -> None:
        """Adds a text."""
        self._bytes += text.encode("utf-8", "surrogatepass")
        self._ends.append(len(self._bytes))

    def __getitem__(self, at: int) -> str:
        """One text."""
        return self._bytes[self._ends[at] : self._ends[at + 1]].decode("utf-8", "surrogatepass")


class SharedColumn(Generic[Shared]):
    """Values of which there are few different ones, each kept once."""

    def __init__(self) -> None:
        self._codes, self._values, self._known = array("I"), list[Shared](), dict[Shared, int]()

    def append(self, value: Shared) -> None:
        """Adds a value."""
        code = self._known.setdefault(value, len(self._values))
        if code == len(self._values):
            self._values.append(value)
        self._codes.append(code)

    def __getitem__(self, at: int) -> Shared:
        """One value."""
        return self._values[self._codes[at]]

    def __len__(self) -> int:
        """How many values were added."""
        return len(self._codes)

    def code(self, at: int) -> int:
        """A number that equal values have in common."""
        return self._codes[at]


class MappingColumn:
    """Small objects of JSON. Those that are different in every row lie in a temporary file."""

    def __init__(self) -> None:
        self._codes, self._shared = array("I"), list[Mapping[str, Any]]()
        self._known = dict[str, int]()
        self._places = array("Q", [0])
        self._aside: IO[bytes] | None = None

    def append(self, values: Mapping[str, Any]) -> None:
        """Adds an object."""
        # As texts, 1, 1.0 and true are different, and both zeros.
        text = json.dumps(values, ensure_ascii=False, separators=(",", ":"))
        code = self._known.get(text)
        if code is None:
            few = len(self._shared) < MOST and len(text) <= LONGEST
            code = self._share(text, values) if few else self._put_aside(text)
        self._codes.append(code)

    def _share(self, text: str, values: Mapping[str, Any]) -> int:
        self._known[text] = len(self._shared)
        self._shared.append({sys.intern(name): value for name, value in values.items()})
        return len(self._shared) - 1

    def _put_aside(self, text: str) -> int:
        line = text.encode("utf-8", "surrogatepass")
        self._file.seek(self._places[-1])
        self._file.write(line)
        self._places.append(self._places[-1] + len(line))
        return FIRST_OWN + len(self._places) - 2

    def __getitem__(self, at: int) -> Mapping[str, Any]:
        """One object, which must not be changed."""
        code = self._codes[at]
        return self._shared[code] if code < FIRST_OWN else self._put_back(code - FIRST_OWN)

    @property
    def _file(self) -> IO[bytes]:
        """Open as long as the column is there; most columns need none."""
        if self._aside is None:
            self._aside = TemporaryFile()  # noqa: SIM115 - closed with the column
            weakref.finalize(self, self._aside.close)
        return self._aside

    def _put_back(self, number: int) -> Mapping[str, Any]:
        self._file.seek(self._places[number])
        line = self._file.read(self._places[number + 1] - self._places[number])
        values: Mapping[str, Any] = json.loads(line.decode("utf-8", "surrogatepass"))
        return values


class ScoreColumn:
    """Scores by name: the names once, the values as numbers."""

    def __init__(self) -> None:
        self._names = SharedColumn[tuple[str, ...]]()
        self._starts, self._values = array("I"), array("d")

    def append(self, scores: Mapping[str, float]) -> None:
        """Adds a case's scores."""
        self._names.append(tuple(map(sys.intern, scores)))
        self._starts.append(len(self._values))
        self._values.extend(scores.values())

    def names(self, at: int) -> tuple[str, ...]:
        """The names of one case's scores."""
        return self._names[at]

    def get(self, at: int, name: str) -> float | None:
        """One score; None where the case has none of this name."""
        names = self._names[at]
        return self._values[self._starts[at] + names.index(name)] if name in names else None

    def __getitem__(self, at: int) -> dict[str, float]:
        """One case's scores."""
        names, start = self.names(at), self._starts[at]
        return dict(zip(names, self._values[start : start + len(names)], strict=True))


class UsageColumn:
    """What cases used: equal amounts once, as far as there are few."""

    def __init__(self) -> None:
        self._codes, self._known = array("I"), dict[Usage, int]()
        self._shared, self._own = list[Usage](), array("d")

    def append(self, usage: Usage) -> None:
        """Adds a usage."""
        code = self._known.get(usage)
        if code is None and len(self._shared) < MOST:
            code = self._known[usage] = len(self._shared)
            self._shared.append(usage)
        elif code is None:
            code = FIRST_OWN + len(self._own) // 5
            counts = usage.calls, usage.prompt_tokens, usage.completion_tokens, usage.estimated
            self._own.extend((*map(float, counts), usage.cost))
        self._codes.append(code)

    def __getitem__(self, at: int) -> Usage:
        """One usage."""
        code = self._codes[at]
        if code < FIRST_OWN:
            return self._shared[code]
        start = 5 * (code - FIRST_OWN)
        calls, prompt, completion, estimated, cost = self._own[start : start + 5]
        return Usage(int(calls), int(prompt), int(completion), cost, int(estimated))


class Fingerprints(Mapping[str, str]):
    """One case's fingerprints, written out when they are asked for."""

    __slots__ = ("_names", "_numbers")

    def __init__(self, names: tuple[str, ...], numbers: array[int]) -> None:
        self._names, self._numbers = names, numbers

    def __getitem__(self, name: str) -> str:
        """One fingerprint."""
        if name not in self._names:
            raise KeyError(name)
        return f"{self._numbers[self._names.index(name)]:016x}"

    def __iter__(self) -> Iterator[str]:
        """Their names."""
        return iter(self._names)

    def __len__(self) -> int:
        """How many there are."""
        return len(self._names)


class FingerprintColumn:
    """Fingerprints of 16 hexadecimal digits as numbers; others, which no run of ours has, as they are."""

    def __init__(self) -> None:
        self._names = SharedColumn[tuple[str, ...]]()
        self._starts, self._numbers = array("Q"), array("Q")
        self._others = dict[int, Mapping[str, str]]()

    def append(self, fingerprints: Mapping[str, str]) -> None:
        """Adds a case's fingerprints."""
        if not all(map(_is_digest, fingerprints.values())):
            self._others[len(self._names)] = dict(fingerprints)
            fingerprints = {}
        self._names.append(tuple(map(sys.intern, fingerprints)))
        self._starts.append(len(self._numbers))
        self._numbers.extend(int(text, 16) for text in fingerprints.values())

    def __getitem__(self, at: int) -> Mapping[str, str]:
        """One case's fingerprints."""
        if at in self._others:
            return self._others[at]
        names, start = self._names[at], self._starts[at]
        return Fingerprints(names, self._numbers[start : start + len(names)])


def _is_digest(text: str) -> bool:
    return len(text) == 16 and not text.strip("0123456789abcdef")
