"""Predicates: what a person writes to choose cells, turned into a region of the cube."""

from collections.abc import Mapping, Sequence, Set
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from veilcube import query as door
from veilcube.errors import QueryError
from veilcube.schema import Attribute, Ordinal, Region, Schema

MAX_NESTING = 32

Condition: TypeAlias = object  # a value, a (low, high) range, a list or set of values, a node of a hierarchy, or None
Query: TypeAlias = Mapping[str, Condition] | str | Region


def read_query(schema: Schema, query: Query) -> Region:
    """Return the cells that a mapping of conditions, a piece of SQL, or a ready region selects.

    >>> from veilcube.schema import Nominal
    >>> schema = Schema([Ordinal("age", 17, 90), Nominal("sex", ["Female", "Male"])])
    >>> read_query(schema, {"age": (30, 39), "sex": "Female"}).cells
    10
    >>> read_query(schema, "age BETWEEN 30 AND 39 AND sex = 'Female'").cells
    10
    """
    if isinstance(query, Region):
        if query.shape != schema.shape:
            raise QueryError(f"the region is for a cube of shape {query.shape}, but the schema has {schema.shape}")
        return query
    if isinstance(query, str):
        parsed = door.read_sql(schema, query)  # by the door, since the parser takes long to load
        if parsed.group_by:
            raise QueryError("GROUP BY gives many answers; ask for it with release.count or 'veilcube query'")
        return parsed.region
    if not isinstance(query, Mapping):
        raise QueryError("a query is a mapping such as {'age': (30, 39)} or SQL text such as \"age BETWEEN 30 AND 39\"")
    region = Region.everything(schema.shape)
    for name, condition in query.items():
        axis = schema.axis(name)
        chosen = read_cells(schema.attributes[axis], condition)
        region = region.intersect(Region.on_axis(schema.shape, axis, chosen))
    return region


def read_condition(attribute: Attribute, condition: Condition) -> NDArray[np.bool_]:
    """Return the cells of one attribute that a condition selects, as a mask; see ``read_cells``."""
    chosen = read_cells(attribute, condition)
    return attribute.mask(chosen.start, chosen.stop) if isinstance(chosen, range) else chosen


def read_cells(attribute: Attribute, condition: Condition) -> NDArray[np.bool_] | range:
    """Return the cells of one attribute that a condition selects: a run of them, or a mask.

    A tuple on an ordinal attribute is an inclusive range, ``None`` at an end leaving it open; a list or a set is a set
    of values; anything else is one value or one node of a hierarchy. ``None`` alone is the cell of missing values.
    """
    if condition is None:
        if attribute.missing_cell is None:
            raise QueryError(f"'{attribute.name}' has no cell for missing values; its schema rejects them")
        return range(attribute.missing_cell, attribute.missing_cell + 1)
    if isinstance(attribute, Ordinal) and isinstance(condition, tuple):
        if len(condition) != 2:
            raise QueryError(f"a range on '{attribute.name}' is a pair (low, high); use a list for a set of values")
        return range(*attribute.cells_between(*condition))
    if isinstance(condition, np.ndarray):
        condition = condition.tolist()
    if isinstance(condition, list | tuple | Set):
        return _read_set(attribute, _flattened(attribute, list(condition)))
    return range(*attribute.cells_of(condition))  # type: ignore[arg-type]


def _flattened(attribute: Attribute, values: Sequence[Condition], depth: int = 1) -> list[Condition]:
    """Return the values of lists inside lists; a range, which is a tuple, stays one."""
    if depth > MAX_NESTING:
        raise QueryError(
            f"the values for '{attribute.name}' are lists inside lists, deeper than {MAX_NESTING}; write one list"
        )
    found: list[Condition] = []
    for value in values:
        inner = value.tolist() if isinstance(value, np.ndarray) else value
        if isinstance(inner, list | Set) or (isinstance(inner, tuple) and not isinstance(attribute, Ordinal)):
            found += _flattened(attribute, list(inner), depth + 1)
        else:
            found.append(inner)
    return found


def _read_set(attribute: Attribute, values: Sequence[Condition]) -> NDArray[np.bool_]:
    if not values:
        raise QueryError(f"the set of values for '{attribute.name}' is empty; list at least one")
    chosen = np.zeros(attribute.size, dtype=np.bool_)
    for value in values:
        chosen |= read_condition(attribute, value)
    return chosen
