"""A shard's part of the samples, known before any item is made of the others."""

from __future__ import annotations

from evalsuite.core.option_values import parse_shard


class Deal:
    """Which samples are this machine's: dealt out in the order of collection, as each benchmark's are known.

    A sample's epochs stay together, as some benchmarks decide over them. What -k, -m and other plugins leave out or
    reorder afterwards changes nothing, so the shards of one command line are parts of one whole.

    Args:
        shard: K/N; None is everything.
    """

    def __init__(self, shard: str | None) -> None:
        self._part, self._parts = parse_shard(shard) if shard else (1, 1)
        self._numbers: dict[tuple[str, str], int] = {}

    def is_mine(self, benchmark: str, sample: str) -> bool:
        """Whether this machine runs a sample; the first time that one is named, it is dealt."""
        if self._parts == 1:
            return True
        number = self._numbers.setdefault((benchmark, sample), len(self._numbers))
        return number % self._parts == self._part - 1
