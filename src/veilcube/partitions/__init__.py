"""Regions of cells, found in NOISY cells: both sides of the wall may compute them from what is published."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
