"""Words: how a text is cut into them, in scripts with and without spaces between words."""

from __future__ import annotations

import re
import unicodedata
import warnings
from functools import cache
from typing import TYPE_CHECKING, Any

from evalsuite.core.errors import ScoringError

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

# Full-width forms, as Chinese and Japanese keyboards type them, and their ASCII twins. Not NFKC: it would
# also make 10² and 102 the same text.
FULL_WIDTH = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)} | {0x3000: 0x20}
WIDE = frozenset(map(chr, FULL_WIDTH))
HAN = re.compile(r"[\u3005\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003134f]")

AT_ONCE = 2000  # characters: jieba's time on unknown words grows with the square of their number


def plain(text: str, alphabet: AbstractSet[str] | None = None) -> str:
    """The text with composed accents (NFC) and full-width forms as ASCII.

    Args:
        text: any.
        alphabet: its characters, where they are known already.
    """
    if text.isascii():
        return text
    # A pass in C for each, which for long texts beats a table that is asked about every character.
    for wide in WIDE & (set(text) if alphabet is None else alphabet):
        text = text.replace(wide, chr(FULL_WIDTH[ord(wide)]))
    return unicodedata.normalize("NFC", text)


def alphanumeric_words(text: str) -> list[str]:
    """Runs of letters, digits and their marks in lower case, Chinese ones cut further by jieba.

    On ASCII text these are the tokens of the rouge-score package before stemming.

    Raises:
        ScoringError: the text is Chinese and jieba is not installed.
    """
    lower = plain(text).lower()
    spaced = "".join(char if unicodedata.category(char)[0] in "LNM" else " " for char in lower)
    return [word for run in spaced.split() for word in cut(run)]


def cut(text: str) -> list[str]:
    """The words of a text that holds Han characters, by jieba; any other text is one word.

    A text of more than `AT_ONCE` characters is cut there, too.

    Raises:
        ScoringError: the text is Chinese and jieba is not installed.
    """
    if not HAN.search(text):
        return [text]
    parts = (text[start : start + AT_ONCE] for start in range(0, len(text), AT_ONCE))
    return [word for part in parts for word in _chinese().lcut(part) if word.strip()]


def segment(text: str) -> list[str]:
    """All tokens that jieba cuts a text into, whatever its script: blanks and punctuation too.

    Raises:
        ScoringError: jieba is not installed.
    """
    parts = (text[start : start + AT_ONCE] for start in range(0, len(text), AT_ONCE))
    return [token for part in parts for token in _chinese().lcut(part)]


def segmenter_version() -> str:
    """Jieba's version, which belongs to every score that it took part in.

    Raises:
        ScoringError: jieba is not installed.
    """
    _chinese()
    from importlib.metadata import version

    return version("jieba")


@cache
def _chinese() -> Any:
    try:
        with warnings.catch_warnings():
            # The package's own source has invalid escapes, which warn wherever it is compiled anew.
            warnings.simplefilter("ignore")
            import jieba
    except ImportError as error:
        raise ScoringError(
            "a Chinese text cannot be cut into words: jieba is not installed; "
            "install it with: pip install 'evalsuite[zh]'"
        ) from error
    segmenter = jieba.Tokenizer()
    # Straight from its dictionary: the usual way goes through a cache file at a place known to everybody.
    segmenter.FREQ, segmenter.total = segmenter.gen_pfdict(segmenter.get_dict_file())
    segmenter.initialized = True
    return segmenter
