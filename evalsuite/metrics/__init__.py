"""Pure functions: no I/O, no pytest, no model."""
