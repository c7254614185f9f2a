"""TReB's templates for Table Query and Table Selection, and the translation of all templates' questions into Chinese.

For tables whose columns have Chinese names, questions are translated. Each template's English wording is mapped to a
Chinese wording. A question stays English if it matches no known wording, for example because a column's name has
quotation marks.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from random import Random

from evalsuite.builders.treb.sheet import Sheet, is_number
from evalsuite.metrics.numbers import numeric_match
from evalsuite.metrics.text import HAN


@dataclass(frozen=True, slots=True)
class TemplatePair:
    """A template's question, its answer computed from the cells, and a program on `df` that prints the answer."""

    question: str
    answer: str
    program: str
    number: float | None = None


# Makes a question about a table; returns None if the table does not allow the question.
PairMaker = Callable[["Sheet", Random], "TemplatePair | None"]


def is_same_answer(printed: str, answer: str) -> bool:
    """Tell whether a program's output equals the answer, as a text (ignoring case) or as a number."""
    return printed.strip().lower() == answer.strip().lower() or numeric_match(printed, answer) == 1.0


def make_number_pair(question: str, value: float, program: str) -> TemplatePair:
    """Make a question-answer pair whose answer is a number; whole numbers are written without a decimal point."""
    number = int(value) if float(value).is_integer() else value
    return TemplatePair(f"{question} Answer with the number only.", str(number), program, number)


def make_text_pair(question: str, answer: str, program: str) -> TemplatePair:
    """Make a question-answer pair whose answer is a text."""
    return TemplatePair(f"{question} Answer with that only.", answer, program)


def ask_cell_by_position(sheet: Sheet, random: Random) -> TemplatePair | None:
    """Make a question-answer pair about the cell at a row number and a column number; None if it is empty."""
    column, row = random.randrange(len(sheet.column_names)), random.randrange(len(sheet.table.rows))
    question = f"What is in row {row + 1} of the data, column {column + 1}?"
    cell = sheet.columns[sheet.column_names[column]][row]
    return _make_number_or_text_pair(question, cell, f"print(df.iloc[{row}, {column}])")


def ask_cell_by_name(sheet: Sheet, random: Random) -> TemplatePair | None:
    """Make a question-answer pair about the cell of a named column at a row number; None if the cell is empty."""
    name, row = random.choice(sheet.column_names), random.randrange(len(sheet.table.rows))
    question = f'What is in row {row + 1} of the data in the column "{name}"?'
    return _make_number_or_text_pair(question, sheet.columns[name][row], f"print(df[{name!r}].iloc[{row}])")


def ask_neighbour(sheet: Sheet, random: Random) -> TemplatePair | None:
    """Make a question-answer pair about the cell above or below a unique cell; None if the table is unsuited."""
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
    step, word = random.choice([(1, "below"), (-1, "above")])
    cells, wanted = sheet.columns[name], row + step
    if not 0 <= wanted < len(cells):
        return None
    program = f"row = df.index[df[{name!r}] == {cells[row]!r}][0]\nprint(df[{name!r}].iloc[row + {step}])"
    return _make_number_or_text_pair(f'What is in the cell directly {word} "{cells[row]}"?', cells[wanted], program)


def ask_same_row(sheet: Sheet, random: Random) -> TemplatePair | None:
    """Make a question-answer pair about a cell in the row with a certain key; None if the table is unsuited."""
    others = [name for name in sheet.column_names if name != sheet.key_column]
    if sheet.key_column is None or not others:
        return None
    name, row = random.choice(others), random.randrange(len(sheet.table.rows))
    key = sheet.columns[sheet.key_column][row]
    question = f'What is in the column "{name}" where "{sheet.key_column}" is "{key}"?'
    program = f"print(df.loc[df[{sheet.key_column!r}] == {key!r}, {name!r}].iloc[0])"
    return _make_number_or_text_pair(question, sheet.columns[name][row], program)


def ask_row_of(sheet: Sheet, random: Random) -> TemplatePair | None:
    """Make a question-answer pair about the number of the row with a certain key; None if no column identifies rows."""
    if sheet.key_column is None:
        return None
    row = random.randrange(len(sheet.table.rows))
    key = sheet.columns[sheet.key_column][row]
    question = f'In which row of the data is "{key}" in the column "{sheet.key_column}"?'
    return make_number_pair(question, row + 1, f"print(df.index[df[{sheet.key_column!r}] == {key!r}][0] + 1)")


