"""Workloads: many count queries at once, kept as arrays so that a million of them are one vectorised call."""

import re
from collections.abc import Mapping, Sequence
from hashlib import sha256
from itertools import combinations
from math import prod
from numbers import Integral
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from veilcube import query as door
from veilcube.errors import QueryError
from veilcube.query.predicate import Query, read_query
from veilcube.schema import Grouping, Region, Schema, read_groupings, require_schema
from veilcube.system import Floats, read_path, read_text_file, read_whole, require_memory, show

MAX_QUERIES = 50_000_000
# Low and high index of every attribute, and what is made on the way to them.
BYTES_PER_END = 48
WAYS_OUT = "ask for fewer queries, for example by random_ranges"
# A group is a mask over its attribute; beyond this they would fill the memory.
MOST_CELLS_OF_GROUPS = 200_000_000
# No condition begins with a number and a product: counts are of rows.
_WEIGHTED = re.compile(r"\s*([0-9]+(?:\.[0-9]*)?(?:[eE][-+]?[0-9]{1,3})?)\s*\*\s*(\S.*)", re.DOTALL)
_WANTED = "the weights of a workload are numbers above 0, one for each query, such as weights=[3, 1]"
# Beyond this ratio the lighter query might as well not be asked, and sums would lose it.
LARGEST_RATIO = 1e12
# How a workload was made, where a word and a few numbers make it again: ("prefixes",), ("random ranges", 2000, 0).
Recipe: TypeAlias = tuple[str | int, ...]
_WORDS = {"marginals": "cells of marginals", "cells of tables": "cells of marginals", "ranges": "random ranges"}


class Workload:
    """An ordered list of count queries over one schema.

    Queries that are blocks of cells live in ``low`` and ``high``, inclusive cell indices of shape (queries,
    attributes). Others (sets with gaps, OR) also stand in ``regions`` under their position, and their row of ``low``
    and ``high`` is their bounding block. ``weights`` say how much each query matters to whoever plans: one of weight 3
    counts as three of weight 1 in expected errors and in what is chosen. Answers have nothing to do with them.

    >>> from veilcube.schema import Nominal, Ordinal
    >>> schema = Schema([Ordinal("age", 17, 90), Nominal("sex", ["Female", "Male"])])
    >>> Workload(schema, [{"age": (30, 39)}, {"sex": "Female"}]).low.tolist()
    [[13, 0], [0, 0]]
    """

    def __init__(self, schema: Schema, queries: Sequence[Query], weights: Sequence[float] | None = None) -> None:
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
        self._keep(schema, low, high, irregular, read_weights(weights, len(low)))

    def _keep(
        self,
        schema: Schema,
        low: NDArray[np.int64],
        high: NDArray[np.int64],
        regions: Mapping[int, Region],
        weights: Floats | None = None,
        recipe: Recipe | None = None,
    ) -> None:
        if len(low) == 0:
            raise QueryError("a workload needs at least one query")
        low.setflags(write=False)
        high.setflags(write=False)
        self._schema, self._low, self._high, self._regions = schema, low, high, dict(regions)
        self._given, self._recipe = weights, recipe
        self._weights = None if weights is None else _scaled(weights)

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

    @property
    def is_weighted(self) -> bool:
        """Whether some queries matter more than others."""
        return self._weights is not None

    @property
    def given_weights(self) -> Floats | None:
        """The weights as they were given; None if there are none, or all are alike."""
        return self._given

    @property
    def weights(self) -> Floats:
        """How much each query matters, in a scale of mean 1."""
        return np.ones(len(self)) if self._weights is None else self._weights

    @property
    def recipe(self) -> Recipe | None:
        """What it can be made from again; None for queries that were named one by one."""
        return self._recipe

    @property
    def words(self) -> str:
        """What it asks, in few words."""
        made = None if self._recipe is None else str(self._recipe[0])
        if made is None:
            return "your query" if len(self) == 1 else "your queries"
        return f"{len(self):,} {_WORDS.get(made, made)}"

    def mean(self, values: Floats) -> float:
        """Return the mean of a number for each query, each with its weight."""
        return float(values.mean() if self._weights is None else (self._weights * values).mean())

    def digest(self) -> bytes:
        """Return what tells workloads apart that ask for other cells or weigh them otherwise."""
        found = sha256(repr((self._schema.shape, len(self))).encode())
        found.update(np.ascontiguousarray(self._low).data)
        found.update(np.ascontiguousarray(self._high).data)
        for row, region in sorted(self._regions.items()):
            found.update(repr((row, len(region.boxes))).encode())
            for box in region.boxes:
                for axis in range(len(box.shape)):
                    found.update(np.packbits(box.mask(axis)).data)
        if self._given is not None:
            found.update(np.ascontiguousarray(self._given).data)
        return found.digest()

    def __len__(self) -> int:
        return len(self._low)

    def __repr__(self) -> str:
        return f"Workload({len(self):,} queries over {', '.join(self._schema.names)})"

    @classmethod
    def ranges(
        cls, schema: Schema, low: ArrayLike, high: ArrayLike, *, weights: Sequence[float] | None = None
    ) -> "Workload":
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
        workload._keep(schema, lows, highs, {}, read_weights(weights, len(lows)))
        return workload

    def made_by(self, *recipe: str | int) -> "Workload":
        """Return the same workload with what it can be made from again."""
        workload = type(self).__new__(type(self))
        workload._keep(self._schema, self._low, self._high, self._regions, self._given, recipe)
        return workload

    @classmethod
    def prefixes(cls, schema: Schema) -> "Workload":
        """Build every query that counts all cells up to one cell, on all attributes at once."""
        _limit(require_schema(schema, "a workload").cells, schema)
        high = np.indices(schema.shape).reshape(len(schema), -1).T
        return cls.ranges(schema, np.zeros_like(high), high).made_by("prefixes")

    @classmethod
    def random_ranges(cls, schema: Schema, n: int, seed: int) -> "Workload":
        """Draw ``n`` blocks: per attribute a length uniform in 1..size, then a position uniform among what fits."""
        require_schema(schema, "a workload")
        _limit(n, schema)
        generator = np.random.default_rng(read_whole(seed, "the seed of random ranges", 0))
        sizes = np.array(schema.shape)
        lengths = generator.integers(1, sizes, size=(n, len(schema)), endpoint=True)
        low = generator.integers(0, sizes - lengths, endpoint=True)
        return cls.ranges(schema, low, low + lengths - 1).made_by("random ranges", int(n), int(seed))

    @classmethod
    def marginals(cls, schema: Schema, k: int) -> "Workload":
        """Build every cell of every marginal over ``k`` attributes."""
        width = len(require_schema(schema, "a workload"))
        if isinstance(k, bool) or not isinstance(k, Integral) or not 0 <= k <= width:
            raise QueryError(f"marginals over {show(k)} attributes do not exist; the schema has {width}")
        chosen = list(combinations(range(len(schema)), k))
        _limit(sum(prod(schema.shape[axis] for axis in axes) for axes in chosen), schema)
        lows, highs = zip(*(_marginal_blocks(schema, axes) for axes in chosen), strict=True)
        return cls.ranges(schema, np.concatenate(lows), np.concatenate(highs)).made_by("marginals", int(k))

    @classmethod
    def from_sql(cls, schema: Schema, texts: Sequence[str], weights: Sequence[float] | None = None) -> "Workload":
        """Build from SQL texts; one with GROUP BY adds a query per group, each with the weight of the text."""
        require_schema(schema, "a workload")
        if isinstance(texts, str) or not isinstance(texts, Sequence) or not all(isinstance(one, str) for one in texts):
            raise QueryError("from_sql takes a list of SQL texts; put a single one into a list")
        regions: list[Region] = []
        of_each: list[float] = []
        given = read_weights(weights, len(texts))
        for row, text in enumerate(texts):
            parsed = door.read_sql(schema, text)  # by the door, since the parser takes long to load
            found = grouped_regions(schema, parsed.region, parsed.group_by)
            regions += found
            of_each += [] if given is None else [float(given[row])] * len(found)
        return cls(schema, regions, of_each or None)

    @classmethod
    def from_file(cls, schema: Schema, path: str | Path) -> "Workload":
        """Read a file with a line of SQL for each query; a line may begin with its weight, as in ``3 * age >= 65``.

        Empty lines and lines that begin with ``--`` are skipped.
        """
        texts, weights = read_lines(path)
        return cls.from_sql(schema, texts, weights)


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


