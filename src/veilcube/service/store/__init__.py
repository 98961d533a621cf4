"""What the service keeps in its folder: keys, sessions, datasets, jobs, questions, and a log that only grows."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
