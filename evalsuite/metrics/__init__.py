"""Pure functions, without I/O, pytest or models."""
