"""Argument checks for all tools, and tools that calculate (scenarios AM, PL and FT)."""

import json
import math
import operator
import random
import re
from collections.abc import Callable, Sequence
from datetime import date, time, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

from evalsuite.core.types import Sample
from evalsuite.tools import tool

MAX_TEXT = 20_000
_DATA = Path(__file__).parent.parent / "data"


def require_range(name: str, value: int, low: int, high: int) -> int:
    """Return the value, or raise ValueError if it is out of bounds."""
    if not low <= value <= high:
        raise ValueError(f"{name} must be between {low} and {high}")
    return value


def require_length(name: str, text: str, limit: int = MAX_TEXT) -> str:
    """Return the text, or raise ValueError if it is too long."""
    if len(text) > limit:
        raise ValueError(f"{name} must have at most {limit} characters")
    return text


def read_date(text: str) -> date:
    """Parse a date written as YYYY-MM-DD, or raise ValueError."""
    try:
        return date.fromisoformat(text.strip())
    except ValueError:
        raise ValueError(f"{text[:30]!r} is not a date; write it as YYYY-MM-DD") from None


def read_time(text: str) -> time:
    """Parse a time of day written as HH:MM, or raise ValueError."""
    try:
        hours, minutes = text.strip().split(":")
        return time(int(hours), int(minutes))
    except ValueError:
        raise ValueError(f"{text[:30]!r} is not a time of day; write it as HH:MM") from None


def read_shipped_json(name: str) -> Any:
    """Read the shipped file of this name, without its suffix."""
    return json.loads((_DATA / f"{name}.json").read_text(encoding="utf-8"))


class Subject:
    """Base class of subjects that read no data; `random` is seeded with the query, so that every run draws the same."""

    def __init__(self, sample: Sample) -> None:
        self.random = random.Random(str(sample.input))  # noqa: S311 - sample data, not secrets


_Number = int | float
_TOKEN = re.compile(r"\s*(?:([0-9]+\.?[0-9]*|\.[0-9]+)|([a-z]+)|(\*\*|//|[-+*/%^()]))")
_LARGEST = 10**60
Operators = dict[str, Callable[[_Number, _Number], _Number]]
_SUMS: Operators = {"+": operator.add, "-": operator.sub}
_PRODUCTS: Operators = {"*": operator.mul, "/": operator.truediv, "//": operator.floordiv, "%": operator.mod}
_FUNCTIONS: dict[str, Callable[[_Number], _Number]] = {"sqrt": math.sqrt, "abs": abs, "round": round}
_UNITS = {
    "m": ("length", 1.0), "km": ("length", 1000.0), "cm": ("length", 0.01), "mile": ("length", 1609.344),
    "foot": ("length", 0.3048), "inch": ("length", 0.0254),
    "g": ("mass", 1.0), "kg": ("mass", 1000.0), "pound": ("mass", 453.59237), "ounce": ("mass", 28.349523125),
    "s": ("time", 1.0), "min": ("time", 60.0), "h": ("time", 3600.0), "day": ("time", 86400.0),
}  # fmt: skip
Unit = Literal["m", "km", "cm", "mile", "foot", "inch", "g", "kg", "pound", "ounce", "s", "min", "h", "day"]


class Arithmetic(Subject):
    """A calculator with its own expression parser, so that Python's `eval` is not used."""

    @tool
    def calculate(self, expression: str) -> _Number:
        """Works out an arithmetic expression with + - * / // % ** and brackets, sqrt, abs and round.

        Args:
            expression: the calculation, such as (3 + 4) * 2.5 or sqrt(81) - 2.
        """
        evaluator = _ExpressionEvaluator(require_length("expression", expression, 300).lower())
        result = evaluator.evaluate_operations()
        if evaluator.tokens:
            raise ValueError(f"cannot read the expression at {evaluator.tokens[0]!r}")
        return round(result, 10) if isinstance(result, float) else result

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
        rest, factor, factors = require_range("number", number, 2, 10**9), 2, []
        while factor * factor <= rest:
            while rest % factor == 0:
                factors.append(factor)
                rest //= factor
            factor += 1
        return [*factors, rest] if rest > 1 else factors


