"""A benchmark that asks how proverbs end."""
