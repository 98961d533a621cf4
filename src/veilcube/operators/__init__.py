"""Implicit linear maps from cells to measurements, each with its sensitivity and its exact error."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
