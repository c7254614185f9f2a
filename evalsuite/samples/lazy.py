"""Create samples on demand: a sample that `--limit`, `-k` or `--shard` leaves out is never created."""

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import islice
from typing import Any

from evalsuite.core.errors import EvalsuiteError, SettingsError, describe_error
from evalsuite.core.types import Sample

MOST_KEPT = 10_000  # Maximum number of samples in memory, because a suite may have millions.

# Lock held while a sample is created, because the event loop and the test may request the same sample at once.
_creation = threading.RLock()


class LazySample:
    """A sample that is created when it is used; before that, only its id is known."""

    __slots__ = ("_make", "id")

    def __init__(self, id: str, make: Callable[[str], Sample]) -> None:  # noqa: A002 - named like the attribute of Sample
        self.id, self._make = id, make

    @property
    def sample(self) -> Sample:
        """The sample; each access calls `make`, which may return the sample from its cache."""
        try:
            with _creation:
                sample: object = self._make(self.id)
        except EvalsuiteError:
            raise
        except (Exception, SystemExit) as error:
            message = f"LazySamples: make({self.id!r}) raised {describe_error(error)}"
            raise SettingsError(message) from error
        if not isinstance(sample, Sample):
            raise SettingsError(f"LazySamples: make({self.id!r}) returned {sample!r:.60}, not a Sample")
        if sample.id != self.id:
            raise SettingsError(f"LazySamples: make({self.id!r}) returned a sample with the id {sample.id!r}")
        return sample


class LazySamples(Sequence[Sample]):
    """Samples whose ids are known from the start; a sample's content is created only if its case runs.

    They suit large files, and prompts that are slow to make: `LazySamples(table.index, lambda id: Sample(id, ...))`.

    Args:
        ids: the unique ids of all samples, in order; numbers become text.
        make: function that creates a sample from its id (text). Each process calls `make` only for the samples that it
            needs. A process keeps its latest 10,000 samples, and creates older ones again if they are needed.
    """

    def __init__(self, ids: Iterable[str | int], make: Callable[[str], Sample]) -> None:
        self.ids = tuple(map(str, ids))
        self._make = make

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, at: Any) -> Any:
        """Create one sample; for a slice, return new lazy samples without creating them."""
        if isinstance(at, slice):
            return LazySamples(self.ids[at], self._make)
        return LazySample(self.ids[at], self._make).sample

    def list_samples(self) -> list[LazySample]:
        """List all samples as lazy samples, without creating any."""
        make = lru_cache(MOST_KEPT)(self._make)
        return [LazySample(id_, make) for id_ in self.ids]

    def tagged(self, tags: Callable[[Sample], Mapping[str, str]]) -> "LazySamples":
        """Return lazy samples whose tags the function `tags` computes from each sample."""

        def make_tagged_sample(id_: str) -> Sample:
            sample = self._make(id_)
            return replace(sample, tags=tags(sample))

        return LazySamples(self.ids, make_tagged_sample)


class SampleStream(Sequence[Sample]):
    """Samples from a generator, which is read no further than needed."""

    def __init__(self, source: Iterable[Sample] | Callable[[], Iterable[Sample]]) -> None:
        self._rest: Iterator[Sample] | None = None
        self._source, self._read = source, list[Sample]()

    def read_first_samples(self, count: int | None) -> Sequence[Sample]:
        """Read this number of samples from the beginning; None reads all samples."""
        if self._rest is None:
            self._rest = iter(self._source() if callable(self._source) else self._source)
        self._read += islice(self._rest, None if count is None else max(0, count - len(self._read)))
        return self._read[:count]

    def __len__(self) -> int:
        """Count the samples; this reads all samples."""
        return len(self.read_first_samples(None))

    def __bool__(self) -> bool:
        """Tell whether the source has any samples."""
        return bool(self.read_first_samples(1))

    def __getitem__(self, at: Any) -> Any:
        """Return one sample or a slice; read the source no further than needed."""
        whole = isinstance(at, slice) or at < 0
        return self.read_first_samples(None if whole else at + 1)[at]
