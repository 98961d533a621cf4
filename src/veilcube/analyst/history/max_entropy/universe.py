"""A fitted distribution as something to ask: its marginals, rows drawn from it, and how many rows the table has.

``ExactUniverse`` holds every cell. ``SampledUniverse`` holds chains that have settled, the marginals that they gave for
the measured tables, and a pool of rows for all other marginals. The number of rows is the best unbiased combination of
noisy answers that counts all.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from veilcube.analyst.history.max_entropy.gibbs import Chains, draw_cells
from veilcube.analyst.history.max_entropy.tables import TableGroup
from veilcube.errors import QueryError
from veilcube.system import Floats

Rows: TypeAlias = NDArray[np.signedinteger[Any]]  # int32 where cell numbers allow it

_ROWS_AT_ONCE = 1 << 18
_POOLED_ROWS = 1 << 20
_SWEEPS_BETWEEN_ROWS = 2
# A marginal is returned whole; more cells than this are more than anyone can look at.
MOST_MARGINAL_CELLS = 1 << 26


class Universe(Protocol):
    """What a model needs of its distribution."""

    @property
    def chains(self) -> int | None:
        """How many independent chains its marginals come from; None where they are exact."""

    @property
    def pool(self) -> Rows:
        """Some rows of it, to evaluate what has no table."""

    def marginal(self, axes: tuple[int, ...]) -> Floats:
        """Return the probability of every cell of some attributes, in the order of ``axes``, which must ascend."""

    def rows(self, count: int) -> Iterator[Rows]:
        """Draw ``count`` rows, a part at a time."""


class ExactUniverse:
    """A distribution whose every cell is known."""

    chains: int | None = None

    def __init__(self, chances: Floats, seed: int) -> None:
        self._chances = chances
        self._random = np.random.default_rng([seed, 2])

    @property
    def pool(self) -> Rows:
        """Rows that stand for it."""
        return next(self.rows(_ROWS_AT_ONCE))

    def marginal(self, axes: tuple[int, ...]) -> Floats:
        """Return the probability of every cell of some attributes."""
        others = tuple(axis for axis in range(self._chances.ndim) if axis not in axes)
        return np.asarray(self._chances.sum(axis=others))

    def rows(self, count: int) -> Iterator[Rows]:
        """Draw rows in strata of equal probability, shuffled, so that counts of any part lie close to their mean."""
        flat = self._chances.ravel()
        for start in range(0, count, _ROWS_AT_ONCE):
            part = min(_ROWS_AT_ONCE, count - start)
            uniforms = (self._random.permutation(part) + self._random.random(part)) / part
            cells = np.unravel_index(draw_cells(flat, uniforms), self._chances.shape)
            yield np.stack(cells, axis=1).astype(np.int32)


class SampledUniverse:
    """A distribution known through settled chains."""

    def __init__(self, chains: Chains, packed: NDArray[np.float32] | Floats, tables: list[Floats]) -> None:
        self._chains, self._packed, self._tables = chains, packed, tables
        many = -(-_POOLED_ROWS // len(chains.rows))
        self._pool = np.concatenate([self._next() for _ in range(many)])

    @property
    def chains(self) -> int | None:
        """How many independent chains there are."""
        return len(self._chains.rows)

    @property
    def pool(self) -> Rows:
        """Rows that stand for it."""
        return self._pool

    def marginal(self, axes: tuple[int, ...]) -> Floats:
        """Return the probability of every cell of some attributes: from a measured table if any, else pooled."""
        layout = self._chains.layout
        holding = [place for place, table in enumerate(layout.tables) if set(axes) <= set(table)]
        if holding:
            smallest = min(holding, key=lambda place: self._tables[place].size)
            table = layout.tables[smallest]
            return np.asarray(
                self._tables[smallest].sum(axis=tuple(i for i, axis in enumerate(table) if axis not in axes))
            )
        sizes = tuple(layout.shape[axis] for axis in axes)
        flat = np.ravel_multi_index(tuple(self._pool[:, axis] for axis in axes), sizes)
        return np.bincount(flat, minlength=int(np.prod(sizes))).reshape(sizes) / len(self._pool)

    def rows(self, count: int) -> Iterator[Rows]:
        """Draw rows: every chain gives one, moves on, and gives the next."""
        drawn = 0
        while drawn < count:
            rows = self._next()
            yield rows[: count - drawn]
            drawn += len(rows)

    def _next(self) -> Rows:
        self._chains.sweep(self._packed, _SWEEPS_BETWEEN_ROWS)
        return self._chains.rows.copy()


def require_few_cells(cells: int) -> None:
    """Refuse a marginal that could not be held."""
    if cells > MOST_MARGINAL_CELLS:
        raise QueryError(
            f"a distribution over {cells:,} cells is more than the {MOST_MARGINAL_CELLS:,} that are given at once; "
            "name fewer attributes, or draw rows with synthesize"
        )


# Least squares on more numbers than this would take longer than the whole fit.
_MOST_WORK = 2e10
_IN_SPAN = 1e-6
# What an exact answer counts as, relative to the noisiest: exact for every purpose, and no division by zero.
_NEARLY_EXACT = 1e-5


@dataclass(frozen=True)
class Total:
    """The number of rows and the variance of what is known about it; 0 if it was given."""

    value: float
    variance: float


def estimate_total(groups: Sequence[TableGroup], values: Floats, variances: Floats) -> Total:
    """Combine, over all tables, the weighted sums of answers that count every row once."""
    spread = np.sqrt(variances)
    floor = _NEARLY_EXACT * (float(spread.max()) or 1.0)
    found = [
        estimate
        for group in groups
        if (estimate := _of_group(group, values[group.members], np.maximum(spread[group.members], floor))) is not None
    ]
    if not found:
        raise QueryError("the history does not tell how many rows the table has; say it with total=...")
    precision = sum(1 / estimate.variance for estimate in found)
    value = sum(estimate.value / estimate.variance for estimate in found) / precision
    if value <= 0:
        raise QueryError("the history is too noisy to tell how many rows the table has; say it with total=...")
    return Total(value, 1 / precision)


def _of_group(group: TableGroup, values: Floats, spread: Floats) -> Total | None:
    if group.cells is not None:
        precision = np.bincount(group.cells, 1 / np.square(spread), group.size)
        if (precision == 0).any():
            return None
        means = np.bincount(group.cells, values / np.square(spread), group.size) / precision
        return Total(float(means.sum()), float((1 / precision).sum()))
    weights = group.dense if group.axes else np.ones((values.size, 1))
    if weights is None or weights.size * float(min(weights.shape)) > _MOST_WORK:
        return None
    # The combination c of least variance Σ c²σ² with A'c = 1, in z = cσ.
    system = weights.T / spread
    combination = np.linalg.lstsq(system, np.ones(group.size), rcond=None)[0]
    if np.abs(system @ combination - 1).max() > _IN_SPAN:
        return None
    return Total(float((combination / spread) @ values), float(combination @ combination))
