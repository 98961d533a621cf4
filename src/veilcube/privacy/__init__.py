"""The promise: neighbours, units, budgets, events and what they cost, and the law of the noise."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
