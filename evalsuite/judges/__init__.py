"""Judges: models that score answers. Each function makes a scorer: `scorers=[panel(["critic", "scientist"])]`."""

from evalsuite.judges.criteria import Checklist, Each, Likert, Tree, YesNo
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
