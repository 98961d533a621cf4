"""Planning: from public facts to a choice of measurements with its expected error. Never sees data."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
