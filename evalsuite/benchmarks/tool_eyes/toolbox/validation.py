"""DU: checking whether something is written as it must be."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from evalsuite.benchmarks.tool_eyes.toolbox.limits import read_date, short
from evalsuite.tools import tool

if TYPE_CHECKING:
    from evalsuite.core.types import Sample

_EMAIL = re.compile(r"[A-Za-z0-9._%+-]{1,64}@(?:[A-Za-z0-9-]{1,63}\.){1,8}[A-Za-z]{2,63}")


class Validation:
    """Has no state."""

    def __init__(self, sample: Sample) -> None:
        """Every subject is made with the sample, whether it needs it or not."""

    @tool
    def validate_email(self, address: str) -> dict[str, bool | str]:
        """Checks whether a text is written like an e-mail address. Does not ask whether it exists.

        Args:
            address: the address.
        """
        return {"address": address, "valid": bool(_EMAIL.fullmatch(short("address", address, 300)))}

    @tool
    def validate_card_number(self, number: str) -> dict[str, bool | str]:
        """Checks the last digit of a payment card number with the Luhn algorithm.

        Args:
            number: 12 to 19 digits, spaces allowed.
        """
        digits = short("number", number, 40).replace(" ", "")
        proper = digits.isascii() and digits.isdigit() and 12 <= len(digits) <= 19
        return {"number": number, "valid": proper and luhn_sum(digits) == 0}

    @tool
    def validate_isbn(self, isbn: str) -> dict[str, bool | str]:
        """Checks the last digit of an ISBN with 10 or 13 digits.

        Args:
            isbn: the number, with or without hyphens.
        """
        plain = short("isbn", isbn, 40).replace("-", "").replace(" ", "").upper()
        return {"isbn": isbn, "valid": _isbn_13(plain) if len(plain) == 13 else _isbn_10(plain)}

    @tool
    def validate_date(self, text: str) -> dict[str, bool | str]:
        """Checks whether a day exists in the calendar.

        Args:
            text: the date, as YYYY-MM-DD.
        """
        short("text", text, 30)
        try:
            read_date(text)
        except ValueError:
            return {"text": text, "valid": False}
        return {"text": text, "valid": True}


def luhn_sum(digits: str) -> int:
    """The Luhn sum modulo 10: every second digit from the right is doubled and its digits are added."""
    values = [int(digit) for digit in reversed(digits)]
    return (sum(values[::2]) + sum(sum(divmod(2 * value, 10)) for value in values[1::2])) % 10


def _isbn_13(plain: str) -> bool:
    if not (plain.isascii() and plain.isdigit()):
        return False
    return sum(int(digit) * (3 if place % 2 else 1) for place, digit in enumerate(plain)) % 10 == 0


def _isbn_10(plain: str) -> bool:
    if not re.fullmatch(r"[0-9]{9}[0-9X]", plain):
        return False
    values = [10 if digit == "X" else int(digit) for digit in plain]
    return sum(value * weight for value, weight in zip(values, range(10, 0, -1), strict=True)) % 11 == 0
