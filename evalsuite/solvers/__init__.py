"""Solvers: they turn a sample into a transcript."""
