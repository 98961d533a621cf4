"""What every estimator shares: the protocol, queries as estimators read them, adjusted answers, ratios of answers."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
