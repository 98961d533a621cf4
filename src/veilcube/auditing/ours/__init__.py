"""Audits of veilcube's own mechanisms, by name, on every small table of six cells."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
