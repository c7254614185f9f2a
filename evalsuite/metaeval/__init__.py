"""Measures metrics: their agreement with people, and how they respond to known changes."""
