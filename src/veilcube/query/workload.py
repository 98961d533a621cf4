"""Workloads: many count queries at once, kept as arrays so that a million of them are one vectorised call."""

from collections.abc import Mapping, Sequence
from itertools import combinations
from math import prod
from numbers import Integral

import numpy as np
from numpy.typing import ArrayLike, NDArray

from veilcube import query as door
from veilcube.errors import QueryError
from veilcube.query.predicate import Query, read_query
from veilcube.schema import Grouping, Region, Schema, read_groupings, require_schema
from veilcube.system import read_whole, require_memory, show

MAX_QUERIES = 50_000_000
# Low and high index of every attribute, and what is made on the way to them.
BYTES_PER_END = 48
WAYS_OUT = "ask for fewer queries, for example by random_ranges"
# A group is a mask over its attribute; beyond this they would fill the memory.
MOST_CELLS_OF_GROUPS = 200_000_000


class Workload:
    """An ordered list of count queries over one schema.

    Queries that are blocks of cells live in ``low`` and ``high``, inclusive cell indices of shape (queries,
    attributes). Others (sets with gaps, OR) also stand in ``regions`` under their position, and their row of ``low``
    and ``high`` is their bounding block.

    >>> from veilcube.schema import Nominal, Ordinal
    >>> schema = Schema([Ordinal("age", 17, 90), Nominal("sex", ["Female", "Male"])])
    >>> Workload(schema, [{"age": (30, 39)}, {"sex": "Female"}]).low.tolist()
    [[13, 0], [0, 0]]
    """

    def __init__(self, schema: Schema, queries: Sequence[Query]) -> None:
        require_schema(schema, "a workload")
        if isinstance(queries, str | Mapping) or not isinstance(queries, Sequence):
            raise QueryError("a workload is a list of queries; put a single one into a list")
        low = np.zeros((len(queries), len(schema)), dtype=np.int64)
        high = np.full_like(low, -1)
        irregular: dict[int, Region] = {}
        for row, query in enumerate(queries):
            region = read_query(schema, query)  # one at a time: those of blocks are masks that need not be kept
            block = region.rectangle()
            if block is None:
                irregular[row] = region
                block = _bounding_block(region)
            low[row], high[row] = block
        self._keep(schema, low, high, irregular)

    def _keep(
        self, schema: Schema, low: NDArray[np.int64], high: NDArray[np.int64], regions: Mapping[int, Region]
    ) -> None:
        if len(low) == 0:
            raise QueryError("a workload needs at least one query")
        low.setflags(write=False)
        high.setflags(write=False)
        self._schema, self._low, self._high, self._regions = schema, low, high, dict(regions)

    @property
    def schema(self) -> Schema:
        """The schema the queries are about."""
        return self._schema

    @property
    def low(self) -> NDArray[np.int64]:
        """Inclusive lowest cell index per query and attribute."""
        return self._low

    @property
    def high(self) -> NDArray[np.int64]:
        """Inclusive highest cell index per query and attribute."""
        return self._high

    @property
    def regions(self) -> Mapping[int, Region]:
        """The queries that are not blocks of cells, by position."""
        return self._regions

    def __len__(self) -> int:
        return len(self._low)

    def __repr__(self) -> str:
        return f"Workload({len(self):,} queries over {', '.join(self._schema.names)})"

    @classmethod
    def ranges(cls, schema: Schema, low: ArrayLike, high: ArrayLike) -> "Workload":
        """Build from inclusive cell indices, arrays of shape (queries, attributes)."""
        require_schema(schema, "a workload")
        lows, highs = _index_array(low, schema), _index_array(high, schema)
        if lows.shape != highs.shape:
            raise QueryError(f"low has shape {lows.shape} and high {highs.shape}; they must agree")
        if (lows > highs).any():
            raise QueryError("a range is inverted: some low index is above its high index; swap them")
        if (lows < 0).any() or (highs >= np.array(schema.shape)).any():
            raise QueryError(f"a range leaves the cube, whose shape is {schema.shape}; indices start at 0")
        workload = cls.__new__(cls)
        workload._keep(schema, lows, highs, {})
        return workload

    @classmethod
    def prefixes(cls, schema: Schema) -> "Workload":
        """Build every query that counts all cells up to one cell, on all attributes at once."""
        _limit(require_schema(schema, "a workload").cells, schema)
        high = np.indices(schema.shape).reshape(len(schema), -1).T
        return cls.ranges(schema, np.zeros_like(high), high)

    @classmethod
    def random_ranges(cls, schema: Schema, n: int, seed: int) -> "Workload":
        """Draw ``n`` blocks: per attribute a length uniform in 1..size, then a position uniform among what fits."""
        require_schema(schema, "a workload")
        _limit(n, schema)
        generator = np.random.default_rng(read_whole(seed, "the seed of random ranges", 0))
        sizes = np.array(schema.shape)
        lengths = generator.integers(1, sizes, size=(n, len(schema)), endpoint=True)
        low = generator.integers(0, sizes - lengths, endpoint=True)
        return cls.ranges(schema, low, low + lengths - 1)

    @classmethod
    def marginals(cls, schema: Schema, k: int) -> "Workload":
        """Build every cell of every marginal over ``k`` attributes."""
        width = len(require_schema(schema, "a workload"))
        if isinstance(k, bool) or not isinstance(k, Integral) or not 0 <= k <= width:
            raise QueryError(f"marginals over {show(k)} attributes do not exist; the schema has {width}")
        chosen = list(combinations(range(len(schema)), k))
        _limit(sum(prod(schema.shape[axis] for axis in axes) for axes in chosen), schema)
        lows, highs = zip(*(_marginal_blocks(schema, axes) for axes in chosen), strict=True)
        return cls.ranges(schema, np.concatenate(lows), np.concatenate(highs))

    @classmethod
    def from_sql(cls, schema: Schema, texts: Sequence[str]) -> "Workload":
        """Build from SQL texts; one with GROUP BY adds a query per group."""
        require_schema(schema, "a workload")
        if isinstance(texts, str) or not isinstance(texts, Sequence) or not all(isinstance(one, str) for one in texts):
            raise QueryError("from_sql takes a list of SQL texts; put a single one into a list")
        regions: list[Region] = []
        for text in texts:
            parsed = door.read_sql(schema, text)  # by the door, since the parser takes long to load
            regions += grouped_regions(schema, parsed.region, parsed.group_by)
        return cls(schema, regions)


