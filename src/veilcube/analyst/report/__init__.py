"""The report of a release: a page with charts and intervals, a picture, and the release card."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
