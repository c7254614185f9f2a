"""Builders for `evalsuite build NAME`: each makes the data of one benchmark from source files."""
