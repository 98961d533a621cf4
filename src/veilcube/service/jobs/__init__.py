"""Releases that are made in the background: planned and confirmed here, carried out by a process of their own."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
