"""Models that score. Each function here makes a scorer: `scorers=[panel(["critic", "scientist"], turns=2)]`."""

from evalsuite.judges.checklists import Checklist, Tree
from evalsuite.judges.criteria import Each, Likert, YesNo
from evalsuite.judges.forms import Aspect
from evalsuite.judges.panels import DebaterRole
from evalsuite.judges.rubrics import conversation, factual, faithful, follows, relevant, rubric
from evalsuite.judges.scorers import JudgeScorer, multiple_evidence, pairwise, panel, single, weighted

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
