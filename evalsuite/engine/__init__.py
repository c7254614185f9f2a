"""Runs benchmarks: makes, solves and scores their cases, stores records, and opens the run's gateway and journal."""
