"""What every operator shares: the protocol, axes of products, moments of noise weights, sums over blocks."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
