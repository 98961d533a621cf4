"""The public artifact as plain data: noisy measurements, the record that holds them, and its file."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
