"""Refinement: answers made to obey known facts, and what facts that depend on the data cost in privacy."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
