"""The public side: everything that reads a release. Nothing here can cost privacy."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
