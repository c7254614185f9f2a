"""TReB's templates of questions in English and Chinese.

Answers are computed without pandas, because the programs that verify them use pandas.
"""

# ruff: noqa: RUF001 - Chinese punctuation

import math
import operator
import statistics
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from random import Random

import scipy  # its module `stats`, which is slow to import, is imported at its first use

from evalsuite.builders.treb.sheet import MOST_FLAGS, Sheet, is_meaningless_name, is_number
from evalsuite.metrics.numbers import numeric_match
from evalsuite.metrics.text import HAN

Phrase = tuple[str, str]
"""A text in English and in Chinese."""
Parts = Sequence["str | Phrase"]
"""Parts of a question: names, cells and numbers are the same in both languages, unlike words and conditions."""
NUMBER_ONLY: Phrase = (" Answer with the number only.", "只回答数字。")
TEXT_ONLY: Phrase = (" Answer with that only.", "只回答该内容。")
YES_OR_NO: Phrase = (f" Yes or No?{TEXT_ONLY[0]}", "只回答“是”或“否”。")


@dataclass(frozen=True, slots=True)
class TemplatePair:
    """A template's question, its answer computed from the cells, and a program on `df` that prints the answer."""

    question: str
    answer: str
    program: str
    number: float | None = None
    chinese: str = ""  # The question in Chinese.


# Makes a question about a table; returns None if the table does not allow the question.
PairMaker = Callable[["Sheet", Random], "TemplatePair | None"]


def is_same_answer(printed: str, answer: str) -> bool:
    """Tell whether a program's output equals the answer, as a text (ignoring case) or as a number."""
    return printed.strip().lower() == answer.strip().lower() or numeric_match(printed, answer) == 1.0


def make_number_pair(form: Phrase, parts: Parts, value: float, program: str) -> TemplatePair:
    """Make a question-answer pair whose answer is a number; whole numbers are written without a decimal point."""
    number = int(value) if float(value).is_integer() else value
    return replace(make_text_pair(form, parts, str(number), program, NUMBER_ONLY), number=number)


def make_text_pair(form: Phrase, parts: Parts, answer: str, program: str, ending: Phrase = TEXT_ONLY) -> TemplatePair:
    """Make a question-answer pair whose answer is a text; `parts` fill the form's fields, such as `{0}`."""
    question, chinese = (
        words.format(*(part if isinstance(part, str) else part[language] for part in parts)) + ending[language]
        for language, words in enumerate(form)
    )
    return TemplatePair(question, answer, program, chinese=chinese)


def has_chinese_names(sheet: Sheet) -> bool:
    """Tell whether more than half of a table's columns have Chinese names."""
    return 2 * sum(bool(HAN.search(name)) for name in sheet.column_names) > len(sheet.column_names)


def translate_pair(pair: TemplatePair) -> TemplatePair:
    """Translate a pair's question into Chinese, and also "Yes" and "No" in its answer and program."""
    if not pair.question.endswith(YES_OR_NO[0]):
        return replace(pair, question=pair.chinese)
    program = pair.program.replace("print('Yes' if", "print('是' if").replace("else 'No')", "else '否')")
    return replace(pair, question=pair.chinese, answer={"Yes": "是", "No": "否"}[pair.answer], program=program)


def _ask_cell_by_position(sheet: Sheet, random: Random) -> TemplatePair | None:
    column, row = random.randrange(len(sheet.column_names)), random.randrange(len(sheet.table.rows))
    form = ("What is in row {} of the data, column {}?", "数据的第{}行、第{}列是什么？")
    cell = sheet.columns[sheet.column_names[column]][row]
    return _make_number_or_text_pair(form, [f"{row + 1}", f"{column + 1}"], cell, f"print(df.iloc[{row}, {column}])")


def _ask_cell_by_name(sheet: Sheet, random: Random) -> TemplatePair | None:
    name, row = random.choice(sheet.column_names), random.randrange(len(sheet.table.rows))
    form = ('What is in row {} of the data in the column "{}"?', "数据的第{}行中，“{}”列的内容是什么？")
    parts, cell = [f"{row + 1}", name], sheet.columns[name][row]
    return _make_number_or_text_pair(form, parts, cell, f"print(df[{name!r}].iloc[{row}])")


