"""Grouped tables: every attribute first, then the tables that are worth measuring."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
