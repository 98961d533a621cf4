"""The service: a folder of datasets, releases and budgets behind HTTP, for people and for programs."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
