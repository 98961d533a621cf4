"""Exact discrete noise, and the only code in veilcube that reads entropy."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
