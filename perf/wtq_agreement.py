"""Compare `denotation` with WikiTableQuestions' evaluator on pairs drawn at random.

Run `python perf/wtq_agreement.py SEED`. The rules are those that the evaluator's documentation states (P. Pasupat,
version 1.0.2), written anew here. A target's item is its raw text and the number or date that it stands for, as the
tagged files of the data set give it.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from collections import Counter
from random import Random
from typing import TYPE_CHECKING, NamedTuple

from evalsuite.metrics.denotation import denotation_match

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

PAIRS = 1000
WORDS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
ASCII = str.maketrans({**dict.fromkeys("‘’´`", "'"), **dict.fromkeys("“”", '"'), **dict.fromkeys("‐‑‒–—−", "-")})
MONTHS = ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November"]


class Item(NamedTuple):
    """A value of a right answer."""

    raw: str
    canon: str = ""  # The number or date that the text stands for; empty for text.


def normalize(text: str) -> str:
    """Rule 1: the parts of a text that do not count are removed."""
    text = "".join(sign for sign in unicodedata.normalize("NFKD", text) if unicodedata.category(sign) != "Mn")
    text, before = text.translate(ASCII).strip(), None
    while text != before:
        before = text
        text = re.sub(r"(?:[•♦†‡*#+]|\[\d+\]|(?<!^)\[[^\]]*\])+$", "", text).strip()
        text = re.sub(r"(?<!^)(?: \([^)]*\))+$", "", text).strip()
        if len(text) > 1 and text[0] == text[-1] == '"' and text.count('"') == 2:
            text = text[1:-1].strip()
    return " ".join(text.removesuffix(".").split()).lower()


def parse(text: str) -> float | tuple[int | None, ...] | None:
    """Rules 2 and 3: read a number, or a date as year, month and day; a year alone is a number."""
    try:
        number = float(text)
    except ValueError:
        pass
    else:
        return number if abs(number) < float("inf") else None
    match = re.fullmatch(r"(\d+|xx|xxxx)-(\d+|xx)-(\d+|xx)", text.lower())
    if not match or set(match.groups()) <= {"xx", "xxxx"}:
        return None
    year, month, day = (None if part.startswith("xx") else int(part) for part in match.groups())
    if month is day is None:
        return float(year or 0)
    return (year, month, day) if (month or 1) in range(1, 13) and (day or 1) in range(1, 32) else None


def matches(item: Item, given: str) -> bool:
    """Tell whether an item of the target matches one of the prediction."""
    if normalize(item.raw) == normalize(given):
        return True
    wanted, value = parse(item.canon or item.raw), parse(given)
    if isinstance(wanted, float) and isinstance(value, float):
        return abs(wanted - value) < 1e-6
    return wanted is not None and wanted == value


def accepts(target: Sequence[Item], given: Sequence[str]) -> bool:
    """Tell whether the evaluator accepts a prediction: as many different values, and one for each of the target."""
    wanted = {parse(item.canon or item.raw) or normalize(item.raw) for item in target}
    several = len({parse(text) or normalize(text) for text in given}) == len(wanted)
    return several and all(any(matches(item, text) for text in given) for item in target)


def draw_item(random: Random, kind: str) -> Item:
    """Draw a value as the data set's tables have it."""
    if kind == "number" and random.random() < 0.1:
        small = random.randrange(1, 11)
        return Item(random.choice([WORDS[small], f"{small}th"]), str(float(small)))
    if kind == "number":
        number: float = random.choice([random.randrange(3000), random.randrange(10**7), random.randrange(10**6) / 100])
        unit = random.choice(["", "", "", " km", "%", " points", " million"])
        sign = "" if unit else random.choice(["", "", "", "$", "-"])
        canon = (-1 if sign == "-" else 1) * number * (10**6 if unit == " million" else 1)
        return Item(f"{sign}{number:,}{unit}" if random.random() < 0.6 else f"{sign}{number}{unit}", str(float(canon)))
    if kind == "date":
        year, month, day = random.randint(1800, 2024), random.randrange(11), random.randint(1, 28)
        named = MONTHS[month]
        return random.choice([
            Item(f"{named} {day}, {year}", f"{year}-{month + 1:02}-{day:02}"),
            Item(f"{day} {named} {year}", f"{year}-{month + 1:02}-{day:02}"),
            Item(f"{named} {day}", f"xx-{month + 1:02}-{day:02}"),
            Item(f"{named} {year}", f"{year}-{month + 1:02}-xx"),
            Item(f"{year}", f"{float(year)}"),
        ])  # fmt: skip
    words = ["".join(random.choice("aeiouéüçklmnrst") for _ in range(random.randint(2, 8))) for _ in range(3)]
    name = random.choice([" ", "-", "–", "’"]).join(words[: random.randint(1, 3)]).title()
    return Item(name + random.choice(["", "", "", " (Norway)", " [2]", "†", ".", " (1) [a]"]))


