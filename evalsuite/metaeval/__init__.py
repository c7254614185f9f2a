"""Metrics measured themselves: how well they agree with people, and what they make of known changes."""
