"""Compare texts: exact match, containment, token F1, ROUGE-L, BLEU.

Every metric compares a prediction with one or several targets and returns the best result, in [0, 1]. Two blank texts
score 1.0; a blank text and another text score 0.0. Without a target, a metric raises ValueError; without jieba, it
raises ScoringError if a Chinese text must be split.
"""

import re
import string
import unicodedata
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import cache, lru_cache, partial
from itertools import pairwise
from typing import Any

from evalsuite.core.errors import ScoringError

# Full-width forms, as typed on Chinese and Japanese keyboards, with their ASCII equivalents. NFKC is not used,
# because it would also make 10² and 102 the same text.
FULL_WIDTH = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)} | {0x3000: 0x20}
WIDE = frozenset(map(chr, FULL_WIDTH))
HAN = re.compile(r"[\u3005\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003134f]")
AT_ONCE = 2000  # Maximum characters of a call to jieba, because jieba's time grows with the square of the length.


def normalise_characters(text: str) -> str:
    """Compose accents (NFC), and replace full-width forms by their ASCII equivalents."""
    if text.isascii():
        return text
    # Use `replace`, because `translate` looks up every character in the table and so is slower on long texts.
    for wide in WIDE & set(text):
        text = text.replace(wide, chr(FULL_WIDTH[ord(wide)]))
    return unicodedata.normalize("NFC", text)


def split_alphanumeric_words(text: str) -> list[str]:
    """Split a text into lower-case runs of letters, digits and their marks; jieba splits Chinese runs further.

    On ASCII text, the results are the tokens of the rouge-score package before stemming.
    """
    lower = normalise_characters(text).lower()
    spaced = "".join(char if unicodedata.category(char)[0] in "LNM" else " " for char in lower)
    return [word for run in spaced.split() for word in split_if_chinese(run)]


def split_if_chinese(text: str) -> list[str]:
    """Split a text that contains Han characters into words, by jieba; return any other text as one piece."""
    return [word for word in split_jieba_tokens(text) if word.strip()] if HAN.search(text) else [text]


def split_jieba_tokens(text: str) -> list[str]:
    """Split a text into jieba's tokens, including blanks and punctuation, in pieces of `AT_ONCE` characters."""
    parts = (text[start : start + AT_ONCE] for start in range(0, len(text), AT_ONCE))
    return [token for part in parts for token in _load_jieba().lcut(part)]


@cache
def _load_jieba() -> Any:
    try:
        with warnings.catch_warnings():
            # Invalid escapes in jieba's source cause warnings when Python compiles it.
            warnings.simplefilter("ignore")
            import jieba
    except ImportError as error:
        raise ScoringError(
            "a Chinese text cannot be cut into words: jieba is not installed; "
            "install it with: pip install 'evalsuite[zh]'"
        ) from error
    segmenter = jieba.Tokenizer()
    # Load the dictionary directly, because jieba's own way uses a cache file in a shared temporary folder.
    segmenter.FREQ, segmenter.total = segmenter.gen_pfdict(segmenter.get_dict_file())
    segmenter.initialized = True
    return segmenter


Targets = str | int | float | Sequence[str | int | float]
IN_A_WORD = rf"[^ {HAN.pattern[1:-1]}]"  # Any character except a space or a Han character.
ARTICLES = re.compile(r"\b(?:an?|the)\b")


def exact_match(prediction: str, targets: Targets) -> float:
    """Return 1.0 if the normalised prediction equals a normalised target, otherwise 0.0.

    Source: the evaluation script of SQuAD v1.1 (Rajpurkar et al. 2016); `normalise_answer` adds other writing systems
    than English.
    """
    return _score_best_target(
        lambda one, other: float(normalise_answer(one) == normalise_answer(other)), prediction, targets
    )


