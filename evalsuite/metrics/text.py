"""Text against text: exact match, containment, token F1, ROUGE-L, BLEU.

Every metric compares a prediction with one target or several and returns the best over them, in [0, 1].
Two texts of which one is empty (blank) score 0.0, two empty ones 1.0. Where no target is given at all there
is nothing to compare with: that is a ValueError, not a score.
"""

from __future__ import annotations

import re
import string
import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from typing import Any

from evalsuite.metrics.words import HAN, alphanumeric_words, cut, plain, segmenter_version

Targets = str | int | float | Sequence[str | int | float]
ARTICLES = re.compile(r"\b(a|an|the)\b")


def exact_match(prediction: str, targets: Targets) -> float:
    """1.0 where the normalised prediction is a normalised target, else 0.0.

    Source: the evaluation script of SQuAD v1.1 (Rajpurkar et al. 2016); see `normalise` for how it is
    carried over to other scripts.

    Raises:
        ValueError: there is no target.
    """
    return _best(lambda one, other: float(normalise(one) == normalise(other)), prediction, targets)


def contains(prediction: str, targets: Targets) -> float:
    """1.0 where a normalised target stands in the normalised prediction as whole words, else 0.0.

    Chinese has no spaces: there any place will do. Not for the letters of a multiple choice: within a
    sentence, A is an article.

    Raises:
        ValueError: there is no target.
    """
    return _best(lambda one, other: float(f" {_spaced(other)} " in f" {_spaced(one)} "), prediction, targets)


def token_f1(prediction: str, targets: Targets) -> float:
    """Harmonic mean of precision and recall over the bags of words of the normalised texts.

    Source: the evaluation script of SQuAD v1.1. Chinese texts are cut into words by jieba.

    Raises:
        ValueError: there is no target.
        ScoringError: a text is Chinese and jieba is not installed.
    """
    return _best(_token_f1, prediction, targets)


def rouge_l(prediction: str, targets: Targets, *, stem: bool = True) -> float:
    """F-measure of the longest common subsequence of words.

    Source: Lin 2004, section 3.1, as computed by the package rouge-score, with its Porter stemmer or without. That
    package drops every letter outside a-z; here words of all scripts count (only a-z words are stemmed),
    and Chinese texts are cut by jieba. On ASCII texts the values are the package's own.

    Raises:
        ValueError: there is no target.
        ScoringError: a text is Chinese and jieba is not installed.
    """
    return _best(_rouge_l if stem else _rouge_l_unstemmed, prediction, targets)


def bleu(prediction: str, targets: Targets) -> float:
    """Sentence BLEU with one reference, case kept: sacrebleu's value divided by 100.

    Source: Post 2018 (sacrebleu); exponential smoothing, effective order (a text of two words is judged on
    one- and two-grams), tokenizer 13a; `bleu_signature` prints it. Chinese texts are first cut by jieba.

    Raises:
        ValueError: there is no target.
        ScoringError: a text is Chinese and jieba is not installed.
    """
    return _best(_bleu, prediction, targets)


def bleu_signature(*, chinese: bool = False) -> str:
    """Sacrebleu's signature of how `bleu` computes, to be printed beside its values.

    Args:
        chinese: for Chinese texts, whose segmenter is then named too.
    """
    _sacrebleu().sentence_score("a", ["a"])  # the signature knows the number of references only after use
    signature = _sacrebleu().get_signature().format()
    return f"{signature}|words:jieba-{segmenter_version()}" if chinese else signature


@lru_cache(maxsize=16)
def normalise(text: str) -> str:
    """Lower case without punctuation and articles, words one space apart, as SQuAD v1.1 does it.

    Beyond ASCII: accents are composed (NFC) and kept, full-width forms become ASCII, and punctuation is
    string.punctuation and all of Unicode's categories P. Unlike SQuAD's, a text never vanishes: where
    nothing would be left (the answers "A" and "?"), articles stay, and then punctuation too.
    """
    lower = plain(text).lower()
    words = _without_punctuation(lower)
    for candidate in (_without_articles(words), words, lower):
        if found := " ".join(candidate.split()):
            return found
    return ""