def _ask_neighbour(sheet: Sheet, random: Random) -> TemplatePair | None:
    counts = Counter(cell for cells in sheet.columns.values() for cell in cells)
    places = [
        (name, row)
        for name, cells in sheet.naming_columns.items()
        for row, cell in enumerate(cells)
        if cell and counts[cell] == 1
    ]
    if not places:
        return None
    name, row = random.choice(places)
    step, side = random.choice([(1, ("below", "下方")), (-1, ("above", "上方"))])
    cells, wanted = sheet.columns[name], row + step
    if not 0 <= wanted < len(cells):
        return None
    program = f"row = df.index[df[{name!r}] == {cells[row]!r}][0]\nprint(df[{name!r}].iloc[row + {step}])"
    form = ('What is in the cell directly {} "{}"?', "“{1}”正{0}的单元格里是什么？")
    return _make_number_or_text_pair(form, [side, str(cells[row])], cells[wanted], program)


def _ask_same_row(sheet: Sheet, random: Random) -> TemplatePair | None:
    others = [name for name in sheet.column_names if name != sheet.key_column]
    if sheet.key_column is None or not others:
        return None
    name, row = random.choice(others), random.randrange(len(sheet.table.rows))
    key = sheet.columns[sheet.key_column][row]
    form = ('What is in the column "{}" where "{}" is "{}"?', "“{1}”为“{2}”的那一行中，“{0}”列的内容是什么？")
    program = f"print(df.loc[df[{sheet.key_column!r}] == {key!r}, {name!r}].iloc[0])"
    return _make_number_or_text_pair(form, [name, sheet.key_column, str(key)], sheet.columns[name][row], program)


def _ask_row_of(sheet: Sheet, random: Random) -> TemplatePair | None:
    if sheet.key_column is None:
        return None
    row = random.randrange(len(sheet.table.rows))
    key = sheet.columns[sheet.key_column][row]
    form = ('In which row of the data is "{}" in the column "{}"?', "“{}”位于“{}”列的数据的第几行？")
    program = f"print(df.index[df[{sheet.key_column!r}] == {key!r}][0] + 1)"
    return make_number_pair(form, [str(key), sheet.key_column], row + 1, program)


def _ask_column_number(sheet: Sheet, random: Random) -> TemplatePair | None:
    name = random.choice(sheet.column_names)
    program = f"print(list(df.columns).index({name!r}) + 1)"
    form = ('Which column is called "{}", counted from the left?', "名为“{}”的列从左数是第几列？")
    return make_number_pair(form, [name], sheet.column_names.index(name) + 1, program)


def _ask_next_column(sheet: Sheet, random: Random) -> TemplatePair | None:
    if len(sheet.column_names) < 2:
        return None
    place = random.randrange(len(sheet.column_names) - 1)
    form = ('What is the name of the column directly to the right of "{}"?', "“{}”列右边紧邻的列叫什么名称？")
    program = f"print(df.columns[list(df.columns).index({sheet.column_names[place]!r}) + 1])"
    return make_text_pair(form, [sheet.column_names[place]], sheet.column_names[place + 1], program)


def _make_number_or_text_pair(form: Phrase, parts: Parts, cell: str | None, program: str) -> TemplatePair | None:
    if cell and is_number(cell):
        return make_number_pair(form, parts, float(cell), program)
    return make_text_pair(form, parts, cell, program) if cell else None


MOST_LISTED = 12
COMMAS = ",，"


@dataclass(frozen=True, slots=True)
class RowCondition:
    """A condition on rows as words (`"Rating" is at least 4`), as a pandas mask, and as a function of a row's index."""

    words: Phrase
    program: str
    holds: Callable[[int], bool]


def _choose_equality_condition(sheet: Sheet, random: Random) -> RowCondition | None:
    """Make a condition that a column equals one of its recurring values; None if no column has recurring values."""
    if not sheet.grouping_columns:
        return None
    name = random.choice(list(sheet.grouping_columns))
    value, cells = random.choice(sheet.grouping_columns[name]), sheet.columns[name]
    words = (f'"{name}" is "{value}"', f"“{name}”为“{value}”")
    return RowCondition(words, f"df[{name!r}] == {value!r}", lambda row: cells[row] == value)


