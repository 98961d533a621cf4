"""What all pages share: each is HTML for people and JSON for programs, with one shape of errors."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
