"""The metrics as the authors' code computes them, beside the house's own: published rows were made with these.

Written from their definitions (github.com/JT-LM/jiutian-treb, `src/judge`; packages rouge-chinese 1.0.3, rouge-score
0.1.2, sacrebleu 2.5.1, jieba 0.42.1). What differs from the house's own:

- A reference with a Chinese character (U+4E00 to U+9FFF) makes both texts Chinese: cut by jieba, and every token
  counts, punctuation too, case kept. The house's ROUGE-L leaves punctuation out.
- In ROUGE-L of other texts only the letters a-z and digits are words, so that accents split them.
- Exact match compares how often each capital letter stands in both answers: two answers without capitals are equal.
  The code takes it of every answer; here, as it seems in Table 5, of those whose reference is a number.
"""

from __future__ import annotations

import re
import string
from typing import TYPE_CHECKING

from evalsuite.benchmarks.treb.options import TrebOptions
from evalsuite.benchmarks.treb.scoring import RULES_SUBTASK, failed_program, own_scorers
from evalsuite.core.types import Score
from evalsuite.metrics.text import bleu_of_tokens, stemmed
from evalsuite.metrics.words import segment

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evalsuite.core.protocols import JudgedScorer, Scorer, Setup
    from evalsuite.core.types import Sample, Transcript

CHINESE = re.compile(r"[\u4e00-\u9fff]")
WORDS = re.compile(r"[a-z0-9]+")
# Where rouge-chinese ends a sentence: after a full stop, two dots or a closing quotation mark of Chinese. A line that
# is empty but for blanks is a word of its own, an empty one.
_ENDS = (
    re.compile(r"([\u3002\uff01\uff1f?])([^\u201d\u2019])"),
    re.compile(r"(\.{6})([^\u201d\u2019])"),
    re.compile(r"(\u2026{2})([^\u201d\u2019])"),
    re.compile(r"([\u3002\uff01\uff1f?][\u201d\u2019])([^\uff0c\u3002\uff01\uff1f?])"),
)
NAMES = ("rouge_l_released", "bleu_released", "exact_match_released")


def scorers(setup: Setup) -> tuple[Scorer | JudgedScorer, ...]:
    """TReB's scorers; where published rows are shown, those of the released metrics, too."""
    own = own_scorers(setup)
    return (*own, released_scores) if TrebOptions.of(setup).published else own


def released_scores(sample: Sample, transcript: Transcript) -> dict[str, float | Score]:
    """`rouge_l_released`, `bleu_released` and `exact_match_released`, in [0, 1]; nothing without a reference."""
    target = str(sample.target)
    if sample.tags["subtask"] == RULES_SUBTASK or not target.strip():
        return {}
    if note := failed_program(sample, transcript):
        names = NAMES if sample.metadata["number"] is not None else NAMES[:2]
        return {name: Score(0.0, note) for name in names}
    answer = transcript.answer
    scores: dict[str, float | Score] = {
        "rouge_l_released": rouge_l(answer, target),
        "bleu_released": bleu(answer, target),
    }
    if sample.metadata["number"] is not None:
        scores["exact_match_released"] = exact_match(answer, target)
    return scores


def exact_match(prediction: str, reference: str) -> float:
    """1.0 where each capital letter A to Z stands in both texts equally often, or they are the same."""
    counts = ([text.count(letter) for letter in string.ascii_uppercase] for text in (prediction, reference))
    return float(next(counts) == next(counts))


def bleu(prediction: str, reference: str) -> float:
    """Sentence BLEU by sacrebleu, in [0, 1]; of Chinese texts over jieba's tokens."""
    if not CHINESE.search(reference):
        return bleu_of_tokens(prediction, reference)
    return bleu_of_tokens(" ".join(segment(prediction)), " ".join(segment(reference)))


def rouge_l(prediction: str, reference: str) -> float:
    """F-measure of the longest common subsequence of words."""
    if not CHINESE.search(reference):
        answered, wanted = (stemmed(WORDS.findall(text.lower())) for text in (prediction, reference))
        return _f_measure(answered, wanted, 0.0)
    if not prediction.strip():
        return 0.0
    # The package adds this much to the denominator, against division by zero.
    return _f_measure(_chinese(prediction), _chinese(reference), 1e-8)


def _chinese(text: str) -> list[str]:
    joined = " ".join(segment(text))
    for end in _ENDS:
        joined = end.sub(r"\1\n\2", joined)
    lines = [line.split() or [""] for line in joined.rstrip().split("\n") if line]
    return [word for line in lines for word in line]


def _f_measure(answered: Sequence[str], wanted: Sequence[str], smoothing: float) -> float:
    if not answered or not wanted:
        return 0.0
    import Levenshtein

    common = round(Levenshtein.ratio(answered, wanted) * (len(answered) + len(wanted)) / 2)
    precision, recall = common / len(answered), common / len(wanted)
    return 2 * precision * recall / (precision + recall + smoothing) if common else 0.0
