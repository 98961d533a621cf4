"""Estimates linear in the measurements, and what is made of them: least squares, non-negative, thresholded."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
