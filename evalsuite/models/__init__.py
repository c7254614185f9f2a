"""Backends of models: each file implements one backend of a small common protocol."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
