"""The maximum entropy model of past answers: fitted exactly or by Gibbs sampling, with its errors."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
