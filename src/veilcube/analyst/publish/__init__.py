"""A site of a release that needs no server: its answers are computed in the browser, as Python computes them."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
