"""The pages, one module a subject: each is a URL, and the same with .json."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
