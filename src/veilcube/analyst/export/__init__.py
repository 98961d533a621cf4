"""What a release gives to other programs and to people: tables of counts, in the shapes that they read."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
