"""The released H-Score against a straightforward implementation of it, on real tables.

    python perf/h_score.py DIR

Each HTML file of the folder is scored against a lightly corrupted copy of itself by both implementations, whose parts
must agree to 1e-9. The exit status is 1 where they do not, or where the fast one takes more than a fifth
of the time. Times are CPU seconds, the least of three rounds.
"""

from __future__ import annotations

import random
import re
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import h_score_plain as plain

from evalsuite.metrics.tables import HScore, h_score

if TYPE_CHECKING:
    from collections.abc import Callable

LIMIT = 0.2
Pairs = list[tuple[str, str]]


def corrupted(markup: str, seed: str) -> str:
    """A copy in which 5 % of the texts and 2 % of the cell tags differ."""
    dice = random.Random(seed)
    changed = re.sub(r">([^<>\n]+)<", lambda text: f">{'x' if dice.random() < 0.05 else ''}{text[1]}<", markup)
    return re.sub("<td>", lambda _: "<th>" if dice.random() < 0.02 else "<td>", changed)


def seconds(work: Callable[[], object]) -> float:
    rounds = []
    for _ in range(3):
        start = time.process_time()
        work()
        rounds.append(time.process_time() - start)
    return min(rounds)


def released(prediction: str, reference: str) -> HScore:
    return h_score(prediction, reference, format="html")


def disagreements(pairs: Pairs) -> int:
    wrong = 0
    for prediction, reference in pairs:
        fast, slow = released(prediction, reference).parts, plain.html(prediction, reference)
        wrong += any(abs(fast[name] - slow[name]) > 1e-9 for name in slow)
    return wrong


def main(folder: Path) -> int:
    tables = {path.name: path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.html"))}
    pairs = [(corrupted(markup, name), markup) for name, markup in tables.items()]
    if not pairs:
        print(f"{folder}: found no .html file, expected a folder of HTML tables")
        return 2
    wrong = disagreements(pairs)
    slow = seconds(lambda: [plain.html(*pair) for pair in pairs])
    fast = seconds(lambda: [released(*pair) for pair in pairs])
    print(f"{len(pairs)} pairs, {sum(map(len, tables.values())):,} characters of reference")
    print(f"straightforward  {slow:.3f} s")
    print(f"released         {fast:.3f} s, {fast / slow:.0%} of it; {wrong} pairs disagree")
    return int(wrong > 0 or fast > LIMIT * slow)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1] if len(sys.argv) > 1 else ".")))
