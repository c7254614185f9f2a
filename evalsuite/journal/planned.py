"""Cases as planned, before they run. Light to import, as workers do."""

from __future__ import annotations

from dataclasses import astuple, dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@dataclass(frozen=True, slots=True)
class PlannedCase:
    """A row of the table `cases`.

    Attributes:
        case: pytest's node id.
        declared: where the benchmark's code is, see `declarations`.
        selected: False if the command line left it out, although it belongs to the suite.
        fingerprints: those of `identity.BEFOREHAND`.
        beyond: whether `--limit` leaves it out, and it is asked only while a verdict is open.
    """

    case: str
    benchmark: str
    sample: str
    epoch: int
    tags: Mapping[str, str]
    source: str
    declared: str
    selected: bool
    fingerprints: Mapping[str, str]
    beyond: bool = False


def encode_plan(plan: Sequence[PlannedCase]) -> list[Any]:
    """A plan as JSON data."""
    return [astuple(planned) for planned in plan]


def decode_plan(plain: Sequence[Any]) -> list[PlannedCase]:
    """The reverse of `encode_plan`."""
    return [PlannedCase(*row) for row in plain]
