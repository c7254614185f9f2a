"""Runs in the formats of other tools: flat rows, LaTeX, inspect's log, lm-eval's results."""
