"""TReB's templates for Table General Operations and Table Distribution Testing."""

# ruff: noqa: RUF001 - Chinese punctuation

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from random import Random

from evalsuite.builders.treb.lookups import (
    YES_OR_NO,
    PairMaker,
    Parts,
    Phrase,
    TemplatePair,
    choose_comparison_condition,
    choose_equality_condition,
    make_number_pair,
    make_text_pair,
)
from evalsuite.builders.treb.sheet import MOST_FLAGS, Sheet, is_meaningless_name

SMALLEST_STATISTIC = 0.1  # Minimum absolute value of a nonzero answer, because answers have two decimals.
# Each statistic's name, Python function and pandas method.
STATISTICS: tuple[tuple[Phrase, Callable[[Sequence[float]], float], str], ...] = (
    (("sum", "总和"), math.fsum, "sum"),
    (("mean", "平均值"), statistics.fmean, "mean"),
    (("median", "中位数"), statistics.median, "median"),
    (("greatest value", "最大值"), max, "max"),
    (("smallest value", "最小值"), min, "min"),
    (("sample standard deviation", "样本标准差"), statistics.stdev, "std"),
)
_EXTREMES = ((("greatest", "最大"), max, "idxmax"), (("smallest", "最小"), min, "idxmin"))


def _ask_statistic(sheet: Sheet, random: Random) -> TemplatePair | None:
    name = random.choice(list(sheet.arithmetic_columns))
    words, compute, method = random.choice(STATISTICS if name in sheet.summable_columns else STATISTICS[1:])
    form = ('What is the {} of the column "{}"', "“{1}”列的{0}是多少")
    value = compute(_drop_missing_cells(sheet.numeric_columns[name]))
    return _make_statistic_pair(form, [words, name], value, f"df[{name!r}].{method}()")


def _ask_statistic_where(sheet: Sheet, random: Random) -> TemplatePair | None:
    condition = random.choice([choose_equality_condition, choose_comparison_condition])(sheet, random)
    name = random.choice(list(sheet.arithmetic_columns)) if condition else ""
    if condition is None or f'"{name}"' in condition.words[0]:
        return None
    words, compute, method = random.choice((STATISTICS if name in sheet.summable_columns else STATISTICS[1:])[:-1])
    values = _drop_missing_cells([cell for row, cell in enumerate(sheet.numeric_columns[name]) if condition.holds(row)])
    if len(values) < 2:
        return None
    form = ('What is the {} of the column "{}" over the rows where {}', "在{2}的行中，“{1}”列的{0}是多少")
    expression = f"df.loc[{condition.program}, {name!r}].{method}()"
    return _make_statistic_pair(form, [words, name, condition.words], compute(values), expression)


def _ask_share(sheet: Sheet, random: Random) -> TemplatePair | None:
    if not sheet.summable_columns:
        return None
    condition, name = choose_equality_condition(sheet, random), random.choice(sheet.summable_columns)
    cells = sheet.numeric_columns[name]
    whole = math.fsum(_drop_missing_cells(cells))
    if condition is None or min(_drop_missing_cells(cells)) < 0 or whole == 0:
        return None
    part = math.fsum(_drop_missing_cells([cell for row, cell in enumerate(cells) if condition.holds(row)]))
    if not 0 < part < whole:
        return None
    form = ('What percentage of the sum of "{}" is in the rows where {}', "{1}的行占“{0}”列总和的百分之多少")
    share = f"100 * df.loc[{condition.program}, {name!r}].sum() / df[{name!r}].sum()"
    return _make_rounded_pair(form, [name, condition.words], 100 * part / whole, share)


def _ask_extreme_row(sheet: Sheet, random: Random) -> TemplatePair | None:
    name, (words, pick, method) = random.choice(list(sheet.arithmetic_columns)), random.choice(_EXTREMES)
    cells = sheet.numeric_columns[name]
    extreme = pick(_drop_missing_cells(cells))
    if sheet.key_column is None or cells.count(extreme) > 1:
        return None
    english = 'Which value has the column "{}" in the row with the {} value of "{}"?'
    chinese = "“{2}”{1}的那一行中，“{0}”列的值是什么？"
    program = f"print(df.loc[df[{name!r}].{method}(), {sheet.key_column!r}])"
    answer = str(sheet.columns[sheet.key_column][cells.index(extreme)])
    return make_text_pair((english, chinese), [sheet.key_column, words, name], answer, program)


