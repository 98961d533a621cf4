"""Where both sides meet, and the only place where they do: releases are made here, and tables put behind a budget."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
