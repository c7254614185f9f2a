"""Solvers turn a sample into a transcript."""

from evalsuite.core.entry_points import attach_names

__getattr__, __dir__, __all__ = attach_names(__name__, __file__, {"functions": "tool_loop"})
