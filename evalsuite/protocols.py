"""Protocols of the solvers and scorers that users write, and of the models that solvers and scorers call."""

from evalsuite.core.protocols import JudgedScorer, Model, Scorer, Solver
from evalsuite.core.types import Completion, Request, Usage

__all__ = ["Completion", "JudgedScorer", "Model", "Request", "Scorer", "Solver", "Usage"]
