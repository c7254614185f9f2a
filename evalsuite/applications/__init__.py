"""Gives an application under test access to its model, through clients of the openai package or an HTTP endpoint."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
