"""What every room of the service knows: its settings, names that are safe in paths, and refusals."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
