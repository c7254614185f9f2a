"""What `exact_match` and `contains` cost for one answer of 100 kB: CPU ms, the least of seven, nothing remembered.

`python perf/long_texts.py` prints a row for each script.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from evalsuite.metrics.text import contains, exact_match, normalise_answer

if TYPE_CHECKING:
    from collections.abc import Callable

BYTES = 100_000
TEXTS = {
    "English": "The answer, as far as we know, is 42. ",
    "French": "La réponse à cette question, déjà posée, est là. ",
    "Russian": "Ответ, насколько нам известно, сорок два. ",
    "Chinese": "答案是四十二。北京是中国的首都，",
    "Korean": "우리가 아는 한, 답은 사십이 입니다. ",
    "Turkish": "İstanbul'da ışık, ılık ve güneşli. ",
    "emoji": "😀 ok 👍🏽 fine ",
    "combining accents": "re\u0301ponse a\u0300 co\u0302te\u0301 ",
}


def least(call: Callable[[], object]) -> float:
    """CPU milliseconds."""
    seconds = []
    for _ in range(7):
        normalise_answer.cache_clear()
        began = time.thread_time()
        call()
        seconds.append(time.thread_time() - began)
    return 1000 * min(seconds)


def main() -> None:
    """Prints the table."""
    print("| text | exact_match | contains, not there | contains, there |\n|---|--:|--:|--:|")
    for name, piece in TEXTS.items():
        text = (piece * (BYTES // len(piece.encode()) + 1)).encode()[:BYTES].decode("utf-8", "ignore")
        calls = (
            lambda text=text: exact_match(text, "forty-two"),
            lambda text=text, piece=piece: contains(text, f"zz {piece}"),
            lambda text=text, piece=piece: contains(text, piece),
        )
        print(f"| {name} | {' | '.join(f'{least(call):.1f}' for call in calls)} |")


if __name__ == "__main__":
    main()
