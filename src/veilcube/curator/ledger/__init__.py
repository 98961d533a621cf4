"""The budget ledger: what was promised about each dataset, what was spent, the proof of a charge, and answers given."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
