"""What a run leaves behind and what is read off it: records, runs, tallies."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
