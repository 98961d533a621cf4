"""The posterior of a tree of counts, from published values only: for a staged tree's stops and answers alike."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
