"""Counting where the table lies: one SQL statement that a database, or Spark, carries out.  PRIVATE."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
