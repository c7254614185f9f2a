"""What an application under test gets: the model of its case, clients of the openai package, an endpoint."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
