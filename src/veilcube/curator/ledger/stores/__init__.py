"""Where a ledger is kept: one SQLite file, with its key and a note beside it, or a PostgreSQL database."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