class _ExpressionEvaluator:
    """Evaluates an arithmetic expression by recursive descent, with one method per level of precedence."""

    def __init__(self, text: str) -> None:
        self.tokens, at = [], 0
        while text[at:].strip():
            match = _TOKEN.match(text, at)
            if not match:
                raise ValueError(f"cannot read the expression at {text[at : at + 20].strip()!r}")
            self.tokens.append(match.group().strip().replace("^", "**"))
            at = match.end()
        self.depth = 0

    def evaluate_operations(self, operators: Sequence[Operators] = (_SUMS, _PRODUCTS)) -> _Number:
        """Evaluate operators of equal precedence from left to right; `operators` has them from weak to strong."""
        if not operators:
            return self.evaluate_factor()
        result = self.evaluate_operations(operators[1:])
        while self.is_next_token(*operators[0]):
            calculate = operators[0][self.tokens.pop(0)]
            result = _require_at_most_60_digits(calculate(result, self.evaluate_operations(operators[1:])))
        return result

    def evaluate_factor(self) -> _Number:
        if self.is_next_token("-", "+"):
            sign = self.tokens.pop(0)
            value = self.evaluate_nested(self.evaluate_factor)
            return -value if sign == "-" else value
        base = self.evaluate_atom()
        if not self.is_next_token("**"):
            return base
        self.tokens.pop(0)
        exponent = self.evaluate_nested(self.evaluate_factor)
        if abs(exponent) > 1000 or (abs(base) > 1 and exponent * math.log10(abs(base)) > 60):
            raise ValueError("the power is too large")
        result = base**exponent
        if isinstance(result, complex):
            raise ValueError("a fractional power of a negative number is not a real number")  # noqa: TRY004 - a value
        return _require_at_most_60_digits(result)

    def evaluate_atom(self) -> _Number:
        if not self.tokens:
            raise ValueError("the expression ends too early")
        read = self.tokens.pop(0)
        if read[0].isdigit() or read[0] == ".":
            return _require_at_most_60_digits(float(read) if "." in read else int(read))
        if read in _FUNCTIONS and self.is_next_token("("):
            return _FUNCTIONS[read](self.evaluate_atom())
        if read != "(":
            raise ValueError(f"cannot read the expression at {read!r}")
        result = self.evaluate_nested(self.evaluate_operations)
        if not self.is_next_token(")"):
            raise ValueError("a closing bracket is missing")
        self.tokens.pop(0)
        return result

    def is_next_token(self, *signs: str) -> bool:
        return bool(self.tokens) and self.tokens[0] in signs

    def evaluate_nested(self, evaluate: Callable[[], _Number]) -> _Number:
        """Return the value of `evaluate` one level deeper; raise ValueError beyond 50 levels."""
        self.depth += 1
        if self.depth > 50:
            raise ValueError("the expression is nested too deeply")
        result = evaluate()
        self.depth -= 1
        return result


def _require_at_most_60_digits(value: _Number) -> _Number:
    if abs(value) > _LARGEST:
        raise ValueError("a number has more than 60 digits")
    return value


_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


class Dates(Subject):
    """Calculates with dates."""

    @tool
    def weekday(self, day: str) -> str:
        """Says which day of the week a date is.

        Args:
            day: the date, as YYYY-MM-DD.
        """
        return _DAYS[read_date(require_length("day", day, 30)).weekday()]

    @tool
    def days_between(self, first: str, last: str) -> int:
        """Counts the days from one date to another; negative if the second one is earlier.

        Args:
            first: the one date, as YYYY-MM-DD.
            last: the other date, as YYYY-MM-DD.
        """
        return (read_date(require_length("last", last, 30)) - read_date(require_length("first", first, 30))).days

    @tool
    def add_days(self, day: str, days: int) -> str:
        """Adds a number of days to a date.

        Args:
            day: the date, as YYYY-MM-DD.
            days: how many days later; negative for earlier.
        """
        require_range("days", days, -100_000, 100_000)
        try:
            return (read_date(require_length("day", day, 30)) + timedelta(days=days)).isoformat()
        except OverflowError:
            raise ValueError("the result lies outside of the years 1 to 9999") from None

    @tool
    def is_leap_year(self, year: int) -> bool:
        """Says whether a year of the Gregorian calendar has 366 days.

        Args:
            year: 1583 to 9999.
        """
        require_range("year", year, 1583, 9999)
        return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)


class Household(Subject):
    """Calculates everyday quantities such as bills, recipes and travel times."""

    @tool
    def body_mass_index(self, weight_kg: float, height_m: float) -> float:
        """Works out the body mass index: weight divided by the square of the height.

        Args:
            weight_kg: weight in kilograms.
            height_m: height in metres.
        """
        if not (1 <= weight_kg <= 500 and 0.3 <= height_m <= 3):
            raise ValueError("the weight must be 1 to 500 kg and the height 0.3 to 3 m")
        return round(weight_kg / height_m**2, 1)

    @tool
    def split_bill(self, total: float, people: int, tip_percent: float = 0.0) -> dict[str, float]:
        """Splits a bill evenly, with a tip.

        Args:
            total: the bill without tip.
            people: how many pay, 1 to 100.
            tip_percent: the tip in percent of the bill.
        """
        if not (0 <= total <= 1e9 and 0 <= tip_percent <= 100):
            raise ValueError("total must be 0 to 1e9 and tip_percent 0 to 100")
        whole = total * (1 + tip_percent / 100)
        return {"with_tip": round(whole, 2), "each": round(whole / require_range("people", people, 1, 100), 2)}

    @tool
    def scale_recipe(self, ingredients: dict[str, float], servings: int, wanted: int) -> dict[str, float]:
        """Scales the amounts of a recipe to another number of servings.

        Args:
            ingredients: amounts by ingredient.
            servings: the number of people whom the amounts serve.
            wanted: the number of people to serve.
        """
        require_range("the number of ingredients", len(ingredients), 1, 100)
        factor = require_range("wanted", wanted, 1, 1000) / require_range("servings", servings, 1, 1000)
        return {
            require_length("ingredient", name, 100): round(amount * factor, 2) for name, amount in ingredients.items()
        }

    @tool
    def travel_time(self, distance_km: float, speed_kmh: float) -> dict[str, int]:
        """Works out how long a journey takes, in hours and minutes.

        Args:
            distance_km: length of the way in kilometres.
            speed_kmh: average speed in kilometres an hour.
        """
        if not (0 <= distance_km <= 1e6 and 0.1 <= speed_kmh <= 1e5):
            raise ValueError("the distance must be 0 to 1e6 km and the speed 0.1 to 1e5 km/h")
        hours, minutes = divmod(round(60 * distance_km / speed_kmh), 60)
        return {"hours": hours, "minutes": minutes}