def _ask_distinct(sheet: Sheet, random: Random) -> TemplatePair | None:
    numbers = {
        name: _drop_missing_cells(cells)
        for name, cells in sheet.numeric_columns.items()
        if not is_meaningless_name(name)
    }
    recurring = [name for name, values in numbers.items() if MOST_FLAGS < len(set(values)) <= len(values) / 2]
    names = [*sheet.grouping_columns, *recurring]
    if not names:
        return None
    name = random.choice(names)
    english = 'How many different values are in the column "{}", empty cells aside?'
    chinese = "不计空单元格，“{}”列有多少个不同的值？"
    values = sheet.grouping_columns.get(name) or {*numbers[name]}
    return make_number_pair((english, chinese), [name], len(values), f"print(df[{name!r}].nunique())")


def _ask_rank(sheet: Sheet, random: Random) -> TemplatePair | None:
    name, row = random.choice(list(sheet.arithmetic_columns)), random.randrange(len(sheet.table.rows))
    value = sheet.numeric_columns[name][row]
    if sheet.key_column is None or value is None:
        return None
    key = sheet.columns[sheet.key_column][row]
    above = sum(cell > value for cell in _drop_missing_cells(sheet.numeric_columns[name]))
    english = (
        'What is the rank of the row where "{}" is "{}" by "{}", that is, one more than the number of rows with a '
        "greater value?"
    )
    chinese = "按“{2}”从大到小，“{0}”为“{1}”的行排第几（即该列值更大的行数加一）？"
    ranks = f"df[{name!r}].rank(ascending=False, method='min')"
    program = f"print(int({ranks}[df[{sheet.key_column!r}] == {key!r}].iloc[0]))"
    return make_number_pair((english, chinese), [sheet.key_column, str(key), name], above + 1, program)


def _ask_best_group(sheet: Sheet, random: Random) -> TemplatePair | None:
    if not sheet.grouping_columns:
        return None
    group, name = random.choice(list(sheet.grouping_columns)), random.choice(list(sheet.arithmetic_columns))
    by_group: dict[str, list[float]] = {}
    for key, value in zip(sheet.columns[group], sheet.numeric_columns[name], strict=True):
        if key is not None and value is not None:
            by_group.setdefault(key, []).append(value)
    means = {key: statistics.fmean(values) for key, values in by_group.items()}
    best = sorted(means.values())[-2:]
    if len(means) < 2 or math.isclose(*best):
        return None
    english = 'For which value of the column "{}" is the mean of "{}" greatest?'
    chinese = "“{0}”列取哪个值时，“{1}”的平均值最大？"
    program = f"print(df.groupby({group!r})[{name!r}].mean().idxmax())"
    return make_text_pair((english, chinese), [group, name], max(means, key=means.__getitem__), program)


def _ask_correlation(sheet: Sheet, random: Random) -> TemplatePair | None:
    if len(sheet.arithmetic_columns) < 2:
        return None
    first, second = random.sample(list(sheet.arithmetic_columns), 2)
    paired = [
        (one, other)
        for one, other in zip(sheet.numeric_columns[first], sheet.numeric_columns[second], strict=True)
        if one is not None and other is not None
    ]
    if len(paired) < 3 or any(len(set(values)) < 2 for values in zip(*paired, strict=True)):
        return None
    value = statistics.correlation(*zip(*paired, strict=True))
    form = ('What is Pearson\'s correlation of the columns "{}" and "{}"', "“{0}”列与“{1}”列的皮尔逊相关系数是多少")
    return _make_rounded_pair(form, [first, second], value, f"df[{first!r}].corr(df[{second!r}])")


OPERATION_TEMPLATES = (
    *(_ask_statistic, _ask_statistic_where, _ask_share, _ask_extreme_row, _ask_distinct, _ask_rank, _ask_best_group),
    _ask_correlation,
)


def _drop_missing_cells(cells: Sequence[float | None]) -> list[float]:
    return [cell for cell in cells if cell is not None]


def _make_statistic_pair(form: Phrase, parts: Parts, value: float, expression: str) -> TemplatePair | None:
    """Make a question and its answer with two decimals; None if the value is too small for two decimals."""
    return None if 0 < abs(value) < SMALLEST_STATISTIC else _make_rounded_pair(form, parts, value, expression)


def _make_rounded_pair(
    form: Phrase, parts: Parts, value: float, expression: str, digits: int = 2, setup: str = ""
) -> TemplatePair | None:
    """Make a question with a rounded answer; None if the rounding is ambiguous (0.125 may become 0.12 or 0.13)."""
    if math.isclose(abs(value) * 10**digits % 1, 0.5, abs_tol=1e-6):
        return None
    program = f"{setup}print(round(float({expression}), {digits}))"
    rounded = (f"{form[0]}, rounded to {digits} decimals?", f"{form[1]}（保留{digits}位小数）？")
    return make_number_pair(rounded, parts, round(value, digits), program)


LEVEL, CLOSE = 0.05, 0.001
FEWEST, MOST = 8, 5000  # With fewer values, tests lack power; with more, the Shapiro-Wilk p-value is inaccurate.
IMPORT = "from scipy import stats\n"


