"""TG: random numbers, strings and choices, drawn afresh but equally in every run of the same query."""

from __future__ import annotations

import random
import string
import uuid
from datetime import timedelta
from typing import TYPE_CHECKING, Literal

from evalsuite.benchmarks.tool_eyes.toolbox.limits import bounded, read_date, short
from evalsuite.tools import tool

if TYPE_CHECKING:
    from evalsuite.core.types import Sample

_ALPHABETS = {
    "letters": string.ascii_letters,
    "digits": string.digits,
    "letters_and_digits": string.ascii_letters + string.digits,
}


class RandomData:
    """Draws from a generator seeded with the query."""

    def __init__(self, sample: Sample) -> None:
        self.random = random.Random(str(sample.input))  # noqa: S311 - sample data, no secrets

    @tool
    def random_integers(self, low: int, high: int, count: int = 1) -> list[int]:
        """Draws random whole numbers.

        Args:
            low: smallest possible number.
            high: largest possible number.
            count: how many, 1 to 100.
        """
        if low > high:
            raise ValueError("low must not be larger than high")
        bounded("low", low, -(10**12), 10**12)
        bounded("high", high, -(10**12), 10**12)
        return [self.random.randint(low, high) for _ in range(bounded("count", count, 1, 100))]

    @tool
    def random_string(
        self, length: int, alphabet: Literal["letters", "digits", "letters_and_digits"] = "letters"
    ) -> str:
        """Makes a random string.

        Args:
            length: number of characters, 1 to 200.
            alphabet: what it is made of.
        """
        return "".join(self.random.choices(_ALPHABETS[alphabet], k=bounded("length", length, 1, 200)))

    @tool
    def random_uuids(self, count: int = 1) -> list[str]:
        """Makes random UUIDs of version 4.

        Args:
            count: how many, 1 to 100.
        """
        numbers = [self.random.getrandbits(128) for _ in range(bounded("count", count, 1, 100))]
        return [str(uuid.UUID(int=number, version=4)) for number in numbers]

    @tool
    def pick(self, options: list[str], count: int = 1) -> list[str]:
        """Picks from a list at random, none twice.

        Args:
            options: what to pick from, at most 1000.
            count: how many to pick.
        """
        bounded("the number of options", len(options), 1, 1000)
        return self.random.sample(options, bounded("count", count, 1, len(options)))

    @tool
    def random_date(self, first: str, last: str) -> str:
        """Draws a random date.

        Args:
            first: earliest possible date, as YYYY-MM-DD.
            last: latest possible date, as YYYY-MM-DD.
        """
        begin, end = read_date(short("first", first, 30)), read_date(short("last", last, 30))
        if begin > end:
            raise ValueError("first must not be later than last")
        return (begin + timedelta(days=self.random.randint(0, (end - begin).days))).isoformat()
