"""Questions beyond single counts: by group, shares, contrasts, linear queries, spread, SQL statements, parts."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
