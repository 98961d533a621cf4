"""Whole releases refined, with facts that are given or stored in a file; loaded when there are any."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
