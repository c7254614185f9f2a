"""The names of ToolEyes' scores, and which variant of its formulas a mode uses."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evalsuite.core.types import Sample

RULES = ("format_alignment", "reality", "finished")
"""Scores that need no judge."""
CAPABILITIES = (
    "format_alignment",
    "intent_comprehension",
    "behaviour_planning",
    "tool_selection",
    "answer_organisation",
)
"""The paper's five capabilities, of which `OVERALL` is the mean."""
SUB_SCORES = ("validity", "integrity", "reality", "match", "finished", "quality")
"""What behaviour planning, tool selection and answer organisation are products of, in pairs."""
OVERALL = "overall"
RELEASED_MODES = ("released", "released_5shot")
"""Modes that ask and score as the authors' released code does, from their own prompts."""


def is_released(sample: Sample) -> bool:
    """Whether a sample is asked and scored as the released code does."""
    return sample.tags["mode"] in RELEASED_MODES
