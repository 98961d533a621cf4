"""Strategies matched to the queries that a user names: the matrix mechanism in a form that scales.

One axis is searched as ``search`` describes. In several dimensions the strategy is a product, and so is the
variance of a block: with the other axes held, the error is that of one axis whose queries are weighed by the variances
of their other factors. Coordinate descent over the axes follows (OPT_x of HDMM, McKenna et al., VLDB 2018). The result
is rounded to whole numbers, for measurements must be whole.
"""

from dataclasses import dataclass
from math import prod

import numpy as np
import scipy

from veilcube.errors import PlanError
from veilcube.operators import (
    LARGEST_MATCHED,
    MOST_ENTRIES,
    AxisOperator,
    FlatAxis,
    MatchedAxis,
    Operator,
    ProductOperator,
)
from veilcube.planner.design import Family, MeasuredOnce
from veilcube.planner.matched.gram import AxisQueries, DenseMoments, WorkloadBlocks
from veilcube.planner.matched.search import Design, identity_design, refine, search
from veilcube.privacy import LARGEST_COLUMN
from veilcube.query import Workload
from veilcube.schema import Schema
from veilcube.system import Floats

STEPS = 40
ROUNDS = 3
MOST_SETS = 256
MOST_REMEMBERED = 16
LARGEST_COLUMN_SUM = 4000
_REMEMBERED: dict[bytes, "Matched"] = {}


@dataclass(frozen=True)
class Matched(MeasuredOnce):
    """Measure rows that were optimised for a workload; made by ``matched_strategies``."""

    axes: tuple[AxisOperator, ...]

    @property
    def name(self) -> str:
        """The word that users and files call it by."""
        return "matched"

    @property
    def is_fitted(self) -> bool:
        """Whether it is made for some questions: those of the workload."""
        return True

    def operator(self, schema: Schema) -> Operator:
        """Return the product of the axes; it fits the schema that it was made for."""
        if tuple(axis.size for axis in self.axes) != schema.shape:
            raise PlanError(
                "the strategy was matched to a workload over other attributes; match it to one of this schema"
            )
        return ProductOperator(self.axes, schema.names)

    def to_dict(self) -> dict[str, object]:
        """Return what describes it; the rows themselves stand with the measurement."""
        shared = [axis.rows - axis.size for axis in self.axes]
        return {"name": self.name, "shared_rows": shared}

    def settings(self) -> dict[str, object]:
        """Return the plain data that it can be made from again: every row."""
        return {"name": self.name, "axes": [axis.to_dict() for axis in self.axes]}


def matched_strategies(schema: Schema, workload: Workload, family: Family = "laplace") -> tuple[Matched, ...]:
    """Return the strategies optimised for a workload and a family of noise; the last few searches are remembered.

    >>> from veilcube.schema import Ordinal
    >>> schema = Schema([Ordinal("age", 1, 64)])
    >>> [strategy.name for strategy in matched_strategies(schema, Workload.prefixes(schema))]
    ['matched']
    """
    if workload.schema != schema:
        raise PlanError("the workload is for another schema; build it with the schema that is planned for")
    for attribute in schema.attributes:
        if attribute.size > LARGEST_MATCHED:
            raise PlanError(
                f"a strategy is matched to a workload on attributes of at most {LARGEST_MATCHED} cells and "
                f"'{attribute.name}' has {attribute.size}, so none was searched; use a tree or coarser cells"
            )
    key = _digest(workload, family)
    found = _REMEMBERED.get(key)
    if found is None:
        found = _search_product(workload, family)
        for oldest in list(_REMEMBERED)[: 1 - MOST_REMEMBERED]:
            _REMEMBERED.pop(oldest, None)
        _REMEMBERED[key] = found
    return (found,)


def _digest(workload: Workload, family: Family) -> bytes:
    """Return what tells workloads apart that ask for other cells; a digest, for a workload may be large."""
    return workload.digest() + family.encode()


def _search_product(workload: Workload, family: Family) -> Matched:
    blocks = WorkloadBlocks.of(workload)
    if not len(blocks):
        raise PlanError(
            "every query of the workload is empty, so there is nothing to match; name queries that count cells"
        )
    designs = [identity_design(queries.size, family) for queries in blocks.axes]
    variances = [np.ones(len(blocks)) for _ in blocks.axes]
    rounds = ROUNDS if sum(queries.size > 1 for queries in blocks.axes) > 1 else 1
    for number in range(rounds):
        for i, queries in enumerate(blocks.axes):
            if queries.size > 1:
                others = prod((variances[j] for j in range(len(variances)) if j != i), start=blocks.weights)
                designs[i] = _improve(designs[i], queries, others, first=number == 0)
                variances[i] = queries.variances(round_design(designs[i], LARGEST_COLUMN_SUM), family)
    matched = sum(design.shared > 0 for design in designs)
    column_sum = min(LARGEST_COLUMN_SUM, int(LARGEST_COLUMN ** (1 / max(1, matched))))
    return Matched(tuple(round_design(design, int(column_sum / design.largest_sum)) for design in designs))


def _improve(design: Design, queries: AxisQueries, weights: Floats, *, first: bool) -> Design:
    """Search one axis anew, or go on from where it is."""
    moments = queries.moments(weights)
    if design.shared and not first:
        return refine(design, moments, STEPS)
    return search(moments, queries.distinct_sets(min(MOST_SETS, MOST_ENTRIES // queries.size)), STEPS, design.family)


def match_axis(gram: Floats, column_norm: int = LARGEST_COLUMN_SUM, family: Family = "laplace") -> AxisOperator:
    """Return the axis optimised for second moments G = Σ u q q' of queries q with weights u, a matrix over cells."""
    if gram.ndim != 2 or gram.shape[0] != gram.shape[1] or not 1 <= len(gram) <= LARGEST_MATCHED:
        raise PlanError(
            f"an axis is matched to a square matrix of second moments over 1 to {LARGEST_MATCHED} cells, not to shape "
            f"{gram.shape}"
        )
    moments = DenseMoments(np.ascontiguousarray(gram, dtype=np.float64))
    return round_design(search(moments, None, STEPS, family), column_norm)


def round_design(design: Design, column_norm: int) -> AxisOperator:
    """Return the axis of the whole numbers nearest to a design; each cell's own row takes up what rounding leaves.

    For Laplace noise all columns have the sum ``column_norm``; for Gaussian noise their L2 norm is next below it.
    """
    size, cells, power = len(design.own), design.cells, 1 if design.family == "laplace" else 2
    entries = np.rint(design.entries * column_norm).astype(np.int64)
    largest = column_norm**power
    left = largest - np.bincount(cells, entries**power, size).astype(np.int64)
    for cell in np.flatnonzero(left < 1):
        part = entries[design.pointers[cell] : design.pointers[cell + 1]]
        while (part**power).sum() >= largest:
            part[part.argmax()] -= 1
        left[cell] = largest - (part**power).sum()
    shared = scipy.sparse.csr_array((entries, (design.rows, cells)), shape=(design.shared, size))
    shared = shared[np.flatnonzero(shared.sum(axis=1))]
    if not shared.shape[0]:
        return FlatAxis(size)
    if design.family == "laplace":
        return MatchedAxis(column_norm, shared)
    return MatchedAxis.of_own(np.sqrt(left).astype(np.int64), shared)
