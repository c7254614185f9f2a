"""Scorers turn a sample and its transcript into named scores, by rules."""

from evalsuite.core.entry_points import attach_names

__getattr__, __dir__, __all__ = attach_names(__name__, __file__, {"calls": "tool_calls"})
