from .protocol import Backend, RateLimited, Transient

__all__ = ["Backend", "RateLimited", "Transient"]
