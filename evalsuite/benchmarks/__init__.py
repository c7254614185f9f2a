"""Published benchmarks, and readers for their data files."""
