"""Protected tables: questions about private rows, each paid for from a shared budget and answered with noise.

Nothing is imported here: the ledger reads stored questions with modules of this package, and others use the ledger."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
