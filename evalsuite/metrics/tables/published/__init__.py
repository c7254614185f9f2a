"""Table metrics of other papers, from the same readers: TEDS, GriTS, RMS, and F1 of headers and cells.

Each takes a prediction and a reference in markup and gives a number in [0, 1]. Of several tables each wanted one
is compared with the predicted one that `table_score` pairs it with, and the mean is given.
"""

from __future__ import annotations

from evalsuite.metrics.tables.published.cell_f1 import CellF1, cell_f1
from evalsuite.metrics.tables.published.grits import grits_content, grits_topology
from evalsuite.metrics.tables.published.rms import rms
from evalsuite.metrics.tables.published.teds import teds, teds_structure

__all__ = ["CellF1", "cell_f1", "grits_content", "grits_topology", "rms", "teds", "teds_structure"]
