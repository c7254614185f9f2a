"""Records, runs and tallies: reads a run's files, and computes metrics from them."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
