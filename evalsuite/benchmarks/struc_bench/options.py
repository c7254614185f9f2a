"""What may be set where the benchmark is declared: `@benchmark(STRUC_BENCH, bertscore="models/encoder")`."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from evalsuite.errors import SettingsError

if TYPE_CHECKING:
    from evalsuite.protocols import Setup

NEURAL = ("bertscore", "bartscore", "bleurt")
QUICK = 4
"""Shipped items of each format for a quick look."""


@dataclass(frozen=True, slots=True)
class StrucBenchOptions:
    """See the module.

    Attributes:
        each: how many items of each format are asked: of the shipped samples the first 4, of a folder all; 0
            is all.
        max_tokens: of an answer; by default what the wanted table needs and half as much again, and at least
            2048 for a model that is not on this machine.
        temperature: of the answers.
        bertscore: folder of an encoder; without one BERTScore is not measured.
        bartscore: folder of an encoder-decoder, likewise.
        bleurt: folder of a BLEURT checkpoint, likewise.
    """

    each: int = 0
    max_tokens: int | None = None
    temperature: float | None = 0.0
    bertscore: str | None = None
    bartscore: str | None = None
    bleurt: str | None = None

    @classmethod
    def of(cls, setup: Setup) -> StrucBenchOptions:
        """The options of a run.

        Raises:
            SettingsError: an argument is none of these.
        """
        known = [field.name for field in fields(cls)]
        if unknown := sorted(set(setup.args) - set(known)):
            raise SettingsError(
                f"Struc-Bench knows no argument {', '.join(unknown)}; it knows {', '.join(known)}"
            )
        return cls(**{"each": 0 if setup.data else QUICK, **setup.args})
