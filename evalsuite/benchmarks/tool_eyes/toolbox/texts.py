"""Tools that generate, measure and check texts (scenarios TG and DU)."""

import operator
import re
import string
import uuid
from collections import Counter
from datetime import timedelta
from typing import Literal

from evalsuite.benchmarks.tool_eyes.toolbox.numbers import Subject, read_date, require_length, require_range
from evalsuite.tools import tool

_NOUNS = ("kettle", "lantern", "orchard", "ferry", "ladder", "button", "harbour", "violin", "pebble", "tram")
_VERBS = ("follows", "carries", "finds", "paints", "meets", "counts", "hides", "repairs")
_ADJECTIVES = ("quiet", "yellow", "heavy", "early", "narrow", "friendly", "distant", "small")
_FIRST = ("Ada", "Bruno", "Chiara", "Dmitri", "Elif", "Farid", "Greta", "Hugo", "Ines", "Jonas")
_LAST = ("Alder", "Brook", "Cairn", "Dale", "Ebb", "Fenn", "Grove", "Heath", "Isle", "Knoll")


class Placeholders(Subject):
    """Placeholder sentences, fictional people and simple changes of texts; random draws are seeded with the query."""

    @tool
    def placeholder_sentences(self, count: int = 1) -> list[str]:
        """Makes meaningless sentences to fill a layout with.

        Args:
            count: how many, 1 to 20.
        """
        pick, sentences = self.random.choice, []
        for _ in range(require_range("count", count, 1, 20)):
            subject, verb, noun = pick(_NOUNS), pick(_VERBS), pick(_NOUNS)
            sentences.append(f"The {pick(_ADJECTIVES)} {subject} {verb} a {pick(_ADJECTIVES)} {noun}.")
        return sentences

    @tool
    def fictional_people(self, count: int = 1) -> list[dict[str, str]]:
        """Makes up people with a name, a job and an e-mail address at example.com.

        Args:
            count: how many, 1 to 20.
        """
        people = []
        for _ in range(require_range("count", count, 1, 20)):
            first, last = self.random.choice(_FIRST), self.random.choice(_LAST)
            job = self.random.choice(("baker", "pilot", "tailor", "nurse", "surveyor"))
            people.append({"name": f"{first} {last}", "job": job, "email": f"{first}.{last}@example.com".lower()})
        return people

    @tool
    def change_case(self, text: str, style: Literal["upper", "lower", "title", "snake"]) -> str:
        """Rewrites a text in another letter case.

        Args:
            text: the text.
            style: upper, lower, title, or snake for lower_case_with_underscores.
        """
        require_length("text", text)
        if style == "snake":
            return "_".join(text.lower().split())
        return {"upper": text.upper, "lower": text.lower, "title": text.title}[style]()

    @tool
    def reverse_text(self, text: str) -> str:
        """Writes a text backwards.

        Args:
            text: the text.
        """
        return require_length("text", text)[::-1]


_ALPHABETS = {
    "letters": string.ascii_letters,
    "digits": string.digits,
    "letters_and_digits": string.ascii_letters + string.digits,
}


class RandomData(Subject):
    """Random numbers, strings and choices, seeded with the query so that every run draws the same."""

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
        require_range("low", low, -(10**12), 10**12)
        require_range("high", high, -(10**12), 10**12)
        return [self.random.randint(low, high) for _ in range(require_range("count", count, 1, 100))]

    @tool
    def random_string(
        self, length: int, alphabet: Literal["letters", "digits", "letters_and_digits"] = "letters"
    ) -> str:
        """Makes a random string.

        Args:
            length: number of characters, 1 to 200.
            alphabet: what it is made of.
        """
        return "".join(self.random.choices(_ALPHABETS[alphabet], k=require_range("length", length, 1, 200)))

    @tool
    def random_uuids(self, count: int = 1) -> list[str]:
        """Makes random UUIDs of version 4.

        Args:
            count: how many, 1 to 100.
        """
        numbers = [self.random.getrandbits(128) for _ in range(require_range("count", count, 1, 100))]
        return [str(uuid.UUID(int=number, version=4)) for number in numbers]

    @tool
    def pick(self, options: list[str], count: int = 1) -> list[str]:
        """Picks from a list at random, none twice.

        Args:
            options: what to pick from, at most 1000.
            count: how many to pick.
        """
        require_range("the number of options", len(options), 1, 1000)
        return self.random.sample(options, require_range("count", count, 1, len(options)))

    @tool
    def random_date(self, first: str, last: str) -> str:
        """Draws a random date.

        Args:
            first: earliest possible date, as YYYY-MM-DD.
            last: latest possible date, as YYYY-MM-DD.
        """
        begin, end = read_date(require_length("first", first, 30)), read_date(require_length("last", last, 30))
        if begin > end:
            raise ValueError("first must not be later than last")
        return (begin + timedelta(days=self.random.randint(0, (end - begin).days))).isoformat()


