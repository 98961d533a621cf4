"""What was asked of a protected table, as it is stored: public, and the same for the same question in other words."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
