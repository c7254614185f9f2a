"""Equal values of many rows, kept once: of a hundred thousand cases, most have the same tags, facts and usage."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from evalsuite.results.tally import Row
    from evalsuite.types import Usage

LONGEST = 100
"""Characters of a text that is likely to stand in other rows, too."""

MOST = 10_000
"""Values that are kept for others to share; scores that are all different would only fill the memory."""


class SharedValues:
    """See the module. What is shared must not be changed afterwards, as a row's values never are."""

    def __init__(self) -> None:
        self._mappings: dict[tuple[Any, ...], Mapping[str, Any]] = {}
        self._usages: dict[Usage, Usage] = {}

    def of(self, row: Row) -> Row:
        """An equal row, whose values are those of others as far as they are equal."""
        return replace(
            row,
            tags=self._mapping(row.tags),
            scores=self._mapping(row.scores),
            facts=self._mapping(row.facts),
            usage=self._usage(row.usage),
            judge_usage=self._usage(row.judge_usage),
            simulator_usage=self._usage(row.simulator_usage),
            # Hardly two of them are equal, but each has parts that all have.
            fingerprints={sys.intern(name): sys.intern(value) for name, value in row.fingerprints.items()},
        )

    def _mapping(self, values: Mapping[str, Any]) -> Mapping[str, Any]:
        if not all(map(_is_short, values.values())):
            return {sys.intern(name): value for name, value in values.items()}
        # 1, 1.0 and True are equal, as are 0.0 and -0.0, and are not the same in a report.
        key = tuple((name, type(value), repr(value)) for name, value in values.items())
        shared = self._mappings.get(key)
        if shared is None:
            shared = {sys.intern(name): value for name, value in values.items()}
            if len(self._mappings) < MOST:
                self._mappings[key] = shared
        return shared

    def _usage(self, usage: Usage) -> Usage:
        shared = self._usages.get(usage)
        if shared is None:
            shared = usage
            if len(self._usages) < MOST:
                self._usages[usage] = usage
        return shared


def _is_short(value: Any) -> bool:
    return len(value) <= LONGEST if isinstance(value, str) else isinstance(value, int | float | None)