def _without_punctuation(text: str) -> str:
    punctuation = [char for char in set(text) if _is_punctuation(char)]
    if len(punctuation) > 32:
        return "".join(char for char in text if not _is_punctuation(char))
    # Each costs a pass in C, which for a long text beats a look at every character by a hundred times.
    for char in punctuation:
        text = text.replace(char, "")
    return text


def _without_articles(text: str) -> str:
    words = text.split()
    if not "".join(words).isalnum():
        return ARTICLES.sub(" ", text)
    # Where only spaces are between words, none needs to be looked for within one.
    return " ".join(word for word in words if word not in {"a", "an", "the"})


def as_texts(targets: Targets) -> list[str]:
    """The targets as a list of texts; a whole float is written without its point (42.0 as "42").

    Raises:
        ValueError: there is no target.
    """
    several = [targets] if isinstance(targets, (str, int, float)) else list(targets)
    if not several:
        raise ValueError("there is no target to compare the prediction with")
    return [_as_text(target) for target in several]


def _as_text(target: str | float) -> str:
    whole = isinstance(target, float) and target.is_integer()
    return str(int(target)) if whole else str(target)


def _best(metric: Callable[[str, str], float], prediction: str, targets: Targets) -> float:
    return max(_unless_empty(metric, prediction, target) for target in as_texts(targets))


def _unless_empty(metric: Callable[[str, str], float], prediction: str, target: str) -> float:
    if not prediction.strip() or not target.strip():
        return float(prediction.strip() == target.strip())
    return metric(prediction, target)


def _is_punctuation(char: str) -> bool:
    return char in string.punctuation or unicodedata.category(char).startswith("P")


def _spaced(text: str) -> str:
    plain_words = normalise(text)
    return plain_words if plain_words.isascii() else " ".join(HAN.sub(r" \g<0> ", plain_words).split())


def _token_f1(prediction: str, target: str) -> float:
    said, wanted = (
        [word for part in normalise(text).split() for word in cut(part)] for text in (prediction, target)
    )
    same = sum((Counter(said) & Counter(wanted)).values())
    return 2 * same / (len(said) + len(wanted))


def _rouge_l(prediction: str, target: str) -> float:
    return _common_subsequence_f1(prediction, target, stemmed)


def _rouge_l_unstemmed(prediction: str, target: str) -> float:
    return _common_subsequence_f1(prediction, target, list)


def _common_subsequence_f1(prediction: str, target: str, form: Callable[[Sequence[str]], list[str]]) -> float:
    predicted, wanted = alphanumeric_words(prediction), alphanumeric_words(target)
    if not predicted or not wanted:
        return float(normalise(prediction) == normalise(target))
    import Levenshtein

    # Bit-parallel: rouge-score's own table takes seconds for answers of some thousand words. The ratio is
    # twice the length of the longest common subsequence over both lengths.
    ratio = Levenshtein.ratio(form(predicted), form(wanted))
    common = round(ratio * (len(predicted) + len(wanted)) / 2)
    precision, recall = common / len(predicted), common / len(wanted)
    return 2 * precision * recall / (precision + recall) if common else 0.0


def _bleu(prediction: str, target: str) -> float:
    said, wanted = (" ".join(cut(text)) for text in (prediction, target))
    return bleu_of_tokens(said, wanted)


def bleu_of_tokens(prediction: str, target: str) -> float:
    """Sentence BLEU in [0, 1] of texts as they stand; no text is cut into Chinese words here."""
    # sacrebleu sums logarithms: a perfect match comes out a rounding error above 100.
    return min(1.0, float(_sacrebleu().sentence_score(prediction, [target]).score) / 100)


@cache
def _stemmer() -> Callable[[str], str]:
    from nltk.stem.porter import PorterStemmer

    stem: Callable[[str], str] = PorterStemmer().stem
    return lru_cache(maxsize=65_536)(stem)


def stemmed(words: Sequence[str]) -> list[str]:
    """As rouge-score stems: only words of more than three letters, here only those of ASCII."""
    stem = _stemmer()
    return [stem(word) if len(word) > 3 and word.isascii() else word for word in words]


@cache
def _sacrebleu() -> Any:
    from sacrebleu.metrics.bleu import BLEU

    return BLEU(effective_order=True)