def ask_column_number(sheet: Sheet, random: Random) -> TemplatePair | None:
    """Make a question-answer pair about the number of a named column."""
    name = random.choice(sheet.column_names)
    program = f"print(list(df.columns).index({name!r}) + 1)"
    number = sheet.column_names.index(name) + 1
    return make_number_pair(f'Which column is called "{name}", counted from the left?', number, program)


def ask_next_column(sheet: Sheet, random: Random) -> TemplatePair | None:
    """Make a question-answer pair about the name of the column to the right of a column; None with a single column."""
    if len(sheet.column_names) < 2:
        return None
    place = random.randrange(len(sheet.column_names) - 1)
    question = f'What is the name of the column directly to the right of "{sheet.column_names[place]}"?'
    program = f"print(df.columns[list(df.columns).index({sheet.column_names[place]!r}) + 1])"
    return make_text_pair(question, sheet.column_names[place + 1], program)


QUERY_TEMPLATES = (
    *(ask_cell_by_position, ask_cell_by_name, ask_neighbour, ask_same_row, ask_row_of, ask_column_number),
    ask_next_column,
)


def _make_number_or_text_pair(question: str, cell: str | None, program: str) -> TemplatePair | None:
    if cell and is_number(cell):
        return make_number_pair(question, float(cell), program)
    return make_text_pair(question, cell, program) if cell else None


MOST_LISTED = 12
LISTED = " Answer with them only, in the order of the table, separated by commas"
QUOTED = ", those that have commas in quotation marks"


@dataclass(frozen=True, slots=True)
class RowCondition:
    """A condition on rows as words (`"Rating" is at least 4`), as a pandas mask, and as a function of a row's index."""

    words: str
    program: str
    holds: Callable[[int], bool]


def choose_equality_condition(sheet: Sheet, random: Random) -> RowCondition | None:
    """Make a condition that a column equals one of its recurring values; None if no column has recurring values."""
    if not sheet.grouping_columns:
        return None
    name = random.choice(list(sheet.grouping_columns))
    value, cells = random.choice(sheet.grouping_columns[name]), sheet.columns[name]
    return RowCondition(f'"{name}" is "{value}"', f"df[{name!r}] == {value!r}", lambda row: cells[row] == value)


def choose_comparison_condition(sheet: Sheet, random: Random) -> RowCondition | None:
    """Make a condition that compares a numeric column with one of its values; None if all rows or no rows meet it."""
    name = random.choice(list(sheet.comparable_columns))
    cells = sheet.comparable_columns[name]
    bound = random.choice([cell for cell in cells if cell is not None])
    if len(f"{bound:.15g}".strip("0-.")) > MOST_DIGITS:  # Round long bounds, such as 712.101174262357.
        bound = float(f"{bound:.4g}")
    words, sign, holds = random.choice(_COMPARISONS)
    shown = f"{bound:.15g}"

    def is_met(row: int) -> bool:
        cell = cells[row]
        return cell is not None and holds(cell, bound)

    if not 0 < sum(map(is_met, range(len(cells)))) < len(cells):
        return None
    return RowCondition(f'"{name}" is {words} {shown}', f"df[{name!r}] {sign} {shown}", is_met)


MOST_DIGITS = 7  # Maximum characters of a bound without its sign and its outer zeros.
_COMPARISONS: tuple[tuple[str, str, Callable[[float, float], bool]], ...] = (
    ("greater than", ">", lambda cell, bound: cell > bound),
    ("less than", "<", lambda cell, bound: cell < bound),
    ("at least", ">=", lambda cell, bound: cell >= bound),
    ("at most", "<=", lambda cell, bound: cell <= bound),
)


def choose_combined_condition(sheet: Sheet, random: Random, *, both: bool) -> RowCondition | None:
    """Combine an equality and a comparison: by "and" if `both` is true, otherwise by "or"."""
    text, number = choose_equality_condition(sheet, random), choose_comparison_condition(sheet, random)
    if text is None or number is None:
        return None
    word, sign, combine = ("and", "&", all) if both else ("or", "|", any)
    return RowCondition(
        f"{text.words} {word} {number.words}",
        f"({text.program}) {sign} ({number.program})",
        lambda row: combine((text.holds(row), number.holds(row))),
    )