def contains(prediction: str, targets: Targets) -> float:
    """Return 1.0 if the normalised prediction contains a normalised target as whole words, otherwise 0.0.

    A Chinese target may be anywhere, because Chinese has no spaces. Punctuation such as commas, colons and brackets
    separates words even without a space, except between digits; an equals sign always separates them. Do not use this
    metric for multiple-choice letters, because A within a sentence is removed as an article.
    """
    return _score_best_target(lambda text, target: float(_contains_target(text, target)), prediction, targets)


def token_f1(prediction: str, targets: Targets) -> float:
    """Compute the harmonic mean of precision and recall over the bags of words of the normalised texts.

    Source: the evaluation script of SQuAD v1.1. Chinese texts are cut into words by jieba.
    """
    return _score_best_target(_compute_token_f1, prediction, targets)


def rouge_l(prediction: str, targets: Targets, *, stem: bool = True) -> float:
    """Compute the F-measure of the longest common subsequence of words.

    Source: Lin 2004, section 3.1, as computed by the package rouge-score, with or without its Porter stemmer. On ASCII
    texts the values equal rouge-score's. Unlike in rouge-score, words in all writing systems count; jieba splits
    Chinese texts.
    """
    return _score_best_target(partial(_compute_rouge_l, stem=stem_words if stem else list), prediction, targets)


def bleu(prediction: str, targets: Targets) -> float:
    """Compute sentence BLEU with one reference, case-sensitive: sacrebleu's value divided by 100.

    Source: Post 2018 (sacrebleu), with exponential smoothing, effective order (a text of two words is scored
    on one- and two-grams) and tokenizer 13a. Chinese texts are first split by jieba.
    """

    def compute_bleu_of_target(prediction: str, target: str) -> float:
        return compute_bleu_of_tokens(" ".join(split_if_chinese(prediction)), " ".join(split_if_chinese(target)))

    return _score_best_target(compute_bleu_of_target, prediction, targets)


@lru_cache(maxsize=16)
def normalise_answer(text: str) -> str:
    """Normalise a text as SQuAD v1.1 does: lower case, without punctuation and articles, words one space apart.

    Accents are composed (NFC) and kept, full-width forms become ASCII, and characters of Unicode's punctuation
    categories count as punctuation. Unlike SQuAD's script, this function never empties a text. Articles are kept if no
    other words remain (as in the answer "A"), and punctuation is kept if nothing else remains (as in "?").
    """
    lower = normalise_characters(text).lower()
    words = lower.translate(WITHOUT_PUNCTUATION)
    return " ".join(ARTICLES.sub(" ", words).split()) or " ".join(words.split()) or " ".join(lower.split())


class _PunctuationTable(dict[int, int | None]):
    """A table for `str.translate` that deletes punctuation; each character is looked up once per process."""

    def __missing__(self, code: int) -> int | None:
        char = chr(code)
        is_punctuation = char in string.punctuation or unicodedata.category(char).startswith("P")
        self[code] = None if is_punctuation else code
        return self[code]


WITHOUT_PUNCTUATION = _PunctuationTable()


def list_targets(targets: Targets) -> list[str | int | float]:
    """Return several targets, or a single one of any type (such as numpy's numbers), as a list."""
    return list(targets) if isinstance(targets, Iterable) and not isinstance(targets, str) else [targets]


def convert_targets(targets: Targets) -> list[str]:
    """Return the targets as a list of texts; a whole float is written without its decimal point (42.0 as "42")."""
    several = list_targets(targets)
    if not several:
        raise ValueError("no target to compare the prediction with")
    return [str(int(one)) if isinstance(one, float) and one.is_integer() else str(one) for one in several]


def _score_best_target(metric: Callable[[str, str], float], prediction: str, targets: Targets) -> float:
    """Return the highest score of any target; two blank texts score 1.0; a blank text and another text score 0.0."""

    def score_target(target: str) -> float:
        if not prediction.strip() or not target.strip():
            return float(prediction.strip() == target.strip())
        return metric(prediction, target)

    return max(map(score_target, convert_targets(targets)))


