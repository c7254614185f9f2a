"""Metrics over all cases of a benchmark, for `@benchmark(..., metrics=[...])`."""

from evalsuite.output.reports.generic import auroc, calibration_error, confusion_matrix, macro_f1, micro_f1, spearman

__all__ = ["auroc", "calibration_error", "confusion_matrix", "macro_f1", "micro_f1", "spearman"]
