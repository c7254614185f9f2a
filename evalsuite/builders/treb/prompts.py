"""Subtasks for which models make questions, and the models' prompts; tasks and criteria follow arXiv 2506.18421."""

from __future__ import annotations

# For each subtask (by the stem of its file name), the task about which models write questions. The tasks follow arXiv
# 2506.18421, Table 1 and appendix.
BRIEFS = {
    "Table_General_Operations": "calculate a statistic of a column, perhaps of some rows: a sum, a mean, a share",
    "Table_Retrieval": "find one fact of the table from a description of its row and column",
    "Table_Fact_Checking": "state something about the table that is true or false, and ask whether it is; the "
    "answer is True or False",
    "Table_Summary": "ask for a summary of the table; the answer is one, of at most 100 words",
    "Table_Title_Naming": "ask for a title of the table; the answer is a fitting one",
    "Table_Plausibility_Verification": "ask whether a value, a unit or a relation in the table is plausible, and "
    "why; the answer says so",
    "Table_Domain-specific_Operations": "apply a formula of the table's own field (finance, sport, medicine, ...) "
    "to its cells; the question names it",
    "Table_Outlier_Detection": "find outliers of a column by a rule that the question states",
    "Table_Correlation_Analysis": "measure how two columns go together, by a coefficient that is named",
    "Table_Hypothesis_Testing": "test a hypothesis about columns, by a named test at a named level",
    "Multi-step_Retrieval": "find a cell over several dependent look-ups",
    "Multi-step_Fact_Checking": "check a statement that takes several calculations; the answer is True or False",
    "Multi-step_Operations": "calculate a number over several dependent operations",
    "Multi-step_Correlation_Analysis": "derive two columns and then measure how they go together",
    "Multi-step_Hypothesis_Testing": "select or derive groups, then test a hypothesis by a named test",
    "Multi-step_Conditional_Calculation": "calculate a number whose formula depends on conditions in the data",
}
# The subtasks whose answers the author writes, because no program can compute them.
WRITTEN = {"Table_Summary", "Table_Title_Naming", "Table_Plausibility_Verification"}
STEPS = 3  # Minimum number of steps in the chain that leads to a question's answer.
FULL = 5  # The best mark that a discriminator (a model that rates questions) can give.
COLUMN_NAMING = "Table_Column_Naming"
TASKS = BRIEFS | {
    COLUMN_NAMING: "name a column that has lost its name",
    "Table_Query": "give the cell, row or column at a place that the question names",
    "Table_Selection": "list or count the rows that meet conditions",
    "Table_Distribution_Testing": "test or describe how the values of one column are distributed",
}
# Subtasks for which the author model invents the table (section 2.3 of the paper), and topics for such tables.
ZERO_SHOT = ("Table_General_Operations", "Table_Summary")
TOPICS = (
    *("retail", "weather", "schools", "hospitals", "railways"),
    *("farming", "energy", "football", "libraries", "banking"),
)

AUTHOR = """\
You write questions for a benchmark about tables. {given} Write one question about the table of this kind: {task}.

First think of the chain: at least {steps} steps, each of which needs the one before. Then write the long question, \
which spells the steps out, and the question itself, which asks for the same in one or two sentences and still has \
exactly one answer. It must be a question that somebody with this table would ask. Say in it how the answer is to be \
written: how many decimals, which of several, in which order. Write in the language of the table.{last}

Reply with one JSON object that has the keys {keys}; "chain" is a list of texts, everything else is text.

{table}"""
INVENTION_PROMPT = (
    'Invent a table about {topic} and give it under "table" as comma-separated values: one header row, a column of '
    "names, at least two columns of numbers, 8 to 15 rows, no totals."
)
LAST = {
    "program": ' Under "program", write Python that finds the table as the pandas DataFrame `df`, and prints the '
    "answer and nothing else.",
    "answer": ' Under "answer", write the answer.',
}

PROGRAMMER = """\
Answer a question about a table, which a program finds as the pandas DataFrame `df`. Write one complete program in a \
```python block that prints the answer and nothing else.

{table}

Question: {question}"""
ANSWERER = """\
Answer a question about a table, in the language of the question. Write the answer and nothing else.

{table}

Question: {question}"""

# The paper's names of the criteria for single-step questions and for chains of steps, with evalsuite's own definitions.
MARKS = {
    "accuracy": "the answer is right and complete by the table alone",
    "relevance": "the question has exactly one answer, and somebody with this table would ask it",
    "coverage": "the question is of the kind that was wanted",
}
CHAIN_MARKS = {
    "plausibility": "somebody with this table would ask both the question and the long question",
    "consistency": "both ask for the same, every step is needed, and the steps are of the kind that was wanted",
    "answerability": "both have exactly one answer by the table alone, and the answer given is right",
}
DISCRIMINATOR = """\
You check questions for a benchmark about tables. The kind that was wanted: {task}. Give a mark from 1 to {full} for \
each of these, {full} only if it holds without exception:
{marks}

{table}

Question: {question}
Long question: {long_question}
Answer: {answer}
Steps: {chain}

Reply with a JSON object and nothing else: {{{keys}, "reason": "in a few words"}}"""
COMPARER = """\
Compare answers to a question about a table by what they say, not by their words.

{table}

Question: {question}
Reference: {answer}
Answers: {others}

Reply with a JSON object and nothing else: {{"same": [for each answer in order, true if it says the same as the \
reference, else false], "all_agree": true if all answers say the same as each other, else false}}"""
CLASSIFIER = """\
Which kind of question about a table is this? Kinds whose name begins with "Multi-step" are for questions of at least \
three dependent steps.
{kinds}

Question: {question}
Steps: {chain}

Reply with a JSON object and nothing else: {{"kind": "the name of one kind"}}"""
ENGLISH = (
    'Column {number} of the table has lost its name and is shown as "{stand_in}". What should it be called? Answer '
    "with the name only."
)
CHINESE = "表格第{number}列的名称丢失了，显示为“{stand_in}”。这一列应当叫什么？只回答名称。"  # noqa: RUF001 - Chinese signs
