"""Public facts about a table: its attributes, their domains and hierarchies, and regions of its cells."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
