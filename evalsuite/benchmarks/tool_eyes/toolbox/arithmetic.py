"""AM: a calculator that reads expressions itself, and never hands them to Python."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Literal

from evalsuite.benchmarks.tool_eyes.toolbox.limits import bounded, short
from evalsuite.tools import tool

if TYPE_CHECKING:
    from collections.abc import Callable

    from evalsuite.core.types import Sample

_Number = int | float
_TOKEN = re.compile(r"\s*(?:([0-9]+\.?[0-9]*|\.[0-9]+)|([a-z]+)|(\*\*|//|[-+*/%^()]))")
_LARGEST = 10**60
_FUNCTIONS: dict[str, Callable[[_Number], _Number]] = {"sqrt": math.sqrt, "abs": abs, "round": round}
_UNITS = {
    "m": ("length", 1.0), "km": ("length", 1000.0), "cm": ("length", 0.01), "mile": ("length", 1609.344),
    "foot": ("length", 0.3048), "inch": ("length", 0.0254),
    "g": ("mass", 1.0), "kg": ("mass", 1000.0), "pound": ("mass", 453.59237), "ounce": ("mass", 28.349523125),
    "s": ("time", 1.0), "min": ("time", 60.0), "h": ("time", 3600.0), "day": ("time", 86400.0),
}  # fmt: skip
Unit = Literal[
    "m", "km", "cm", "mile", "foot", "inch", "g", "kg", "pound", "ounce", "s", "min", "h", "day"
]  # fmt: skip


class Arithmetic:
    """Has no state."""

    def __init__(self, sample: Sample) -> None:
        """Every subject is made with the sample, whether it needs it or not."""

    @tool
    def calculate(self, expression: str) -> _Number:
        """Works out an arithmetic expression with + - * / // % ** and brackets, sqrt, abs and round.

        Args:
            expression: for example (3 + 4) * 2.5 or sqrt(81) - 2.
        """
        return _Expression(short("expression", expression, 300).lower()).value()

    @tool
    def convert_units(self, value: float, source: Unit, target: Unit) -> float:
        """Converts a length, a mass or a time to another unit.

        Args:
            value: the number to convert.
            source: its unit.
            target: the unit wanted.
        """
        (kind, factor), (wanted, divisor) = _UNITS[source], _UNITS[target]
        if kind != wanted:
            raise ValueError(f"{source} is a unit of {kind}, {target} one of {wanted}")
        return round(value * factor / divisor, 6)

    @tool
    def prime_factors(self, number: int) -> list[int]:
        """Splits a whole number into its prime factors.

        Args:
            number: 2 to 1,000,000,000.
        """
        rest, factor, factors = bounded("number", number, 2, 10**9), 2, []
        while factor * factor <= rest:
            while rest % factor == 0:
                factors.append(factor)
                rest //= factor
            factor += 1
        return [*factors, rest] if rest > 1 else factors


class _Expression:
    """Precedence climbing: sums of products of signed powers of numbers, brackets and functions."""

    def __init__(self, text: str) -> None:
        self.tokens, at = [], 0
        while text[at:].strip():
            match = _TOKEN.match(text, at)
            if not match:
                raise ValueError(f"cannot read the expression at {text[at : at + 20].strip()!r}")
            self.tokens.append(match.group().strip().replace("^", "**"))
            at = match.end()
        self.depth = 0

    def value(self) -> _Number:
        result = self.sum()
        if self.tokens:
            raise ValueError(f"cannot read the expression at {self.tokens[0]!r}")
        return round(result, 10) if isinstance(result, float) else result

    def sum(self) -> _Number:
        result = self.product()
        while self.next_is("+", "-"):
            sign = self.tokens.pop(0)
            other = self.product()
            result = _within(result + other if sign == "+" else result - other)
        return result

    def product(self) -> _Number:
        result = self.signed()
        while self.next_is("*", "/", "//", "%"):
            sign = self.tokens.pop(0)
            other = self.signed()
            result = _within(_PRODUCTS[sign](result, other))
        return result

    def signed(self) -> _Number:
        if self.next_is("-", "+"):
            sign = self.tokens.pop(0)
            value = self.nested(self.signed)
            return -value if sign == "-" else value
        return self.power()

    def power(self) -> _Number:
        base = self.atom()
        if not self.next_is("**"):
            return base
        self.tokens.pop(0)
        exponent = self.nested(self.signed)
        if abs(exponent) > 1000 or (abs(base) > 1 and exponent * math.log10(abs(base)) > 60):
            raise ValueError("the power is too large")
        result = base**exponent
        if isinstance(result, complex):
            raise ValueError("a fractional power of a negative number is no real number")  # noqa: TRY004 - a value
        return _within(result)

    def atom(self) -> _Number:
        if not self.tokens:
            raise ValueError("the expression ends too early")
        read = self.tokens.pop(0)
        if read[0].isdigit() or read[0] == ".":
            return _within(float(read) if "." in read else int(read))
        if read in _FUNCTIONS and self.next_is("("):
            return _FUNCTIONS[read](self.atom())
        if read != "(":
            raise ValueError(f"cannot read the expression at {read!r}")
        result = self.nested(self.sum)
        if not self.next_is(")"):
            raise ValueError("a closing bracket is missing")
        self.tokens.pop(0)
        return result

    def next_is(self, *signs: str) -> bool:
        return bool(self.tokens) and self.tokens[0] in signs

    def nested(self, read: Callable[[], _Number]) -> _Number:
        self.depth += 1
        if self.depth > 50:
            raise ValueError("the expression is nested too deeply")
        result = read()
        self.depth -= 1
        return result


_PRODUCTS: dict[str, Callable[[_Number, _Number], _Number]] = {
    "*": lambda left, right: left * right,
    "/": lambda left, right: left / right,
    "//": lambda left, right: left // right,
    "%": lambda left, right: left % right,
}


def _within(value: _Number) -> _Number:
    if abs(value) > _LARGEST:
        raise ValueError("a number has more than 60 digits")
    return value
