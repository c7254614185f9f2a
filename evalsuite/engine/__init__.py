"""Runs a benchmark: cases, the window of cases in flight, scores, records, the run's gateway and journal."""
