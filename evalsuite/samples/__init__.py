"""Samples: read from files, made when they are needed, with pictures and files as content."""
