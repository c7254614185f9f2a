# ruff: noqa: RUF001 - Chinese has signs of its own
"""Translates the templates' questions into Chinese, for tables whose columns have Chinese names.

Each template writes its question in one English form, which has a Chinese form here. A question that matches no form
stays English, for example because a column's name has quotation marks.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from evalsuite.metrics.text import HAN

if TYPE_CHECKING:
    from evalsuite.builders.treb.lookups import TemplatePair
    from evalsuite.builders.treb.sheet import Sheet

Q = '"([^"]+)"'
C = r"(.+)"
"""Patterns of a column's name or cell, and of a condition."""
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
    rf"What is the rank of the row where {Q} is {Q} by {Q}, the greatest value being 1\?": (
        "按“{2}”从大到小排名（最大者为第1），“{0}”为“{1}”的行排第几？"
    ),
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
    " Answer with them only, in the order of the table, separated by commas.": "按表中的顺序只列出这些值，用逗号分隔。",
}
_WORDS = STATISTICS | SIDES | EXTREMES
_COMPARED = re.compile(rf"{Q} is ({'|'.join(COMPARISONS)}) (\S+)")
_EQUAL = re.compile(f"{Q} is {Q}")


def speaks_chinese(sheet: Sheet) -> bool:
    """Tell whether more than half of a table's columns have Chinese names."""
    return 2 * sum(bool(HAN.search(name)) for name in sheet.names) > len(sheet.names)


def in_chinese(pair: TemplatePair) -> TemplatePair:
    """Translate a pair's question into Chinese; in answer and program, Yes and No become 是 and 否."""
    question = _translate(pair.question)
    if question is None:
        return pair
    if "Yes or No?" not in pair.question:
        return replace(pair, question=question)
    program = pair.program.replace("print('Yes' if", "print('是' if").replace("else 'No')", "else '否')")
    return replace(pair, question=question, answer={"Yes": "是", "No": "否"}[pair.answer], program=program)


def _translate(question: str) -> str | None:
    ending = next(ending for ending in ENDINGS if question.endswith(ending))
    words = question.removesuffix(ending)
    for form, chinese in FORMS.items():
        if match := re.fullmatch(form, words):
            parts = [_part(part) for part in match.groups()]
            return None if None in parts else chinese.format(*parts) + ENDINGS[ending]
    return None


def _part(part: str) -> str | None:
    """Translate a name, a number, a word or a condition; None if a part of a condition is unknown."""
    if '"' not in part:
        return _WORDS.get(part, part)
    for word, join in ((" and ", "且"), (" or ", "或")):
        if word in part:
            both = [_part(each) for each in part.split(word)]
            return None if None in both else join.join(filter(None, both))
    if match := _COMPARED.fullmatch(part):
        return f"“{match[1]}”{COMPARISONS[match[2]]}{match[3]}"
    match = _EQUAL.fullmatch(part)
    return f"“{match[1]}”为“{match[2]}”" if match else None
