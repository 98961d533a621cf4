"""Who is asking, and what they may do: keys, browser sessions, roles and limits."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
