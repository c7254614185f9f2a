"""Decisions based on results: gates, comparisons with baselines, early stops, and the verdict."""
