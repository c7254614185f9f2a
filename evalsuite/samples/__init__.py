"""Samples: read from files, created on demand, with pictures and files as content."""
