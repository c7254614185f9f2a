"""SacreBLEU over all outputs of a run, as published, from counts that each case leaves behind.

A corpus' BLEU is no mean of sentences' BLEU: n-grams are counted over all outputs first.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from evalsuite.results.tally import Estimate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evalsuite.results.tally import Tally

FACT = "bleu"


def bleu_counts(prediction: str, reference: str) -> dict[str, Any]:
    """Matched and all n-grams of order 1 to 4, and the lengths of both texts, in sacrebleu's tokens."""
    score = _bleu().corpus_score([prediction], [[reference]])
    return {
        "matched": list(score.counts),
        "all": list(score.totals),
        "lengths": [score.sys_len, score.ref_len],
    }


def corpus_bleu(tally: Tally) -> Estimate | None:
    """SacreBLEU in [0, 1] (0 to 100 divided by 100) over all cases that were scored; None without any."""
    counts = [row.facts[FACT] for row in tally.scored("bleu") if FACT in row.facts]
    if not counts:
        return None
    matched, every = (_sum([count[name] for count in counts]) for name in ("matched", "all"))
    predicted, wanted = _sum([count["lengths"] for count in counts])
    score = _bleu().compute_bleu(matched, every, predicted, wanted, smooth_method="exp").score
    # sacrebleu sums logarithms: a perfect match comes out a rounding error above 100.
    return Estimate(min(1.0, score / 100), n=len(counts))


def _sum(rows: Sequence[Sequence[int]]) -> list[int]:
    return [sum(column) for column in zip(*rows, strict=True)]


@cache
def _bleu() -> Any:
    """Sacrebleu's defaults, exponential smoothing among them."""
    from sacrebleu.metrics.bleu import BLEU

    return BLEU()
