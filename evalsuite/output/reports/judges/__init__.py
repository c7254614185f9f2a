"""How far a judge can be trusted: tables for any benchmark whose cases a judge has scored.

Each reads the facts that judges leave in records (`verdict`, `ballots`, `lengths`, `systems`, `human`) and
gives blocks for a benchmark's report.
"""

from evalsuite.output.reports.judges.agreement import agreement_table
from evalsuite.output.reports.judges.bias import bias_table
from evalsuite.output.reports.judges.blocks import judge_blocks
from evalsuite.output.reports.judges.corrected import Corrected, corrected_mean, corrected_table

__all__ = ["Corrected", "agreement_table", "bias_table", "corrected_mean", "corrected_table", "judge_blocks"]
