"""Judges are models that score answers. Each function makes a scorer: `scorers=[panel(["critic", "scientist"])]`."""

from evalsuite.core.entry_points import attach_names

__getattr__, __dir__, __all__ = attach_names(__name__, __file__, {"conversation": "each_turn"})
