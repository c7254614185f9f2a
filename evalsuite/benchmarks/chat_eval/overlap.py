"""The metrics in the upper block of the paper's table 2: what a response has in common with the reference response.

They ask no judge. The reference is what was really said in the conversation, which is one of the rated responses;
that one is not compared with itself.
"""

from __future__ import annotations

from functools import cache, lru_cache
from threading import Lock
from typing import TYPE_CHECKING

from evalsuite.metrics.text import bleu, rouge_l

if TYPE_CHECKING:
    from pathlib import Path

    from evalsuite.metrics.neural import BertScore

OVERLAP = "overlap"
"""The fact that holds them, by the metric's name."""

ENCODING = Lock()
"""Held by the thread that loads or asks the encoder."""


@lru_cache(maxsize=1024)
def overlap(response: str, reference: str, encoder: Path | None) -> dict[str, float]:
    """ROUGE-L and BLEU in [0, 1] and, with an encoder's folder, the F1 of BERTScore.

    Raises:
        SettingsError: the folder holds no encoder.
        ScoringError: the extra `neural`, which BERTScore needs, is not installed.
    """
    values = {"ROUGE-L": rouge_l(response, reference), "BLEU": bleu(response, reference)}
    if encoder is not None:
        # Cases are scored in threads, and neither imports of transformers nor its tokenizers may be shared by two.
        with ENCODING:
            values["BERTScore"] = _bert_score(encoder).score(response, reference).f1
    return values


@cache
def _bert_score(folder: Path) -> BertScore:
    from evalsuite.metrics.neural import BertScore

    return BertScore(folder)