def _make_pair_about_row_keys(sheet: Sheet, condition: RowCondition) -> TemplatePair | None:
    if sheet.key_column is None:
        return None
    keys = [str(key) for row, key in enumerate(sheet.columns[sheet.key_column]) if condition.holds(row)]
    if not 0 < len(keys) <= MOST_LISTED:
        return None
    # Quote keys that contain commas; no escaping is needed, because no key contains a quotation mark.
    shown, quoted = f"df.loc[{condition.program}, {sheet.key_column!r}].astype(str)", ""
    if any(set(COMMAS) & set(cell or "") for cell in sheet.columns[sheet.key_column]):
        keys = [f'"{key}"' if set(COMMAS) & set(key) else key for key in keys]
        shown = f"(f'\"{{key}}\"' if set({COMMAS!r}) & set(key) else key for key in {shown})"
        quoted = QUOTED
    question = f'Which values has the column "{sheet.key_column}" where {condition.words}?{LISTED}{quoted}.'
    return TemplatePair(question, ", ".join(keys), f"print(', '.join({shown}))")


def _make_pair_about_row_count(sheet: Sheet, condition: RowCondition) -> TemplatePair | None:
    count = sum(condition.holds(row) for row in range(len(sheet.table.rows)))
    program = f"print(int(({condition.program}).sum()))"
    return make_number_pair(f"In how many rows of the data is it so that {condition.words}?", count, program)


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


SELECTION_TEMPLATES = (
    _make_selection_template("list_one", _make_pair_about_row_keys, choose_comparison_condition),
    _make_selection_template("list_value", _make_pair_about_row_keys, choose_equality_condition),
    _make_selection_template("list_both", _make_pair_about_row_keys, partial(choose_combined_condition, both=True)),
    _make_selection_template("list_either", _make_pair_about_row_keys, partial(choose_combined_condition, both=False)),
    _make_selection_template("count_one", _make_pair_about_row_count, choose_comparison_condition),
    _make_selection_template("count_both", _make_pair_about_row_count, partial(choose_combined_condition, both=True)),
)


# ruff: noqa: RUF001 - Chinese punctuation
COMMAS = ",，"

