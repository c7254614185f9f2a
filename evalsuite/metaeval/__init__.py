"""Evaluate metrics: by their agreement with people, and by their response to known changes."""
