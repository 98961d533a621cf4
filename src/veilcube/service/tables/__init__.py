"""Datasets that curators registered, the budgets that stand before them, and questions that analysts pay for."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
