"""Private tables, wherever they are, opened for counting."""

from veilcube.curator.tables.engine import Engine
from veilcube.curator.tables.sources import open_table
from veilcube.curator.tables.table import LOST_DIGITS, Column, Part, Table, always, shielded

__all__ = ["LOST_DIGITS", "Column", "Engine", "Part", "Table", "always", "open_table", "shielded"]
