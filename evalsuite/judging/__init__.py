"""Models that score: prompts, parsing, panels.

Each of these makes a scorer in one line: `scorers=[panel(["critic", "scientist"], turns=2)]`.
"""

from evalsuite.judging.checklists import Checklist, Tree
from evalsuite.judging.criteria import Likert, YesNo
from evalsuite.judging.each_item import Each
from evalsuite.judging.forms import Aspect
from evalsuite.judging.judge_scorer import JudgeScorer
from evalsuite.judging.ready_rubrics import conversation, factual, faithful, follows, relevant
from evalsuite.judging.roles import DebaterRole
from evalsuite.judging.rubrics import rubric
from evalsuite.judging.scorers import (
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
