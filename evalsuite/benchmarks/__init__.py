"""The published benchmarks, one folder each, and the reading of their files."""
