"""A benchmark of proverbs: does a model know how they end?"""
