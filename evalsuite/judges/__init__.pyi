from .criteria import Checklist, Each, Likert, Tree, YesNo
from .forms import Aspect
from .panels import DebaterRole
from .rubrics import each_turn, factual, faithful, follows, relevant, rubric
from .scorers import JudgeScorer, multiple_evidence, pairwise, panel, single, weighted

__all__ = [
    "Aspect",
    "Checklist",
    "DebaterRole",
    "Each",
    "JudgeScorer",
    "Likert",
    "Tree",
    "YesNo",
    "each_turn",
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
