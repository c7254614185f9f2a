"""TReB made from tables of one's own: `evalsuite build treb TABLES --to DIR`.

Question-answer pairs are made by templates; each is answered twice, in plain Python and by a program, and
kept where both agree.
"""

from __future__ import annotations

from evalsuite.builders.treb.command import add_arguments, run

__all__ = ["add_arguments", "run"]
