"""Models that score: prompts, parsing, panels.

Each of these makes a scorer in one line: `scorers=[panel(["critic", "scientist"], turns=2)]`.
"""

from evalsuite.judges.checklists import Checklist, Tree
from evalsuite.judges.criteria import Likert, YesNo
from evalsuite.judges.each_item import Each
from evalsuite.judges.forms import Aspect
from evalsuite.judges.judge_scorer import JudgeScorer
from evalsuite.judges.ready_rubrics import conversation, factual, faithful, follows, relevant
from evalsuite.judges.roles import DebaterRole
from evalsuite.judges.rubrics import rubric
from evalsuite.judges.scorers import (
    multiple_evidence,
    pairwise,
    panel,
    single,
    weighted,
)

__all__ = [
    "Aspect",
    "Checklist",
    "DebaterRole",
    "Each",
    "JudgeScorer",
    "Likert",
    "Tree",
    "YesNo",
    "conversation",
    "factual",
    "faithful",
    "follows",
    "multiple_evidence",
    "pairwise",
    "panel",
    "relevant",
    "rubric",
    "single",
    "weighted",
]
