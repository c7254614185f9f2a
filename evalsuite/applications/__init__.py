"""Ways of an application under test to its model: clients of the openai package, an endpoint."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
