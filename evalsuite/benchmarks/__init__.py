"""The published benchmarks, and the readers of their files."""
