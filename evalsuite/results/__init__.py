"""Records, runs and tallies: the files that a run writes, and the numbers that are computed from these files."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
