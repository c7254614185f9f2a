"""Does a model know how proverbs end?"""
