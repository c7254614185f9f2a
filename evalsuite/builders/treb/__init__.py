"""Builds TReB from the user's tables: `evalsuite build treb TABLES --to DIR`.

Templates make question-answer pairs. Each is answered twice, in plain Python and by a program, and kept if both agree.
"""

from __future__ import annotations

from evalsuite.builders.treb.command import add_arguments, run

__all__ = ["add_arguments", "run"]
