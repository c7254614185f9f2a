"""The 26 subtasks of TReB: names, skills, modes, titles in prompts (arXiv 2506.18421, Table 1)."""

from __future__ import annotations

import re
from dataclasses import dataclass

# The column order of the paper's Tables 2, 3 and 5.
SKILLS = {
    "NLU": "Natural Language Understanding",
    "TU": "Table Understanding",
    "TBO": "Table Basic Operation",
    "TCO": "Table Computational Operation",
    "DA": "Data Analysis",
    "ADA": "Advanced Data Analysis",
}
TCOT, POT, ICOT = "TCoT", "PoT", "ICoT"
# The paper's column for each tag `mode`. `tcot` is for questions without a table, where the prompts with Markdown
# and with HTML would be equal.
COLUMN_OF = {"tcot": TCOT, "tcot_markdown": TCOT, "tcot_html": TCOT, "pot": POT, "icot": ICOT}
TABLE_MODES = ("tcot_markdown", "tcot_html", "pot", "icot")
TEXT_MODES = ("tcot_markdown", "tcot_html")


@dataclass(frozen=True, slots=True)
class Subtask:
    """A subtask of TReB.

    Attributes:
        file: the stem of its official file and the first part of its records' ids.
        programs: whether it also runs in PoT and ICoT.
        titled: whether the prompt shows the table's title.
    """

    file: str
    skill: str
    table: bool = True
    programs: bool = True
    titled: bool = False

    @property
    def name(self) -> str:
        """Return the name for readers: `Table Fact Checking`."""
        return self.file.replace("_", " ")

    @property
    def modes(self) -> tuple[str, ...]:
        """Return the modes that it runs in, as tags of samples."""
        if not self.table:
            return ("tcot",)
        return TABLE_MODES if self.programs else TEXT_MODES


def _language(file: str) -> Subtask:
    return Subtask(file, "NLU", table=False, programs=False)


SUBTASKS = (
    _language("Understanding"),
    _language("Instruction_Following"),
    _language("Hallucination_Evaluation"),
    _language("Robustness_Evaluation"),
    _language("Code_Generation"),
    _language("Mathematical_Reasoning"),
    Subtask("Table_Retrieval", "TU", titled=True),
    Subtask("Table_Summary", "TU", programs=False, titled=True),
    Subtask("Table_Column_Naming", "TU", programs=False),
    Subtask("Table_Title_Naming", "TU", programs=False),
    Subtask("Table_Fact_Checking", "TU", titled=True),
    Subtask("Table_Plausibility_Verification", "TU", programs=False, titled=True),
    Subtask("Table_Query", "TBO"),
    Subtask("Table_Selection", "TBO"),
    Subtask("Table_General_Operations", "TCO"),
    Subtask("Table_Domain-specific_Operations", "TCO", titled=True),
    Subtask("Table_Outlier_Detection", "DA"),
    Subtask("Table_Correlation_Analysis", "DA"),
    Subtask("Table_Hypothesis_Testing", "DA"),
    Subtask("Table_Distribution_Testing", "DA"),
    Subtask("Multi-step_Retrieval", "ADA"),
    Subtask("Multi-step_Fact_Checking", "ADA"),
    Subtask("Multi-step_Operations", "ADA"),
    Subtask("Multi-step_Correlation_Analysis", "ADA"),
    Subtask("Multi-step_Hypothesis_Testing", "ADA"),
    Subtask("Multi-step_Conditional_Calculation", "ADA"),
)


def find_subtask(written: str) -> Subtask | None:
    """Find the subtask by a file's stem or the first part of a record's id, ignoring case, dashes and the plural."""
    return _BY_LETTERS.get(_letters(written))


def _letters(written: str) -> str:
    # Paper and files differ in the plural ("Operation", "Operations").
    return re.sub(r"[^a-z]", "", written.lower()).rstrip("s")


_BY_LETTERS = {_letters(subtask.file): subtask for subtask in SUBTASKS}
# The skill x mode columns of the paper's Tables 2 and 3, as (skill, mode).
COLUMNS = tuple(
    (skill, column)
    for skill in SKILLS
    for column in dict.fromkeys(
        COLUMN_OF[mode] for subtask in SUBTASKS if subtask.skill == skill for mode in subtask.modes
    )
)
