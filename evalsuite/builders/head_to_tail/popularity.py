"""Head, torso and tail: a type of entity cut in three by popularity."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate
from typing import TYPE_CHECKING

from evalsuite.benchmarks.head_to_tail.dataset import BUCKETS

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Share:
    """A bucket's part of a type of entity.

    Attributes:
        entities: how many entities it holds.
        popularity: their popularity, summed.
    """

    entities: int = 0
    popularity: int = 0


class Partition:
    """Entities of one type in three buckets, each with about a third of all popularity.

    Entities are sorted by popularity, the most popular first, and their popularity is summed up in that
    order. The head is the shortest beginning that reaches a third of the whole, the torso goes on to two
    thirds, the tail is the rest (the paper's rule). Equal popularity is never cut apart. Where all
    popularity is zero, all is tail.

    Args:
        entities: how many entities there are of each popularity (whole, at least 0).
    """

    def __init__(self, entities: Mapping[int, int]) -> None:
        self._entities = dict(sorted(entities.items(), reverse=True))
        sums = accumulate(each * count for each, count in self._entities.items())
        self._until = dict(zip(self._entities, sums, strict=True))
        self.total = max(self._until.values(), default=0)

    def above(self, popularity: int) -> Fraction:
        """The share in [0, 1] of all popularity that more popular entities have; 0 for the top.

        Raises:
            KeyError: no entity has this popularity.
        """
        own = popularity * self._entities[popularity]
        return Fraction(self._until[popularity] - own, self.total) if self.total else Fraction(1)

    def bucket(self, popularity: int) -> str:
        """Where the entities of this popularity belong.

        Raises:
            KeyError: no entity has this popularity.
        """
        return BUCKETS[min(int(3 * self.above(popularity)), 2)]

    def floor(self, bucket: str) -> int:
        """The least popularity that still belongs to this bucket or to one above it.

        Above all popularities where these buckets are empty: no entity reaches it.
        """
        rank = BUCKETS.index(bucket)
        reached = (each for each in self._entities if BUCKETS.index(self.bucket(each)) <= rank)
        return min(reached, default=max(self._entities, default=0) + 1)

    def shares(self) -> dict[str, Share]:
        """What each bucket holds."""
        shares = dict.fromkeys(BUCKETS, Share())
        for each, count in self._entities.items():
            name = self.bucket(each)
            old = shares[name]
            shares[name] = Share(old.entities + count, old.popularity + each * count)
        return shares