def grouped_regions(schema: Schema, region: Region, group_by: Sequence[str]) -> list[Region]:
    """Split a region by the groups of the named attributes or levels, the last name varying fastest."""
    groupings = read_groupings(schema, group_by)
    if prod(map(len, groupings)) * max((schema.shape[one.axis] for one in groupings), default=1) > MOST_CELLS_OF_GROUPS:
        raise QueryError(
            "GROUP BY gives too many groups for a workload; ask for them with release.count or release.marginal"
        )
    return _split(schema, region, groupings)


def _split(schema: Schema, region: Region, groupings: Sequence[Grouping]) -> list[Region]:
    if not groupings:
        return [region]
    grouping, *others = groupings
    attribute = schema.attributes[grouping.axis]
    return [
        inner
        for first, last in zip(grouping.first.tolist(), grouping.last.tolist(), strict=True)
        for inner in _split(
            schema,
            region.intersect(Region.on_axis(schema.shape, grouping.axis, attribute.mask(first, last + 1))),
            others,
        )
    ]


def _marginal_blocks(schema: Schema, axes: Sequence[int]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    sizes = tuple(schema.shape[axis] for axis in axes)
    cells = np.indices(sizes).reshape(len(axes), -1).T if axes else np.zeros((1, 0), dtype=np.int64)
    low = np.zeros((len(cells), len(schema)), dtype=np.int64)
    high = np.broadcast_to(np.array(schema.shape, dtype=np.int64) - 1, low.shape).copy()
    low[:, list(axes)] = cells
    high[:, list(axes)] = cells
    return low, high


def _index_array(values: ArrayLike, schema: Schema) -> NDArray[np.int64]:
    try:
        array = np.array(values)
    except (TypeError, ValueError, OverflowError, RecursionError):
        raise QueryError("cell indices must be whole numbers, in rows of one length") from None
    if array.ndim == 1 and len(schema) == 1:
        array = array[:, None]
    if array.ndim != 2 or array.shape[1] != len(schema):
        raise QueryError(f"cell indices must have shape (queries, {len(schema)}), not {array.shape}")
    if array.dtype.kind not in "iu":
        raise QueryError("cell indices must be whole numbers")
    if array.dtype.kind == "u" and array.size and array.max() > np.iinfo(np.int64).max:
        raise QueryError(f"a range leaves the cube, whose shape is {schema.shape}; indices start at 0")
    return np.ascontiguousarray(array, dtype=np.int64)


def _bounding_block(region: Region) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    axes = range(len(region.shape))
    if not region.boxes:
        return np.zeros(len(region.shape), dtype=np.int64), np.full(len(region.shape), -1, dtype=np.int64)
    low = [min(int(box.indices(axis)[0]) for box in region.boxes) for axis in axes]
    high = [max(int(box.indices(axis)[-1]) for box in region.boxes) for axis in axes]
    return np.array(low, dtype=np.int64), np.array(high, dtype=np.int64)


def _limit(queries: int, schema: Schema) -> None:
    if isinstance(queries, bool) or not isinstance(queries, Integral) or not 1 <= queries <= MAX_QUERIES:
        raise QueryError(
            f"a workload holds between 1 and {MAX_QUERIES:,} queries, not {show(queries)}; use random_ranges"
        )
    require_memory(BYTES_PER_END * queries * len(schema), f"a workload of {queries:,} queries", WAYS_OUT)
