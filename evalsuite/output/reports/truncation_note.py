"""A word about answers that met the limit on tokens: their scores say little about the model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalsuite.output.reports.section import Passage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evalsuite.results.tally import Tally


def cut_off(label: str, tally: Tally, declared: str) -> Iterator[Passage]:
    """The passage, where any case's last answer was cut off.

    Args:
        label: of the run.
        tally: its cases, with the fact `finish`.
        declared: the benchmark's name where it is declared, as in `@benchmark(TREB)`.
    """
    cut = sum(row.facts.get("finish") == "length" for row in tally)
    if cut:
        yield Passage(
            "",
            f"{label}: in {cut} of {len(tally)} cases the last answer was cut off at the limit on tokens, which "
            f"costs score. `@benchmark({declared}, max_tokens=...)` sets it.",
        )


def judges_cut_off(label: str, tally: Tally) -> Iterator[Passage]:
    """The passage about answers of judges, where any was cut off; such a verdict is never read as a score.

    Args:
        label: of the run or the judge.
        tally: its cases, with the fact `cut_off` where an answer of a judge was.
    """
    cut = sum(bool(row.facts.get("cut_off")) for row in tally)
    if cut:
        yield Passage(
            "",
            f"{label}: in {cut} of {len(tally)} cases an answer of the judge was cut off at the limit on tokens. "
            "What was cut is not read as a score: the judge was asked again, or gave no verdict. Give it more room "
            "with max_tokens where the judge is declared.",
        )