_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)?")


class TextAnalysis(Subject):
    """Measures and compares texts."""

    @tool
    def text_similarity(self, first: str, second: str, method: Literal["characters", "words"]) -> float:
        """Says how similar two texts are, from 0 (nothing in common) to 1 (equal).

        Args:
            first: one text.
            second: the other text.
            method: characters for 1 - edit distance / longer length, words for shared / all distinct words.
        """
        require_length("first", first, 2000)
        require_length("second", second, 2000)
        if method == "words":
            one, other = set(_split_into_words(first)), set(_split_into_words(second))
            return round(len(one & other) / len(one | other), 4) if one | other else 1.0
        from Levenshtein import distance

        longer = max(len(first), len(second))
        return round(1 - distance(first, second) / longer, 4) if longer else 1.0

    @tool
    def count_text(self, text: str) -> dict[str, int]:
        """Counts the characters, words and sentences of a text.

        Args:
            text: the text.
        """
        sentences = [part for part in re.split(r"[.!?]+", require_length("text", text)) if part.strip()]
        return {"characters": len(text), "words": len(_split_into_words(text)), "sentences": len(sentences)}

    @tool
    def frequent_words(self, text: str, count: int = 3) -> dict[str, int]:
        """Finds the most frequent words of a text, with how often they occur.

        Args:
            text: the text.
            count: how many words, 1 to 50.
        """
        counts = Counter(_split_into_words(require_length("text", text)))
        ranked = sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))
        return dict(ranked[: require_range("count", count, 1, 50)])

    @tool
    def find_differences(self, first: str, second: str) -> dict[str, list[str]]:
        """Lists the words that only one of two texts has.

        Args:
            first: one text.
            second: the other text.
        """
        words = set(_split_into_words(require_length("first", first)))
        others = set(_split_into_words(require_length("second", second)))
        return {"only_first": sorted(words - others), "only_second": sorted(others - words)}


def _split_into_words(text: str) -> list[str]:
    return _WORD.findall(text.lower())


_EMAIL = re.compile(r"[A-Za-z0-9._%+-]{1,64}@(?:[A-Za-z0-9-]{1,63}\.){1,8}[A-Za-z]{2,63}")


class Validation(Subject):
    """Checks numbers, dates and addresses."""

    @tool
    def validate_email(self, address: str) -> dict[str, bool | str]:
        """Checks whether a text is written like an e-mail address. Does not ask whether it exists.

        Args:
            address: the address.
        """
        return {"address": address, "valid": bool(_EMAIL.fullmatch(require_length("address", address, 300)))}

    @tool
    def validate_card_number(self, number: str) -> dict[str, bool | str]:
        """Checks the last digit of a payment card number with the Luhn algorithm.

        Args:
            number: 12 to 19 digits, spaces allowed.
        """
        digits = require_length("number", number, 40).replace(" ", "")
        proper = digits.isascii() and digits.isdigit() and 12 <= len(digits) <= 19
        return {"number": number, "valid": proper and compute_luhn_sum(digits) == 0}

    @tool
    def validate_isbn(self, isbn: str) -> dict[str, bool | str]:
        """Checks the last digit of an ISBN with 10 or 13 digits.

        Args:
            isbn: the number, with or without hyphens.
        """
        plain = require_length("isbn", isbn, 40).replace("-", "").replace(" ", "").upper()
        if not re.fullmatch(r"[0-9]{9}[0-9X]|[0-9]{13}", plain):
            return {"isbn": isbn, "valid": False}
        values = [10 if digit == "X" else int(digit) for digit in plain]
        if len(plain) == 13:
            return {"isbn": isbn, "valid": (sum(values[::2]) + 3 * sum(values[1::2])) % 10 == 0}
        return {"isbn": isbn, "valid": sum(map(operator.mul, values, range(10, 0, -1))) % 11 == 0}

    @tool
    def validate_date(self, text: str) -> dict[str, bool | str]:
        """Checks whether a day exists in the calendar.

        Args:
            text: the date, as YYYY-MM-DD.
        """
        require_length("text", text, 30)
        try:
            read_date(text)
        except ValueError:
            return {"text": text, "valid": False}
        return {"text": text, "valid": True}


def compute_luhn_sum(digits: str) -> int:
    """Compute the Luhn sum modulo 10: double every second digit from the right, then add all digits."""
    values = [int(digit) for digit in reversed(digits)]
    return (sum(values[::2]) + sum(sum(divmod(2 * value, 10)) for value in values[1::2])) % 10
