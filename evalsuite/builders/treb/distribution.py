"""Table Distribution Testing: normality and other distributions, tested with scipy at the 5% level."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from evalsuite.builders.treb.pair import QuestionMaker, TemplatePair, numbered, worded

if TYPE_CHECKING:
    from random import Random

    from evalsuite.builders.treb.sheet import Sheet

LEVEL = 0.05
FEWEST, MOST = 8, 5000  # below, no test says much; above, the p-value of Shapiro and Wilk is not accurate
IMPORT = "from scipy import stats\n"


def normal(sheet: Sheet, random: Random) -> TemplatePair | None:
    """Shapiro and Wilk's test of normality: compatible or not."""
    chosen = _column(sheet, random)
    if chosen is None:
        return None
    from scipy import stats

    name, values = chosen
    pvalue = float(stats.shapiro(values).pvalue)
    question = f'Is the column "{name}" compatible with a normal distribution (Shapiro-Wilk test, 5% level)?'
    return _verdict(question, pvalue, f"stats.shapiro(df[{name!r}].dropna()).pvalue")


def normality_statistic(sheet: Sheet, random: Random) -> TemplatePair | None:
    """The statistic W of Shapiro and Wilk."""
    chosen = _column(sheet, random)
    if chosen is None:
        return None
    from scipy import stats

    name, values = chosen
    question = (
        f'What is the statistic W of the Shapiro-Wilk test for the column "{name}", rounded to 3 decimals?'
    )
    program = f"{IMPORT}print(round(float(stats.shapiro(df[{name!r}].dropna()).statistic), 3))"
    return numbered(question, round(float(stats.shapiro(values).statistic), 3), program)


def uniform(sheet: Sheet, random: Random) -> TemplatePair | None:
    """Kolmogorov and Smirnov's test against the uniform distribution from the smallest to the greatest value."""
    chosen = _column(sheet, random)
    if chosen is None:
        return None
    from scipy import stats

    name, values = chosen
    low, width = min(values), max(values) - min(values)
    pvalue = float(stats.kstest(values, "uniform", args=(low, width)).pvalue)
    question = (
        f'Is the column "{name}" compatible with a uniform distribution between its smallest and its greatest '
        "value (Kolmogorov-Smirnov test, 5% level)?"
    )
    column = f"column = df[{name!r}].dropna()\n"
    test = "stats.kstest(column, 'uniform', args=(column.min(), column.max() - column.min())).pvalue"
    return _verdict(question, pvalue, test, column)


def skewness(sheet: Sheet, random: Random) -> TemplatePair | None:
    """The adjusted Fisher-Pearson skewness, which is pandas' own."""
    chosen = _column(sheet, random)
    if chosen is None:
        return None
    name, values = chosen
    count, mean = len(values), math.fsum(values) / len(values)
    second, third = (math.fsum((value - mean) ** power for value in values) / count for power in (2, 3))
    value = math.sqrt(count * (count - 1)) / (count - 2) * third / second**1.5
    question = (
        f'What is the skewness of the column "{name}" (adjusted Fisher-Pearson), rounded to 2 decimals?'
    )
    return numbered(question, round(value, 2), f"print(round(float(df[{name!r}].skew()), 2))")


def evenly_spread(sheet: Sheet, random: Random) -> TemplatePair | None:
    """The chi-square test of equal frequencies of a text column's values."""
    names = [name for name, values in sheet.groups.items() if len(_frequencies(sheet, name)) == len(values)]
    if not names:
        return None
    from scipy import stats

    name = random.choice(names)
    counts = _frequencies(sheet, name)
    if sum(counts) < 5 * len(counts):  # the usual condition of the approximation: five expected in each
        return None
    if len(set(counts)) == 1:  # that takes no test
        return None
    pvalue = float(stats.chisquare(counts).pvalue)
    question = f'Are the values of the column "{name}" equally frequent (chi-square test, 5% level)?'
    return _verdict(question, pvalue, f"stats.chisquare(df[{name!r}].value_counts()).pvalue")


TEMPLATES: tuple[QuestionMaker, ...] = (normal, normality_statistic, uniform, skewness, evenly_spread)


def _frequencies(sheet: Sheet, name: str) -> list[int]:
    return [sheet.columns[name].count(value) for value in sheet.groups[name]]


def _column(sheet: Sheet, random: Random) -> tuple[str, list[float]] | None:
    """A numeric column with enough values, not all the same."""
    present = {name: [cell for cell in cells if cell is not None] for name, cells in sheet.measured.items()}
    suited = [
        name for name, values in present.items() if FEWEST <= len(values) <= MOST and len(set(values)) > 2
    ]
    if not suited:
        return None
    name = random.choice(suited)
    return name, present[name]


def _verdict(question: str, pvalue: float, test: str, before: str = "") -> TemplatePair:
    program = f"{IMPORT}{before}print('Yes' if {test} >= {LEVEL} else 'No')"
    return worded(f"{question} Yes or No?", "Yes" if pvalue >= LEVEL else "No", program)