def _choose_comparison_condition(sheet: Sheet, random: Random) -> RowCondition | None:
    """Make a condition that compares a numeric column with one of its values; None if all rows or no rows meet it."""
    name = random.choice(list(sheet.comparable_columns))
    cells = sheet.comparable_columns[name]
    bound = random.choice([cell for cell in cells if cell is not None])
    if len(f"{bound:.15g}".strip("0-.")) > MOST_DIGITS:  # Round long bounds, such as 712.101174262357.
        bound = float(f"{bound:.4g}")
    (english, chinese), sign, holds = random.choice(_COMPARISONS)
    shown = f"{bound:.15g}"

    def is_met(row: int) -> bool:
        cell = cells[row]
        return cell is not None and holds(cell, bound)

    if not 0 < sum(map(is_met, range(len(cells)))) < len(cells):
        return None
    words = (f'"{name}" is {english} {shown}', f"“{name}”{chinese}{shown}")
    return RowCondition(words, f"df[{name!r}] {sign} {shown}", is_met)


MOST_DIGITS = 7  # Maximum characters of a bound without its sign and its outer zeros.
_COMPARISONS: tuple[tuple[Phrase, str, Callable[[float, float], bool]], ...] = (
    (("greater than", "大于"), ">", operator.gt),
    (("less than", "小于"), "<", operator.lt),
    (("at least", "不小于"), ">=", operator.ge),
    (("at most", "不大于"), "<=", operator.le),
)


def _choose_combined_condition(sheet: Sheet, random: Random, *, both: bool) -> RowCondition | None:
    """Combine an equality and a comparison: by "and" if `both` is true, otherwise by "or"."""
    text, number = _choose_equality_condition(sheet, random), _choose_comparison_condition(sheet, random)
    if text is None or number is None:
        return None
    (english, chinese), sign, combine = ((" and ", "且"), "&", all) if both else ((" or ", "或"), "|", any)
    return RowCondition(
        (text.words[0] + english + number.words[0], text.words[1] + chinese + number.words[1]),
        f"({text.program}) {sign} ({number.program})",
        lambda row: combine((text.holds(row), number.holds(row))),
    )


def _make_pair_about_row_keys(sheet: Sheet, condition: RowCondition) -> TemplatePair | None:
    if sheet.key_column is None:
        return None
    keys = [str(key) for row, key in enumerate(sheet.columns[sheet.key_column]) if condition.holds(row)]
    if not 0 < len(keys) <= MOST_LISTED:
        return None
    shown = f"df.loc[{condition.program}, {sheet.key_column!r}].astype(str)"
    ending = (
        " Answer with them only, in the order of the table, separated by commas",
        "按表中的顺序只列出这些值，用逗号分隔",
    )
    # Quote keys that contain commas; no escaping is needed, because no key contains a quotation mark.
    if any(set(COMMAS) & set(cell or "") for cell in sheet.columns[sheet.key_column]):
        keys = [f'"{key}"' if set(COMMAS) & set(key) else key for key in keys]
        shown = f"(f'\"{{key}}\"' if set({COMMAS!r}) & set(key) else key for key in {shown})"
        ending = (f"{ending[0]}, those that have commas in quotation marks", f"{ending[1]}，含逗号的值加双引号")
    form = ('Which values has the column "{}" where {}?', "在{1}的行中，“{0}”列有哪些值？")
    parts, program = (sheet.key_column, condition.words), f"print(', '.join({shown}))"
    return make_text_pair(form, parts, ", ".join(keys), program, (f"{ending[0]}.", f"{ending[1]}。"))


def _make_pair_about_row_count(sheet: Sheet, condition: RowCondition) -> TemplatePair | None:
    count = sum(condition.holds(row) for row in range(len(sheet.table.rows)))
    program = f"print(int(({condition.program}).sum()))"
    form = ("In how many rows of the data is it so that {}?", "数据中有多少行满足{}？")
    return make_number_pair(form, [condition.words], count, program)


