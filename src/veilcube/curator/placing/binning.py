"""From a normalised column to cells: one rule per attribute, taken from the schema's public facts alone."""

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from veilcube.curator.tables import ALL_PLACED, MISSING, UNREADABLE, place_in_bins, place_integers, place_whole_floats
from veilcube.errors import TableError
from veilcube.schema import Attribute, Bins, Calendar, Ordinal, WholeNumbers

Number = TypeVar("Number", np.int64, np.float64)

_HINTS_PER_BIN = 4
_ALL_PRESENT = np.empty(0, dtype=np.uint8)


@dataclass(frozen=True, eq=False)
class BinIndex:
    """Edges with, for equal slices of the line, the bin where each slice begins."""

    edges: NDArray[np.float64]
    hints: NDArray[np.int64]
    hints_per_unit: float

    @classmethod
    def of(cls, bins: Bins) -> "BinIndex":
        """Prepare the search; see ``kernels._bin_of`` for why rounding here is harmless."""
        edges = np.array(bins.edges, dtype=np.float64)
        slices = _HINTS_PER_BIN * bins.size
        with np.errstate(all="ignore"):
            starts = edges[0] + (edges[-1] - edges[0]) * (np.arange(slices) / slices)
            hints_per_unit = float(slices / (edges[-1] - edges[0]))
        begun = np.clip(np.searchsorted(edges, starts, side="right") - 1, 0, bins.size - 1)
        hints = np.concatenate([begun, np.full(2, bins.size - 1)]).astype(np.int64)
        return cls(edges, hints, hints_per_unit)


class CellRule:
    """Where each value of one attribute goes."""

    def __init__(self, attribute: Attribute) -> None:
        self._attribute = attribute
        division = attribute.division if isinstance(attribute, Ordinal) else None
        self._bins = BinIndex.of(division) if isinstance(division, Bins) else None
        self._low = (
            division.low
            if isinstance(division, WholeNumbers)
            else division.first_number
            if isinstance(division, Calendar)
            else 0
        )
        self._high = self._low + attribute.regular_size - 1
        self._policy = (
            attribute.outside == "clip",
            -1 if attribute.other_cell is None else attribute.other_cell,
            -1 if attribute.missing_cell is None else attribute.missing_cell,
            attribute.size,
        )

    def fold(self, column: pa.Array, cells: NDArray[np.int64]) -> None:
        """Fold the cell of every row into its flat index; refuses the table if a policy does."""
        outcome = self._place(column, cells)
        if outcome != ALL_PLACED:
            raise TableError(self.refusal(outcome))

    def _place(self, column: pa.Array, cells: NDArray[np.int64]) -> int:
        valid = _validity_of(column)
        if self._bins is not None:
            bins, numbers = self._bins, _values_of(column, np.float64)
            return place_in_bins(numbers, valid, bins.edges, bins.hints, bins.hints_per_unit, *self._policy, cells)
        if pa.types.is_float64(column.type):
            numbers = _values_of(column, np.float64)
            return place_whole_floats(numbers, valid, self._low, self._high, *self._policy, cells)
        return place_integers(_values_of(column, np.int64), valid, self._low, self._high, *self._policy, cells)

    def refusal(self, outcome: int) -> str:
        """Say why rows cannot be placed, in public words."""
        attribute = self._attribute
        if outcome == MISSING:
            return (
                f"the column '{attribute.column}' has missing values, which '{attribute.name}' rejects; "
                "set missing='cell' in the schema to count them"
            )
        domain = _domain_of(attribute)
        if outcome == UNREADABLE:
            return (
                f"the column '{attribute.column}' has text that cannot be read as {domain}, and only numbers and dates "
                f"can be clipped; correct the table, or set outside='other' for '{attribute.name}'"
            )
        remedy = "outside='clip' or outside='other'" if isinstance(attribute, Ordinal) else "outside='other'"
        if isinstance(attribute, Ordinal) and isinstance(attribute.division, WholeNumbers):
            remedy = f"edges=[...] if there are numbers with decimals, else {remedy},"
        return (
            f"the column '{attribute.column}' has values outside the domain of '{attribute.name}', {domain}; "
            f"set {remedy} in the schema, or widen the domain from public knowledge"
        )


def _domain_of(attribute: Attribute) -> str:
    if isinstance(attribute, Ordinal):
        kind = {WholeNumbers: "whole numbers", Bins: "numbers", Calendar: "dates"}[type(attribute.division)]
        return f"{kind} {attribute.division.domain()}"
    labels = attribute.labels()[: attribute.regular_size]
    return "which has " + ", ".join(repr(label) for label in labels[:8]) + (", ..." if len(labels) > 8 else "")


def _values_of(column: pa.Array, kind: type[Number]) -> NDArray[Number]:
    """View an Arrow array's values, the undefined ones of missing rows included, without a copy."""
    return np.frombuffer(column.buffers()[1], dtype=kind)[column.offset : column.offset + len(column)]


def _validity_of(column: pa.Array) -> NDArray[np.uint8]:
    """View an Arrow array's validity bits from its first row on; none if every value is present."""
    if column.null_count == 0:
        return _ALL_PRESENT
    bits = np.frombuffer(column.buffers()[0], dtype=np.uint8)
    if column.offset % 8 == 0:
        return bits[column.offset // 8 :]
    unpacked = np.unpackbits(bits, bitorder="little")[column.offset : column.offset + len(column)]
    return np.packbits(unpacked, bitorder="little")
