"""What a ledger holds, read exactly from its rows and checked: accounts, charges, shares, parts, answers, the chain."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