class Savings(Subject):
    """Calculates interest and loans."""

    @tool
    def compound_interest(self, amount: float, rate_percent: float, years: int) -> float:
        """Says what an amount grows to with interest paid and kept once a year.

        Args:
            amount: what is put in at the beginning.
            rate_percent: interest in percent a year.
            years: the number of years, 0 to 100.
        """
        _require_loan_in_range(amount, rate_percent)
        return round(amount * (1 + rate_percent / 100) ** require_range("years", years, 0, 100), 2)

    @tool
    def loan_payment(self, amount: float, rate_percent: float, months: int) -> float:
        """Says what must be paid each month to pay a loan back in equal payments.

        Args:
            amount: what is lent.
            rate_percent: interest in percent a year, a twelfth of it charged each month.
            months: how many payments, 1 to 600.
        """
        _require_loan_in_range(amount, rate_percent)
        monthly, count = rate_percent / 1200, require_range("months", months, 1, 600)
        if monthly == 0:
            return round(amount / count, 2)
        return round(amount * monthly / (1 - (1 + monthly) ** -count), 2)

    @tool
    def percent_change(self, before: float, after: float) -> float:
        """Says by how many percent a value has changed.

        Args:
            before: the value at first.
            after: the value then.
        """
        if before == 0:
            raise ValueError("a change from 0 has no percentage")
        return round(100 * (after - before) / before, 4)


def _require_loan_in_range(amount: float, rate_percent: float) -> None:
    if not (0 <= amount <= 1e12 and 0 <= rate_percent <= 100):
        raise ValueError("the amount must be 0 to 1e12 and the rate 0 to 100 percent")


class Market:
    """A fictional stock exchange with daily closing prices."""

    def __init__(self, sample: Sample) -> None:  # noqa: ARG002 - SUBJECTS pass the sample
        data = read_shipped_json("prices")
        self.names: dict[str, str] = data["names"]
        self.days: list[str] = data["days"]
        self.closes: dict[str, list[float]] = data["closes"]

    @tool
    def list_symbols(self) -> dict[str, str]:
        """Lists the shares that are traded: the company's name by its symbol."""
        return self.names

    @tool
    def price_history(self, symbol: str, first: str, last: str) -> dict[str, float]:
        """Gives the closing prices of a share for the trading days of a period.

        Args:
            symbol: the share's symbol.
            first: the first day, as YYYY-MM-DD.
            last: the last day, as YYYY-MM-DD.
        """
        begin, end = (read_date(require_length("day", day, 30)).isoformat() for day in (first, last))
        prices = zip(self.days, self._get_closing_prices(symbol), strict=True)
        within = {day: price for day, price in prices if begin <= day <= end}
        if not within:
            raise ValueError(f"no trading in this period; prices go from {self.days[0]} to {self.days[-1]}")
        return within

    @tool
    def moving_average(self, symbol: str, days: int) -> float:
        """Gives the mean of a share's last closing prices.

        Args:
            symbol: the share's symbol.
            days: how many of the last trading days.
        """
        closes = self._get_closing_prices(symbol)[-require_range("days", days, 1, len(self.days)) :]
        return round(sum(closes) / len(closes), 4)

    @tool
    def relative_strength_index(self, symbol: str, days: int = 14) -> float:
        """Gives the relative strength index of a share, 0 to 100, from its last daily changes.

        It is 100 times the sum of the rises, divided by the sum of all rises and falls.

        Args:
            symbol: the share's symbol.
            days: how many of the last changes.
        """
        closes = self._get_closing_prices(symbol)[-require_range("days", days, 1, len(self.days) - 1) - 1 :]
        changes = [after - before for before, after in pairwise(closes)]
        moved = sum(abs(change) for change in changes)
        return round(100 * sum(change for change in changes if change > 0) / moved, 2) if moved else 50.0

    @tool
    def highest_and_lowest(self, symbol: str) -> dict[str, dict[str, float | str]]:
        """Gives the highest and the lowest closing price of a share, with their days.

        Args:
            symbol: the share's symbol.
        """
        closes = self._get_closing_prices(symbol)
        extremes = {"highest": max(closes), "lowest": min(closes)}
        return {name: {"day": self.days[closes.index(price)], "price": price} for name, price in extremes.items()}

    def _get_closing_prices(self, symbol: str) -> list[float]:
        closes = self.closes.get(symbol.strip().upper())
        if closes is None:
            raise ValueError(f"no such share; there are {', '.join(self.closes)}")
        return closes
