"""Exact counts: the cube, one count per cell, and the tally, tables over few attributes counted without the cube.

PRIVATE: nothing about their values may reach a repr, a log or an error.
"""

import hashlib
import json
from collections.abc import Iterable, Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from veilcube.curator.persons import PersonRows
from veilcube.errors import TableError
from veilcube.operators import Axes, Operator
from veilcube.privacy import LARGEST_TABLE, PrivacyUnit, Private, leaves_no_trace
from veilcube.schema import Schema
from veilcube.system import read_kind

_ROWS_AT_ONCE = 2**16
# How rows of a person are chosen: a new name for each rule, so that what was counted by another one is not compared.
CHOICE_OF_ROWS = "sha256 of cells"
# Steps of the finaliser of SplitMix64.
_SCRAMBLING = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1))


class Cube(Private):
    """Exact counts of a table over a schema; immutable, private, and silent about what it holds.

    >>> from veilcube.schema import Ordinal
    >>> Cube(Schema([Ordinal("age", 17, 19)]), [4, 0, 7])
    Cube(age (3): 3 cells, exact counts not shown)
    """

    @leaves_no_trace
    def __init__(self, schema: Schema, counts: ArrayLike, unit: PrivacyUnit | None = None) -> None:
        schema = Schema.read(schema)
        try:
            array = np.asarray(counts)
        except ValueError:
            raise TableError(
                "the counts of a cube must be an array of whole numbers, with rows of one length"
            ) from None
        if array.dtype.kind not in "iu":
            raise TableError("the counts of a cube must be whole numbers; convert the array to an integer type")
        if array.shape != schema.shape:
            raise TableError(f"the counts have shape {array.shape}, but the schema asks for {schema.shape}")
        if array.size and int(array.min()) < 0:
            raise TableError("the counts of a cube must be 0 or more; correct the array")
        require_table(float(array.sum(dtype=np.float64)))
        unit = PrivacyUnit.row() if unit is None else unit
        read_kind(unit, PrivacyUnit, "the unit of a cube is a PrivacyUnit, or None for rows", TableError)
        self._keep(schema, array.astype(np.int64, order="C"), unit)

    @classmethod
    def owning(
        cls, schema: Schema, counts: NDArray[np.int64], unit: PrivacyUnit, persons: PersonRows | None = None
    ) -> "Cube":
        """Take over an array that nobody else holds, of rows that were counted and are not too many."""
        cube = cls.__new__(cls)
        cube._keep(schema, counts, unit)
        cube._persons = persons
        return cube

    def _keep(self, schema: Schema, counts: NDArray[np.int64], unit: PrivacyUnit) -> None:
        counts.setflags(write=False)
        self._schema, self._counts, self._unit = schema, counts, unit
        self._persons: PersonRows | None = None

    @property
    def schema(self) -> Schema:
        """The public description of its axes."""
        return self._schema

    @property
    def unit(self) -> PrivacyUnit:
        """Whose presence a release of this cube hides."""
        return self._unit

    @property
    def exact_persons(self) -> PersonRows | None:
        """How many rows each person has, kept or not, where that was counted: private."""
        return self._persons

    @property
    def exact_counts(self) -> NDArray[np.int64]:
        """The private counts, read-only. Only mechanisms may look."""
        return self._counts

    @property
    def exact_rows(self) -> float:
        """How many rows were counted: private, and as a float, for which no total is too large."""
        return float(self._counts.sum(dtype=np.float64))

    def measured_by(self, operator: Operator) -> NDArray[np.int64]:
        """Return the exact measurements of an operator; only mechanisms may ask."""
        return operator.apply(self._counts)

    def digest(self, key: bytes) -> tuple[str, str]:
        """Return how this was counted, and a digest of it that tells nothing to who lacks the key."""
        return _basis("cube", self._schema, self._unit), _digest(key, [self._counts])

    def __repr__(self) -> str:
        return f"Cube({repr(self._schema)[7:-1]}, exact counts not shown)"


def require_table(rows: float) -> None:
    """Refuse a table above the fixed and public bound that all strategies are planned for."""
    if rows > LARGEST_TABLE:
        raise TableError("a table has at most 2**36 rows, 68 billion; count fewer rows, or rows of a sample")