def to_ascii(text: str) -> str:
    """Remove accents."""
    return "".join(sign for sign in unicodedata.normalize("NFKD", text) if not unicodedata.combining(sign))


def shift(random: Random, canon: str) -> str:
    """Write another number or date."""
    if isinstance(parse(canon), float):
        return str(float(canon) + random.choice([1, -1, 0.01, 1000]))
    return re.sub(r"\d+", lambda number: f"{int(number[0]) % 9 + 1:02}", canon)


VARIANTS: dict[str, Callable[[Random, Item], str]] = {
    "same": lambda _, item: item.raw,
    "plain": lambda _, item: to_ascii(item.raw),
    "case": lambda random, item: random.choice([item.raw.upper(), item.raw.lower()]),
    "marks": lambda random, item: item.raw + random.choice(["*", "[12]", "[note]", " (detail)", ".", "‡", " (a) [b]"]),
    "quotes": lambda random, item: random.choice([f'"{item.raw}"', f"“{item.raw}”", f"  {item.raw} "]),
    "dashes": lambda _, item: item.raw.replace("-", "–").replace("'", "’"),
    "canonical": lambda _, item: item.canon or item.raw,
    "short": lambda _, item: re.sub(r"\.0$", "", item.canon).replace("xx-", "xxxx-", 1) or item.raw,
    "shifted": lambda random, item: shift(random, item.canon) or item.raw,
    "other": lambda random, item: random.choice(
        [f"{item.raw}x", f"the {item.raw}", f"{item.raw} and more", item.raw[1:] or "?", "", "(none) x"]
    ),
}
WAYS = [*VARIANTS, "reversed", "shuffled", "dropped", "added", "repeated"]


def draw_pairs(seed: int, pairs: int = PAIRS) -> Iterator[tuple[str, list[Item], list[str]]]:
    """Yield pairs of a target and a prediction, each with the way in which the prediction was made."""
    random = Random(seed)
    for at in range(pairs):
        kind, way = random.choice(["number", "date", "name"]), WAYS[at % len(WAYS)]
        target = [draw_item(random, kind) for _ in range(random.choice([1, 1, 2, 3, 5]))]
        given = [VARIANTS.get(way, VARIANTS["same"])(random, item) for item in target]
        if way in ("reversed", "shuffled"):
            given = given[::-1] if way == "reversed" else random.sample(given, len(given))
        elif way == "dropped":
            given = given[1:] or [""]
        elif way in ("added", "repeated"):
            given.append(draw_item(random, kind).raw if way == "added" else given[0])
        yield way, target, given


def compare(seed: int) -> dict[tuple[str, bool, bool], list[tuple[list[Item], list[str]]]]:
    """Group the pairs by way, the evaluator's verdict, and that of `denotation`, which reads the values as lines."""
    groups: dict[tuple[str, bool, bool], list[tuple[list[Item], list[str]]]] = {}
    for way, target, given in draw_pairs(seed):
        ours = denotation_match("\n".join(given), [item.raw for item in target], distinct=True) == 1.0
        groups.setdefault((way, accepts(target, given), ours), []).append((target, given))
    return groups


def main() -> None:
    """Print the share of equal verdicts, and each kind of disagreement with an example."""
    groups = compare(int(sys.argv[1]))
    sizes = {key: len(pairs) for key, pairs in groups.items()}
    verdicts: Counter[tuple[bool, bool]] = Counter()
    for (_, theirs, ours), size in sizes.items():
        verdicts[theirs, ours] += size
    print(f"{sum(sizes.values())} pairs, both accept {verdicts[True, True]}, both reject {verdicts[False, False]}")
    print(f"only the evaluator accepts {verdicts[True, False]}, only denotation accepts {verdicts[False, True]}")
    for (way, theirs, ours), pairs in sorted(groups.items()):
        if theirs != ours:
            target, given = pairs[0]
            print(f"  {way}: {len(pairs)}, only {'the evaluator' if theirs else 'denotation'}: {target} {given}")


if __name__ == "__main__":
    main()
