from .runs import load_run
from .tally import Estimate, Row, RunView, Tally

__all__ = ["Estimate", "Row", "RunView", "Tally", "load_run"]
