"""What any room may use: compiled loops, array types, arguments as callers pass them, memory, files."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
