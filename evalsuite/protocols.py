"""Shapes of what users write themselves: solvers, scorers, and the models that both ask."""

from evalsuite.core.protocols import JudgedScorer, Model, Scorer, Solver
from evalsuite.core.types import Completion, Request, Usage

__all__ = ["Completion", "JudgedScorer", "Model", "Request", "Scorer", "Solver", "Usage"]
