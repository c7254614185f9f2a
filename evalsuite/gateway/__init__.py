"""The one place in a run through which every model call passes."""
