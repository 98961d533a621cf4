"""Audits of privacy promises: exact laws, replay, statistics. Sees both sides of the wall; only programs import it."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
