from .estimate import Estimate
from .rows import Row
from .runs import load_run
from .tally import RunView, Tally

__all__ = [
    "Estimate",
    "Row",
    "RunView",
    "Tally",
    "load_run",
]
