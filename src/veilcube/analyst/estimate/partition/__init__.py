"""Estimates from noisy cells and the totals of parts: least squares, shrunken, observed."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
