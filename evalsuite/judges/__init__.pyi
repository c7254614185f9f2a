from .criteria import Checklist, Each, Tree, YesNo
from .forms import Likert
from .panels import DebaterRole
from .rubrics import (
    citations,
    context_precision,
    context_recall,
    each_turn,
    factual,
    faithful,
    follows,
    multiple_evidence,
    pairwise,
    relevant,
    rubric,
    single,
    weighted,
)
from .scorers import JudgeScorer, panel

__all__ = [
    "Checklist",
    "DebaterRole",
    "Each",
    "JudgeScorer",
    "Likert",
    "Tree",
    "YesNo",
    "citations",
    "context_precision",
    "context_recall",
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