class Tally(Private):
    """Exact counts of the cells of some tables, one table after the other; silent about what it holds."""

    def __init__(
        self,
        schema: Schema,
        tables: Sequence[Axes],
        counts: NDArray[np.int64],
        unit: PrivacyUnit,
        persons: PersonRows | None = None,
    ) -> None:
        counts.setflags(write=False)
        self._schema, self._tables, self._counts, self._unit = schema, tuple(tables), counts, unit
        self._persons = persons
        require_table(self.exact_rows)

    @property
    def schema(self) -> Schema:
        """The public description of the table that was counted."""
        return self._schema

    @property
    def unit(self) -> PrivacyUnit:
        """Whose presence a release of these tables hides."""
        return self._unit

    @property
    def exact_persons(self) -> PersonRows | None:
        """How many rows each person has, kept or not, where that was counted: private."""
        return self._persons

    @property
    def exact_tables(self) -> list[NDArray[np.int64]]:
        """The private counts of each table, read-only."""
        sizes = [prod(self._schema.shape[axis] for axis in axes) for axes in self._tables]
        return np.split(self._counts, np.cumsum(sizes)[:-1])

    @property
    def exact_rows(self) -> float:
        """How many rows were counted: private."""
        cells = prod(self._schema.shape[axis] for axis in self._tables[0])
        return float(self._counts[:cells].sum())

    def measured_by(self, operator: Operator) -> NDArray[np.int64]:
        """Return the exact measurements of the marginals that were counted; only mechanisms may ask."""
        return operator.apply_to_tables(self._tables, self._counts)

    def digest(self, key: bytes) -> tuple[str, str]:
        """Return how this was counted, and a digest of it that tells nothing to who lacks the key."""
        return _basis(f"tables {self._tables}", self._schema, self._unit), _digest(key, [self._counts])

    def __repr__(self) -> str:
        return f"Tally({len(self._tables)} tables over {len(self._schema)} attributes, exact counts not shown)"


class RowList(Private):
    """The rows of a table as cells, one array for each attribute, where the cube would be too large; silent as well."""

    def __init__(
        self,
        schema: Schema,
        rows: Sequence[NDArray[np.integer[Any]]],
        unit: PrivacyUnit,
        persons: PersonRows | None = None,
    ) -> None:
        for column in rows:
            column.setflags(write=False)
        self._schema, self._rows, self._unit = schema, tuple(rows), unit
        self._persons = persons
        require_table(self.exact_rows)

    @property
    def schema(self) -> Schema:
        """The public description of the table."""
        return self._schema

    @property
    def unit(self) -> PrivacyUnit:
        """Whose presence a release of these rows hides."""
        return self._unit

    @property
    def exact_persons(self) -> PersonRows | None:
        """How many rows each person has, kept or not, where that was counted: private."""
        return self._persons

    @property
    def exact_rows(self) -> float:
        """How many rows there are: private."""
        return float(len(self._rows[0]))

    def measured_by(self, operator: Operator) -> NDArray[np.int64]:
        """Return the exact measurements of an operator that needs no cube; only mechanisms may ask."""
        return operator.apply_to_rows(self._rows)

    def digest(self, key: bytes) -> tuple[str, str]:
        """Return how this was counted, and a digest of it that tells nothing to who lacks the key.

        The order of rows means nothing: what is digested is a sum over all of them.
        """
        sums = np.concatenate([_sum_of_rows(self._rows, key + lane) for lane in (b"0", b"1")])
        return _basis("rows", self._schema, self._unit), _digest(key, [sums])

    def __repr__(self) -> str:
        return f"RowList({len(self._schema)} attributes, rows not shown)"


def _basis(what: str, schema: Schema, unit: PrivacyUnit) -> str:
    """Say in public words what was counted: digests of the same words may be compared."""
    public = [what, schema.fingerprint(), unit.to_dict(), *([CHOICE_OF_ROWS] if unit.kind == "person" else [])]
    return hashlib.sha256(json.dumps(public, sort_keys=True).encode()).hexdigest()[:32]


def _sum_of_rows(rows: Sequence[NDArray[np.integer[Any]]], key: bytes) -> NDArray[np.uint64]:
    """Return a sum over rows, by 64 bits, that changes with any row but for chance, and not with their order."""
    odd = np.frombuffer(hashlib.shake_256(key).digest(8 * len(rows)), dtype=np.uint64) | np.uint64(1)
    total, count = np.zeros(1, np.uint64), len(rows[0])
    for start in range(0, count, _ROWS_AT_ONCE):
        mixed = np.ones(min(_ROWS_AT_ONCE, count - start), np.uint64)
        for column, factor in zip(rows, odd, strict=True):
            mixed += column[start : start + _ROWS_AT_ONCE].astype(np.uint64) * factor
        for shift, factor in _SCRAMBLING:  # without it, sums of rows would be sums of columns
            mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
        total += mixed.sum(dtype=np.uint64)
    return np.append(total, np.uint64(count))


def _digest(key: bytes, arrays: Iterable[NDArray[np.integer[Any]]]) -> str:
    digest = hashlib.blake2b(key=key, digest_size=32)
    for array in arrays:
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()
