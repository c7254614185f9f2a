"""Evaluate metrics: how well they agree with people, and how they respond to known changes of tables."""
