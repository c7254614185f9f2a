"""Runs benchmarks: makes, solves and scores cases, stores their records, and opens the run's gateway and journal."""
