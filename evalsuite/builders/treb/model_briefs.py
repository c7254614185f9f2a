"""What models are asked when they make questions: one brief a subtask, and the prompts of author, voter and judge."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Brief:
    """A subtask that no template can make questions for.

    Attributes:
        task: what a question of it asks for.
        proven: whether a program can find the answer, which is then kept only if programs agree on it.
    """

    task: str
    proven: bool = True


# By the stem of the subtask's file. The kinds are the paper's (arXiv 2506.18421, Table 1 and appendix); for Column
# Naming see `column_naming`.
BRIEFS = {
    "Table_Retrieval": Brief("find one fact of the table from a description of its row and column"),
    "Table_Fact_Checking": Brief(
        "state something about the table that is true or false, and ask whether it is; the answer is True or False"
    ),
    "Table_Summary": Brief(
        "ask for a summary of the table; the answer is one, of at most 100 words", proven=False
    ),
    "Table_Title_Naming": Brief("ask for a title of the table; the answer is a fitting one", proven=False),
    "Table_Plausibility_Verification": Brief(
        "ask whether a value, a unit or a relation in the table is plausible, and why; the answer says so",
        proven=False,
    ),
    "Table_Domain-specific_Operations": Brief(
        "apply a formula of the table's own field (finance, sport, medicine, ...) to its cells; the question names it"
    ),
    "Table_Outlier_Detection": Brief("find outliers of a column by a rule that the question states"),
    "Table_Correlation_Analysis": Brief(
        "measure how two columns go together, by a coefficient that is named"
    ),
    "Table_Hypothesis_Testing": Brief("test a hypothesis about columns, by a named test at a named level"),
    "Multi-step_Retrieval": Brief("find a cell over several dependent look-ups"),
    "Multi-step_Fact_Checking": Brief(
        "check a statement that takes several calculations; the answer is True or False"
    ),
    "Multi-step_Operations": Brief("calculate a number over several dependent operations"),
    "Multi-step_Correlation_Analysis": Brief("derive two columns and then measure how they go together"),
    "Multi-step_Hypothesis_Testing": Brief("select or derive groups, then test a hypothesis by a named test"),
    "Multi-step_Conditional_Calculation": Brief(
        "calculate a number whose formula depends on conditions in the data"
    ),
}
STEPS = 3

AUTHOR = """\
You write questions for a benchmark about tables. Below is a table, which a program finds as the pandas DataFrame \
`df`. Write one question of this kind: {task}.

First think of the chain: at least {steps} steps, each of which needs the one before. Then write the long question, \
which spells the steps out, and the question itself, which asks for the same in one or two sentences and still has \
exactly one answer. It must be a question that somebody with this table would ask. Say in it how the answer is to be \
written: how many decimals, which of several, in which order. Write in the language of the table.

Reply with a JSON object and {ending}
```json
{{"chain": ["...", "..."], "long_question": "...", "question": "..."{answer}}}
```{program}

{table}"""
PROGRAM = """
```python
print(...)
```"""

VOTER = """\
Answer a question about a table, which a program finds as the pandas DataFrame `df`. Write one complete program in a \
```python block that prints the answer and nothing else.

{table}

Question: {question}"""

DISCRIMINATOR = """\
You check questions for a benchmark about tables. Keep a question only if all of this is true: it can be answered \
from the table alone; it has exactly one right answer, and says how that is to be written; somebody with this table \
would ask it; it is of this kind: {task}; {last}.

{table}

Question: {question}
Answer: {answer}
Steps: {chain}

Reply with a JSON object and nothing else: {{"keep": true or false, "reason": "in a few words"}}"""
