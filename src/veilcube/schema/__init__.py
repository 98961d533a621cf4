"""Public facts about a table: its attributes, their domains and hierarchies, and regions of its cells."""

from veilcube.schema.attribute import Attribute, Nominal, Ordinal
from veilcube.schema.divisions import Bins, Calendar, Division, WholeNumbers, read_date
from veilcube.schema.hierarchy import Hierarchy, Node
from veilcube.schema.region import Box, Region
from veilcube.schema.schema import Schema, require_schema

__all__ = [
    "Attribute",
    "Bins",
    "Box",
    "Calendar",
    "Division",
    "Hierarchy",
    "Node",
    "Nominal",
    "Ordinal",
    "Region",
    "Schema",
    "WholeNumbers",
    "read_date",
    "require_schema",
]
