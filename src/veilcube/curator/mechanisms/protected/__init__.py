"""Mechanisms of protected tables: where noise meets the exact values that a question asks about."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