def read_weights(weights: object, queries: int) -> Floats | None:
    """Return the weights as they were given; None if there are none, or all are alike.

    >>> read_weights([3, 1], 2).tolist(), read_weights([2, 2], 2)
    ([3.0, 1.0], None)
    """
    if weights is None:
        return None
    if isinstance(weights, str | bytes):
        raise QueryError(_WANTED)
    try:
        found = np.array(weights)
    except (TypeError, ValueError, OverflowError, RecursionError):
        raise QueryError(_WANTED) from None
    if found.dtype.kind not in "iuf" or found.shape != (queries,):
        raise QueryError(_WANTED)
    numbers = found.astype(np.float64)
    if not np.isfinite(numbers).all() or not (numbers > 0).all():
        raise QueryError(_WANTED)
    if not queries or (numbers == numbers[0]).all():
        return None
    if (numbers / numbers.max()).min() * LARGEST_RATIO < 1:
        raise QueryError(f"one weight of the workload is more than {LARGEST_RATIO:.0e} times another; leave that out")
    numbers.setflags(write=False)
    return numbers


def _scaled(weights: Floats) -> Floats:
    """Return weights in a scale of mean 1."""
    scaled: Floats = weights / weights.max()
    scaled = scaled / scaled.mean()
    scaled.setflags(write=False)
    return scaled


def read_weighted(text: str) -> tuple[float, str]:
    """Return the weight that a text begins with, 1 if it has none, and the rest.

    >>> read_weighted("3 * age >= 65"), read_weighted("SELECT COUNT(*)")
    ((3.0, 'age >= 65'), (1.0, 'SELECT COUNT(*)'))
    """
    found = _WEIGHTED.fullmatch(text)
    if found is None:
        return 1.0, text
    return float(found[1]), found[2]


def read_lines(path: object) -> tuple[list[str], list[float]]:
    """Return the queries of a workload file with their weights."""
    file = read_path(path, "the workload file", QueryError)
    try:
        text = read_text_file(Path(file))
    except (OSError, ValueError) as problem:
        raise QueryError(
            f"the workload file {file} cannot be read as text; name a file with a line of SQL for each query"
        ) from problem
    lines = [line.strip() for line in text.splitlines()]
    found = [read_weighted(line) for line in lines if line and not line.startswith("--")]
    if not found:
        raise QueryError(f"the workload file {file} holds no query; write a line of SQL for each")
    return [query for _, query in found], [weight for weight, _ in found]


def weights_of(texts: Sequence[str]) -> tuple[list[str], list[float]]:
    """Return texts without the weights that they begin with, and the weights.

    >>> weights_of(["2 * sex = 'Male'", "age < 20"])
    (["sex = 'Male'", 'age < 20'], [2.0, 1.0])
    """
    found = [read_weighted(text) for text in texts]
    return [query for _, query in found], [weight for weight, _ in found]
