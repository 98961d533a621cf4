"""Estimates from tables of attributes: least squares within a table, maximum entropy across tables."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