Q, C = '"([^"]+)"', r"(.+)"  # Regular expressions for a quoted name or cell, and for a condition.
STATISTICS = {
    "sum": "总和",
    "mean": "平均值",
    "median": "中位数",
    "greatest value": "最大值",
    "smallest value": "最小值",
    "sample standard deviation": "样本标准差",
}
COMPARISONS = {"greater than": "大于", "less than": "小于", "at least": "不小于", "at most": "不大于"}
SIDES = {"below": "下方", "above": "上方"}
EXTREMES = {"greatest": "最大", "smallest": "最小"}
DECIMALS = r", rounded to (\d) decimals"
S = f"({'|'.join(STATISTICS)})"
FORMS = {
    r"What is in row (\d+) of the data, column (\d+)\?": "数据的第{0}行、第{1}列是什么？",
    rf"What is in row (\d+) of the data in the column {Q}\?": "数据的第{0}行中，“{1}”列的内容是什么？",
    rf"What is in the cell directly (below|above) {Q}\?": "“{1}”正{0}的单元格里是什么？",
    rf"What is in the column {Q} where {Q} is {Q}\?": "“{1}”为“{2}”的那一行中，“{0}”列的内容是什么？",
    rf"In which row of the data is {Q} in the column {Q}\?": "“{0}”位于“{1}”列的数据的第几行？",
    rf"Which column is called {Q}, counted from the left\?": "名为“{0}”的列从左数是第几列？",
    rf"What is the name of the column directly to the right of {Q}\?": "“{0}”列右边紧邻的列叫什么名称？",
    rf"Which values has the column {Q} where {C}\?": "在{1}的行中，“{0}”列有哪些值？",
    rf"In how many rows of the data is it so that {C}\?": "数据中有多少行满足{0}？",
    rf"What is the {S} of the column {Q}{DECIMALS}\?": "“{1}”列的{0}是多少（保留{2}位小数）？",
    rf"What is the {S} of the column {Q} over the rows where {C}{DECIMALS}\?": (
        "在{2}的行中，“{1}”列的{0}是多少（保留{3}位小数）？"
    ),
    rf"What percentage of the sum of {Q} is in the rows where {C}{DECIMALS}\?": (
        "{1}的行占“{0}”列总和的百分之多少（保留{2}位小数）？"
    ),
    rf"Which value has the column {Q} in the row with the (greatest|smallest) value of {Q}\?": (
        "“{2}”{1}的那一行中，“{0}”列的值是什么？"
    ),
    rf"How many different values are in the column {Q}, empty cells aside\?": "不计空单元格，“{0}”列有多少个不同的值？",
    rf"What is the rank of the row where {Q} is {Q} by {Q}, that is, one more than the number of "
    r"rows with a greater value\?": "按“{2}”从大到小，“{0}”为“{1}”的行排第几（即该列值更大的行数加一）？",
    rf"For which value of the column {Q} is the mean of {Q} greatest\?": "“{0}”列取哪个值时，“{1}”的平均值最大？",
    rf"What is Pearson's correlation of the columns {Q} and {Q}{DECIMALS}\?": (
        "“{0}”列与“{1}”列的皮尔逊相关系数是多少（保留{2}位小数）？"
    ),
    rf"Is the column {Q} compatible with a normal distribution \(Shapiro-Wilk test, 5% level\)\?": (
        "“{0}”列是否符合正态分布（Shapiro-Wilk检验，5%显著性水平）？"
    ),
    rf"What is the statistic W of the Shapiro-Wilk test for the column {Q}{DECIMALS}\?": (
        "对“{0}”列做Shapiro-Wilk检验，统计量W是多少（保留{1}位小数）？"
    ),
    rf"Is the column {Q} compatible with a uniform distribution between its smallest and its greatest value "
    r"\(Kolmogorov-Smirnov test, 5% level\)\?": (
        "“{0}”列是否符合其最小值与最大值之间的均匀分布（Kolmogorov-Smirnov检验，5%显著性水平）？"
    ),
    rf"What is the skewness of the column {Q} \(adjusted Fisher-Pearson\){DECIMALS}\?": (
        "“{0}”列的偏度（调整后的Fisher-Pearson）是多少（保留{1}位小数）？"
    ),
    rf"Are the values of the column {Q} equally frequent \(chi-square test, 5% level\)\?": (
        "“{0}”列各个值的出现次数是否相等（卡方检验，5%显著性水平）？"
    ),
}
ENDINGS = {
    " Yes or No? Answer with that only.": "只回答“是”或“否”。",
    " Answer with the number only.": "只回答数字。",
    " Answer with that only.": "只回答该内容。",
    f"{LISTED}.": "按表中的顺序只列出这些值，用逗号分隔。",
    f"{LISTED}{QUOTED}.": "按表中的顺序只列出这些值，用逗号分隔，含逗号的值加双引号。",
}
_WORDS = STATISTICS | SIDES | EXTREMES
_COMPARED = re.compile(rf"{Q} is ({'|'.join(COMPARISONS)}) (\S+)")
_EQUAL = re.compile(f"{Q} is {Q}")


def has_chinese_names(sheet: Sheet) -> bool:
    """Tell whether more than half of a table's columns have Chinese names."""
    return 2 * sum(bool(HAN.search(name)) for name in sheet.column_names) > len(sheet.column_names)


def translate_pair(pair: TemplatePair) -> TemplatePair:
    """Translate a pair's question into Chinese, and also "Yes" and "No" in its answer and program.

    Return the pair unchanged if the question cannot be translated.
    """
    question = _translate_to_chinese(pair.question)
    if question is None:
        return pair
    if "Yes or No?" not in pair.question:
        return replace(pair, question=question)
    program = pair.program.replace("print('Yes' if", "print('是' if").replace("else 'No')", "else '否')")
    return replace(pair, question=question, answer={"Yes": "是", "No": "否"}[pair.answer], program=program)


def _translate_to_chinese(question: str) -> str | None:
    ending = next(ending for ending in ENDINGS if question.endswith(ending))
    words = question.removesuffix(ending)
    for form, chinese in FORMS.items():
        if match := re.fullmatch(form, words):
            parts = [_translate_name_or_condition(part) for part in match.groups()]
            return None if None in parts else chinese.format(*parts) + ENDINGS[ending]
    return None


def _translate_name_or_condition(text: str) -> str | None:
    """Translate a name, a number, a word or a condition; None if a condition has an unknown part."""
    if '"' not in text:
        return _WORDS.get(text, text)
    for word, chinese in ((" and ", "且"), (" or ", "或")):
        if word in text:
            both = [_translate_name_or_condition(each) for each in text.split(word)]
            return None if None in both else chinese.join(filter(None, both))
    if match := _COMPARED.fullmatch(text):
        return f"“{match[1]}”{COMPARISONS[match[2]]}{match[3]}"
    match = _EQUAL.fullmatch(text)
    return f"“{match[1]}”为“{match[2]}”" if match else None