def _make_selection_template(
    name: str,
    ask: Callable[[Sheet, RowCondition], TemplatePair | None],
    choose: Callable[[Sheet, Random], RowCondition | None],
) -> PairMaker:
    """Make a template for questions about rows that meet a random condition; the ids of its pairs contain `name`."""

    def ask_about_rows(sheet: Sheet, random: Random) -> TemplatePair | None:
        condition = choose(sheet, random)
        return ask(sheet, condition) if condition else None

    ask_about_rows.__name__ = name
    return ask_about_rows


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
    condition = random.choice([_choose_equality_condition, _choose_comparison_condition])(sheet, random)
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
    condition, name = _choose_equality_condition(sheet, random), random.choice(sheet.summable_columns)
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
    name, values = _choose_testable_column(sheet, random)
    english = 'Is the column "{}" compatible with a normal distribution (Shapiro-Wilk test, 5% level)?'
    chinese = "“{}”列是否符合正态分布（Shapiro-Wilk检验，5%显著性水平）？"
    test = f"stats.shapiro(df[{name!r}].dropna()).pvalue"
    return _make_yes_or_no_pair((english, chinese), name, scipy.stats.shapiro(values).pvalue, test) if values else None


def _ask_normality_statistic(sheet: Sheet, random: Random) -> TemplatePair | None:
    name, values = _choose_testable_column(sheet, random)
    english = 'What is the statistic W of the Shapiro-Wilk test for the column "{}"'
    chinese = "对“{}”列做Shapiro-Wilk检验，统计量W是多少"
    test = f"stats.shapiro(df[{name!r}].dropna()).statistic"
    if not values:
        return None
    return _make_rounded_pair((english, chinese), [name], float(scipy.stats.shapiro(values).statistic), test, 3, IMPORT)


def _ask_uniform(sheet: Sheet, random: Random) -> TemplatePair | None:
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
    found = scipy.stats.kstest(values, "uniform", args=(min(values), max(values) - min(values)))
    return _make_yes_or_no_pair((english, chinese), name, found.pvalue, test, column)


def _ask_skewness(sheet: Sheet, random: Random) -> TemplatePair | None:
    name, values = _choose_testable_column(sheet, random)
    english = 'What is the skewness of the column "{}" (adjusted Fisher-Pearson)'
    chinese = "“{}”列的偏度（调整后的Fisher-Pearson）是多少"
    value = float(scipy.stats.skew(values, bias=False)) if values else math.nan
    return _make_rounded_pair((english, chinese), [name], value, f"df[{name!r}].skew()") if values else None


def _ask_evenly_spread(sheet: Sheet, random: Random) -> TemplatePair | None:
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
    return _make_yes_or_no_pair((english, chinese), name, scipy.stats.chisquare(counts).pvalue, test)


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


_choose_both = partial(_choose_combined_condition, both=True)
_choose_either = partial(_choose_combined_condition, both=False)
TEMPLATES: dict[str, tuple[PairMaker, ...]] = {
    "Table_Query": (
        *(_ask_cell_by_position, _ask_cell_by_name, _ask_neighbour, _ask_same_row, _ask_row_of, _ask_column_number),
        _ask_next_column,
    ),
    "Table_Selection": (
        _make_selection_template("list_one", _make_pair_about_row_keys, _choose_comparison_condition),
        _make_selection_template("list_value", _make_pair_about_row_keys, _choose_equality_condition),
        _make_selection_template("list_both", _make_pair_about_row_keys, _choose_both),
        _make_selection_template("list_either", _make_pair_about_row_keys, _choose_either),
        _make_selection_template("count_one", _make_pair_about_row_count, _choose_comparison_condition),
        _make_selection_template("count_both", _make_pair_about_row_count, _choose_both),
    ),
    "Table_General_Operations": (
        *(_ask_statistic, _ask_statistic_where, _ask_share, _ask_extreme_row, _ask_distinct, _ask_rank),
        *(_ask_best_group, _ask_correlation),
    ),
    "Table_Distribution_Testing": (
        *(_ask_normal, _ask_normality_statistic, _ask_uniform, _ask_skewness, _ask_evenly_spread),
    ),
}
"""The templates of each subtask."""
