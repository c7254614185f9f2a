"""Criteria from how a case writes them: a question, a list, weights, a tree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from evalsuite.core.errors import ScoringError, SettingsError
from evalsuite.judges.checklists import Checklist, Tree
from evalsuite.judges.criteria import Likert, YesNo

if TYPE_CHECKING:
    from evalsuite.core.types import Sample
    from evalsuite.judges.criteria import Criteria


def as_criteria(
    criteria: str | Sequence[str] | Mapping[str, Any] | Criteria,
    scale: tuple[int, int] | None = None,
    anchors: Mapping[int, str] | None = None,
) -> Criteria:
    """Criteria from how a case writes them; see `rubric`."""
    if isinstance(criteria, str):
        if scale or anchors:
            low, high = scale or (min(anchors or ()), max(anchors or ()))
            return Likert(criteria, low, high, anchors or {})
        return YesNo(criteria)
    if scale or anchors:
        raise SettingsError("a scale belongs to one question; a checklist and a tree have none")
    if isinstance(criteria, Mapping):
        return Tree(criteria) if "question" in criteria else Checklist(criteria)
    if isinstance(criteria, Sequence):
        return Checklist(dict.fromkeys(criteria, 1.0))
    return criteria


def from_metadata(sample: Sample) -> Criteria:
    """The checklist of one sample.

    Raises:
        ScoringError: it has none.
    """
    criteria = sample.metadata.get("criteria")
    if not isinstance(criteria, (str, list, tuple, Mapping)) or not criteria:
        raise ScoringError(f"sample {sample.id} has no checklist under 'criteria' in its metadata")
    return as_criteria([criteria] if isinstance(criteria, str) else criteria)
