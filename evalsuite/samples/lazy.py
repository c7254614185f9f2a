"""Samples that are made when they are needed: what `--limit`, `-k` and `--shard` leave out is never made."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any

from evalsuite.core.errors import SettingsError
from evalsuite.core.types import Sample

if TYPE_CHECKING:
    from collections.abc import Mapping


_making = threading.RLock()
"""Held while a sample is made: the event loop, which solves a case, and the case's test may ask for it at once."""


class Unmade:
    """A sample of which only the id is known.

    Args:
        id: the sample's.
        make: makes the sample of an id.
    """

    __slots__ = ("_make", "_sample", "id")

    def __init__(self, id: str, make: Callable[[str], Sample]) -> None:  # noqa: A002 - as a sample's
        self.id, self._make = id, make
        self._sample: Sample | None = None

    @property
    def sample(self) -> Sample:
        """The sample, made once.

        Raises:
            SettingsError: what was made has another id.
        """
        with _making:
            if self._sample is None:
                made = self._make(self.id)
                if made.id != self.id:
                    raise SettingsError(
                        f"LazySamples: for the id {self.id!r} the sample {made.id!r} was made"
                    )
                self._sample = made
            return self._sample


class LazySamples(Sequence[Sample]):
    """Samples whose ids are known at once, and whose contents are made for those that run.

    For prompts that take long to put together, or large files: `LazySamples(table.index, lambda id: Sample(id, ...))`.
    `--limit`, `-k` and `--shard` choose by ids; what they leave out is not made.

    Args:
        ids: the ids of all samples, unique, in order; numbers become text.
        make: makes the sample of an id, given as text; called in each process that needs the sample.
    """

    def __init__(self, ids: Iterable[str | int], make: Callable[[str], Sample]) -> None:
        self.ids = tuple(map(str, ids))
        self._make = make

    def __len__(self) -> int:
        """Count the samples."""
        return len(self.ids)

    def __getitem__(self, at: Any) -> Any:
        """Make one sample; a slice makes none."""
        if isinstance(at, slice):
            return LazySamples(self.ids[at], self._make)
        return Unmade(self.ids[at], self._make).sample

    def unmade(self) -> list[Unmade]:
        """Iterate over the ids of all samples without making any."""
        return [Unmade(id_, self._make) for id_ in self.ids]

    def tagged(self, tags: Mapping[str, str]) -> LazySamples:
        """Add tags to all samples; their own take precedence."""

        def make(id_: str) -> Sample:
            sample = self._make(id_)
            return replace(sample, tags={**tags, **sample.tags})

        return LazySamples(self.ids, make)


class SampleStream(Sequence[Sample]):
    """Samples from a generator, read as far as somebody asks.

    Args:
        source: gives the samples, or is a function that does.
    """

    def __init__(self, source: Iterable[Sample] | Callable[[], Iterable[Sample]]) -> None:
        self._rest: Iterator[Sample] | None = None
        self._source, self._read = source, list[Sample]()

    def first(self, count: int | None) -> Sequence[Sample]:
        """So many samples from the beginning; None for all."""
        if self._rest is None:
            self._rest = iter(self._source() if callable(self._source) else self._source)
        self._read += islice(self._rest, None if count is None else max(0, count - len(self._read)))
        return self._read[:count]

    def __len__(self) -> int:
        """Count the samples, which reads them all."""
        return len(self.first(None))

    def __bool__(self) -> bool:
        """Tell whether there is a sample."""
        return bool(self.first(1))

    def __getitem__(self, at: Any) -> Any:
        """Return one sample, or those of a slice, and read as far as that."""
        whole = isinstance(at, slice) or at < 0
        return self.first(None if whole else at + 1)[at]