def _ask_normal(sheet: Sheet, random: Random) -> TemplatePair | None:
    from scipy import stats

    name, values = _choose_testable_column(sheet, random)
    english = 'Is the column "{}" compatible with a normal distribution (Shapiro-Wilk test, 5% level)?'
    chinese = "“{}”列是否符合正态分布（Shapiro-Wilk检验，5%显著性水平）？"
    test = f"stats.shapiro(df[{name!r}].dropna()).pvalue"
    return _make_yes_or_no_pair((english, chinese), name, stats.shapiro(values).pvalue, test) if values else None


def _ask_normality_statistic(sheet: Sheet, random: Random) -> TemplatePair | None:
    from scipy import stats

    name, values = _choose_testable_column(sheet, random)
    english = 'What is the statistic W of the Shapiro-Wilk test for the column "{}"'
    chinese = "对“{}”列做Shapiro-Wilk检验，统计量W是多少"
    test = f"stats.shapiro(df[{name!r}].dropna()).statistic"
    if not values:
        return None
    return _make_rounded_pair((english, chinese), [name], float(stats.shapiro(values).statistic), test, 3, IMPORT)


def _ask_uniform(sheet: Sheet, random: Random) -> TemplatePair | None:
    from scipy import stats

    name, values = _choose_testable_column(sheet, random)
    english = (
        'Is the column "{}" compatible with a uniform distribution between its smallest and its greatest value '
        "(Kolmogorov-Smirnov test, 5% level)?"
    )
    chinese = "“{}”列是否符合其最小值与最大值之间的均匀分布（Kolmogorov-Smirnov检验，5%显著性水平）？"
    column = f"column = df[{name!r}].dropna()\n"
    test = "stats.kstest(column, 'uniform', args=(column.min(), column.max() - column.min())).pvalue"
    if not values:
        return None
    found = stats.kstest(values, "uniform", args=(min(values), max(values) - min(values)))
    return _make_yes_or_no_pair((english, chinese), name, found.pvalue, test, column)


def _ask_skewness(sheet: Sheet, random: Random) -> TemplatePair | None:
    from scipy import stats

    name, values = _choose_testable_column(sheet, random)
    english = 'What is the skewness of the column "{}" (adjusted Fisher-Pearson)'
    chinese = "“{}”列的偏度（调整后的Fisher-Pearson）是多少"
    value = float(stats.skew(values, bias=False)) if values else math.nan
    return _make_rounded_pair((english, chinese), [name], value, f"df[{name!r}].skew()") if values else None


def _ask_evenly_spread(sheet: Sheet, random: Random) -> TemplatePair | None:
    from scipy import stats

    if not sheet.grouping_columns:
        return None
    name = random.choice(list(sheet.grouping_columns))
    counts = [sheet.columns[name].count(value) for value in sheet.grouping_columns[name]]
    # The chi-square approximation needs an expected frequency of at least five. Equal frequencies need no test.
    if sum(counts) < 5 * len(counts) or len(set(counts)) == 1:
        return None
    english = 'Are the values of the column "{}" equally frequent (chi-square test, 5% level)?'
    chinese = "“{}”列各个值的出现次数是否相等（卡方检验，5%显著性水平）？"
    test = f"stats.chisquare(df[{name!r}].value_counts()).pvalue"
    return _make_yes_or_no_pair((english, chinese), name, stats.chisquare(counts).pvalue, test)


DISTRIBUTION_TEMPLATES: tuple[PairMaker, ...] = (
    *(_ask_normal, _ask_normality_statistic, _ask_uniform, _ask_skewness, _ask_evenly_spread),
)


def _choose_testable_column(sheet: Sheet, random: Random) -> tuple[str, list[float]]:
    """Choose a column whose distribution can be tested; return its name and values (no values if none is suitable)."""
    present = {name: _drop_missing_cells(cells) for name, cells in sheet.arithmetic_columns.items()}
    suited = [name for name, values in present.items() if FEWEST <= len(values) <= MOST and len(set(values)) > 2]
    name = random.choice(suited) if suited else ""
    return name, present.get(name, [])


def _make_yes_or_no_pair(
    form: Phrase, name: str, pvalue: float, expression: str, setup: str = ""
) -> TemplatePair | None:
    """Make a question that a test's p-value answers; return None if the p-value is close to the significance level."""
    if abs(pvalue - LEVEL) < CLOSE:  # P-values may differ slightly between implementations.
        return None
    program = f"{IMPORT}{setup}print('Yes' if {expression} >= {LEVEL} else 'No')"
    answer = "Yes" if pvalue >= LEVEL else "No"
    return make_text_pair(form, [name], answer, program, YES_OR_NO)
