"""What was measured about a cap, read: what each choice of ``max_rows`` keeps, and what a release's cap leaves out."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
