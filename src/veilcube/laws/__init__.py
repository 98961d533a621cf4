"""Noise as mathematics: its laws, sums of it, tails and quantiles; no promise is made here."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