_SEPARATOR = re.compile(r"(?<!\d)[,;:/|!?()\[\]\u2014\u3001]|[,;:/|!?()\[\]\u2014\u3001](?!\d)|=")
"""A mark that separates words, as in "Berlin,Paris", but not digits, as in 1,234 or 10:30; "=" separates both."""


def _contains_target(prediction: str, target: str) -> bool:
    words = normalise_answer(target)
    if _contains_phrase(normalise_answer(prediction), words):
        return True
    # First search the text before separators are replaced, because a target such as AC/DC contains a separator itself.
    separated = _SEPARATOR.sub(r"\g<0> ", normalise_characters(prediction))
    return separated != prediction and _contains_phrase(normalise_answer(separated), words)


def _contains_phrase(text: str, phrase: str) -> bool:
    if text.isascii():
        return f" {phrase} " in f" {text} "
    first, pattern = _make_word_pattern(phrase)
    # Search for a target's first word first: this is fast, and excludes most targets that are not in the text.
    return first in text and pattern.search(text) is not None


@lru_cache(maxsize=256)
def _make_word_pattern(words: str) -> tuple[str, re.Pattern[str]]:
    """Return a target's first word, and a pattern for all of its words; each Han character is a separate word."""
    tokens = HAN.sub(r" \g<0> ", words).split()
    han = [HAN.match(token) is not None for token in tokens]
    between = (" ?" if one or other else " " for one, other in pairwise(han))
    parts = [re.escape(token) + gap for token, gap in zip(tokens, [*between, ""], strict=True)]
    start, end = "" if han[0] else rf"(?<!{IN_A_WORD})", "" if han[-1] else rf"(?!{IN_A_WORD})"
    return tokens[0], re.compile(start + "".join(parts) + end)


def _compute_token_f1(prediction: str, target: str) -> float:
    predicted, wanted = (
        [word for part in normalise_answer(text).split() for word in split_if_chinese(part)]
        for text in (prediction, target)
    )
    same = sum((Counter(predicted) & Counter(wanted)).values())
    return 2 * same / (len(predicted) + len(wanted))


def _compute_rouge_l(prediction: str, target: str, stem: Callable[[Sequence[str]], list[str]]) -> float:
    predicted, wanted = split_alphanumeric_words(prediction), split_alphanumeric_words(target)
    if not predicted or not wanted:
        return float(normalise_answer(prediction) == normalise_answer(target))
    import Levenshtein

    # Use the package Levenshtein, because rouge-score takes seconds for answers of some thousand words.
    # Levenshtein's ratio is twice the length of the longest common subsequence divided by the sum of both lengths.
    ratio = Levenshtein.ratio(stem(predicted), stem(wanted))
    common = round(ratio * (len(predicted) + len(wanted)) / 2)
    precision, recall = common / len(predicted), common / len(wanted)
    return 2 * precision * recall / (precision + recall) if common else 0.0


def compute_bleu_of_tokens(prediction: str, target: str) -> float:
    """Compute sentence BLEU in [0, 1] of texts whose Chinese words are already separated by spaces."""
    # sacrebleu sums logarithms, so rounding puts a perfect match slightly above 100.
    return min(1.0, float(load_sacrebleu().sentence_score(prediction, [target]).score) / 100)


@cache
def _load_stemmer() -> Callable[[str], str]:
    from nltk.stem.porter import PorterStemmer

    return lru_cache(maxsize=65_536)(PorterStemmer().stem)


def stem_words(words: Sequence[str]) -> list[str]:
    """Convert words to rouge-score's stems; only ASCII words of more than three letters change."""
    stem = _load_stemmer()
    return [stem(word) if len(word) > 3 and word.isascii() else word for word in words]


@cache
def load_sacrebleu() -> Any:
    """Load sacrebleu's BLEU for sentences; it counts the n-grams of a corpus in the same way."""
    from sacrebleu.metrics.bleu import BLEU

    return BLEU(effective_order=True)
