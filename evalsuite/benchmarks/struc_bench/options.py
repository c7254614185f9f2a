"""What may be set where the benchmark is declared: `@benchmark(STRUC_BENCH, bertscore="models/encoder")`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from evalsuite.benchmarks.struc_bench.p_score import check_prompt
from evalsuite.core.errors import SettingsError
from evalsuite.core.keywords import read_options

if TYPE_CHECKING:
    from evalsuite.core.protocols import Setup

NEURAL = ("bertscore", "bartscore", "bleurt")
QUICK = 4
"""Shipped items of each format for a quick look."""


@dataclass(frozen=True, slots=True)
class StrucBenchOptions:
    """The keyword arguments of Struc-Bench in `@benchmark`.

    Attributes:
        each: how many items of each format are asked; 0 is all. By default all of a folder, and of the shipped
            samples the first 4.
        max_tokens: of an answer; by default half as much again as the wanted table needs, and at least
            `least_tokens`.
        least_tokens: the least that is allowed for an answer, so that a model has room to think first.
        temperature: of the answers.
        bertscore: folder of an encoder; without one BERTScore is not measured.
        bertscore_layer: whose embeddings are compared; by default the one that is usual for the model.
        bertscore_baseline: file of the bert_score package by which BERTScore is rescaled.
        bartscore: folder of an encoder-decoder, likewise.
        bleurt: folder of a BLEURT checkpoint, likewise.
        p_prompt: what the P-Score's judge is asked; the default is `PROMPT` in `struc_bench.p_score`,
            whose places in braces it may have, and {tables} it must.
    """

    each: int = 0
    max_tokens: int | None = None
    least_tokens: int = 2048
    temperature: float | None = 0.0
    bertscore: str | None = None
    bertscore_layer: int | None = None
    bertscore_baseline: str | None = None
    bartscore: str | None = None
    bleurt: str | None = None
    p_prompt: str | None = None

    @classmethod
    def of(cls, setup: Setup) -> StrucBenchOptions:
        """The options of a run.

        Raises:
            SettingsError: an argument is none of these, or a prompt has not the places it must have.
        """
        options = read_options("Struc-Bench", cls, {"each": 0 if setup.data else QUICK, **setup.args})
        if options.p_prompt is not None:
            try:
                check_prompt(options.p_prompt)
            except ValueError as error:
                raise SettingsError(f"Struc-Bench: p_prompt {error}") from error
        return options
