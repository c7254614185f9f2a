"""Decisions based on results: gates, the comparison with a baseline, early stops, the verdict."""
