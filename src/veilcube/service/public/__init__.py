"""What anybody with a key may read: releases, schemas and plans, and how questions to them are written."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
