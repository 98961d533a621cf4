"""A service from the outside: ``connect`` gives releases and protected tables that are asked as local ones are."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
