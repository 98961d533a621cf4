"""What models of past answers share: what they learn from, priors, kernels, conditioning, the choice of alpha."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
