"""TReB's templates for Table Query and Table Selection, and functions that make questions in English and Chinese."""

# ruff: noqa: RUF001 - Chinese punctuation

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from random import Random

from evalsuite.builders.treb.sheet import Sheet, is_number
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


QUERY_TEMPLATES = (
    *(_ask_cell_by_position, _ask_cell_by_name, _ask_neighbour, _ask_same_row, _ask_row_of, _ask_column_number),
    _ask_next_column,
)


def _make_number_or_text_pair(form: Phrase, parts: Parts, cell: str | None, program: str) -> TemplatePair | None:
    if cell and is_number(cell):
        return make_number_pair(form, parts, float(cell), program)
    return make_text_pair(form, parts, cell, program) if cell else None


MOST_LISTED = 12
COMMAS = ",，"
LISTED = (
    " Answer with them only, in the order of the table, separated by commas",
    "按表中的顺序只列出这些值，用逗号分隔",
)
PLAIN, QUOTED = (".", "。"), (", those that have commas in quotation marks.", "，含逗号的值加双引号。")


@dataclass(frozen=True, slots=True)
class RowCondition:
    """A condition on rows as words (`"Rating" is at least 4`), as a pandas mask, and as a function of a row's index."""

    words: Phrase
    program: str
    holds: Callable[[int], bool]


def choose_equality_condition(sheet: Sheet, random: Random) -> RowCondition | None:
    """Make a condition that a column equals one of its recurring values; None if no column has recurring values."""
    if not sheet.grouping_columns:
        return None
    name = random.choice(list(sheet.grouping_columns))
    value, cells = random.choice(sheet.grouping_columns[name]), sheet.columns[name]
    words = (f'"{name}" is "{value}"', f"“{name}”为“{value}”")
    return RowCondition(words, f"df[{name!r}] == {value!r}", lambda row: cells[row] == value)


def choose_comparison_condition(sheet: Sheet, random: Random) -> RowCondition | None:
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


def choose_combined_condition(sheet: Sheet, random: Random, *, both: bool) -> RowCondition | None:
    """Combine an equality and a comparison: by "and" if `both` is true, otherwise by "or"."""
    text, number = choose_equality_condition(sheet, random), choose_comparison_condition(sheet, random)
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
    # Quote keys that contain commas; no escaping is needed, because no key contains a quotation mark.
    shown, quoted = f"df.loc[{condition.program}, {sheet.key_column!r}].astype(str)", PLAIN
    if any(set(COMMAS) & set(cell or "") for cell in sheet.columns[sheet.key_column]):
        keys = [f'"{key}"' if set(COMMAS) & set(key) else key for key in keys]
        shown = f"(f'\"{{key}}\"' if set({COMMAS!r}) & set(key) else key for key in {shown})"
        quoted = QUOTED
    form = ('Which values has the column "{}" where {}?', "在{1}的行中，“{0}”列有哪些值？")
    ending = (LISTED[0] + quoted[0], LISTED[1] + quoted[1])
    parts, program = (sheet.key_column, condition.words), f"print(', '.join({shown}))"
    return make_text_pair(form, parts, ", ".join(keys), program, ending)


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


SELECTION_TEMPLATES = (
    _make_selection_template("list_one", _make_pair_about_row_keys, choose_comparison_condition),
    _make_selection_template("list_value", _make_pair_about_row_keys, choose_equality_condition),
    _make_selection_template("list_both", _make_pair_about_row_keys, partial(choose_combined_condition, both=True)),
    _make_selection_template("list_either", _make_pair_about_row_keys, partial(choose_combined_condition, both=False)),
    _make_selection_template("count_one", _make_pair_about_row_count, choose_comparison_condition),
    _make_selection_template("count_both", _make_pair_about_row_count, partial(choose_combined_condition, both=True)),
)
