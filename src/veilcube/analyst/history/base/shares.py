"""The prior of one attribute, and what factors of linear queries weigh under it: endpoints and prefix sums, no rows.

Σ_θ p(θ) g(θ) h(θ) of two runs of cells [a, b) and [c, d) is max(0, min(F(b), F(d)) - max(F(a), F(c))), F the
distribution function of the prior. F is kept in whole units, so that differences are exact: cells for an even prior,
which then has no size in memory whatever the attribute's, else 2^-62 of everything.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from veilcube.query import Factor
from veilcube.system import Floats, Integers, require_cells

_UNITS = 2.0**62
# Numbers that are worked on at a time while weights of single cells are summed up.
_ENTRIES_AT_ONCE = 1 << 22


@dataclass(frozen=True, eq=False)
class Shares:
    """The probabilities of an attribute's ``size`` cells; all alike if none are ``given``."""

    size: int
    given: Floats | None = None

    @classmethod
    def of(cls, given: "Shares | Floats") -> "Shares":
        """Return shares as they are, or of the probabilities of all cells."""
        return given if isinstance(given, Shares) else cls(len(given), np.asarray(given, dtype=np.float64))

    @cached_property
    def values(self) -> Floats:
        """The probability of each cell, written out."""
        if self.given is not None:
            return self.given
        require_cells(self.size, 16, "a prior")
        return np.full(self.size, 1 / self.size)

    @cached_property
    def _before(self) -> Integers | None:
        """The units before each cell, and of all; None for an even prior, whose units are cells."""
        if self.given is None:
            return None
        units = np.maximum(np.rint(self.given * (_UNITS / self.given.sum())).astype(np.int64), 1)
        return np.concatenate([[0], np.cumsum(units)])

    @cached_property
    def unit(self) -> float:
        """The probability of one unit; given probabilities sum to 1 but for rounding, which they keep."""
        if self._before is None or self.given is None:
            return 1 / self.size
        return float(self.given.sum()) / float(self._before[-1])

    def before(self, cells: Integers) -> Integers:
        """Return the units before each of ``cells``, of which the last may be one beyond all."""
        return cells if self._before is None else self._before[cells]

    def mass(self, low: Integers, end: Integers) -> Floats:
        """Return the probability of runs of cells from ``low`` to before ``end``."""
        return np.asarray((self.before(end) - self.before(low)) * self.unit)

    def concentration(self, edges: Integers) -> Floats:
        """Return Σ p² over (Σ p)² of the cells between each two edges: 1 over their number if all are alike."""
        if self.given is None:
            return np.asarray(1.0 / np.diff(edges))
        squares = np.add.reduceat(np.square(self.given), edges[:-1])
        return np.asarray(squares / np.square(np.add.reduceat(self.given, edges[:-1])))

    def draw(self, low: Integers, end: Integers, uniforms: Floats) -> Integers:
        """Return a cell of each run, drawn by its probability."""
        start, stop = self.before(low), self.before(end)
        units: Integers = start + np.minimum((uniforms * (stop - start)).astype(np.int64), stop - start - 1)
        if self._before is None:
            return units
        return np.asarray(np.searchsorted(self._before, units, side="right") - 1, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Weighed:
    """A factor under the prior of its attribute; what is asked for often is worked out once."""

    part: Factor
    shares: Shares

    @cached_property
    def ends(self) -> tuple[Integers, Integers]:
        """The units before each run's first cell and before its end."""
        return self.shares.before(self.part.low), self.shares.before(self.part.end)

    @cached_property
    def means(self) -> Floats:
        """Σ p g of each term."""
        first, last = self.ends
        found: Floats = np.asarray((last - first) * self.shares.unit, dtype=np.float64)
        found[self.part.mixed] = self.table.sum(axis=1)
        return found

    @cached_property
    def squares(self) -> Floats:
        """Σ p g² of each term."""
        found = self.means.copy()
        if self.part.mixed.size:
            found[self.part.mixed] = np.square(self.part.table) @ self.shares.values
        return found

    @cached_property
    def spans(self) -> Floats:
        """The largest weight of each term less its least."""
        length = self.part.end - self.part.low
        found = ((length > 0) & (length < self.part.size)).astype(np.float64)
        found[self.part.mixed] = np.ptp(self.part.table, axis=1)
        return found

    @cached_property
    def table(self) -> Floats:
        """The weights that are written out, times the prior."""
        return self.part.table * self.shares.values if self.part.mixed.size else self.part.table

    def products(self, other: "Weighed") -> Floats:
        """Return Σ p g h for every term of this factor (rows) and of another one (columns)."""
        (low, end), (other_low, other_end) = self.ends, other.ends
        common = np.minimum.outer(end, other_end)
        common -= np.maximum.outer(low, other_low)
        found: Floats = np.maximum(common, 0) * self.shares.unit
        del common
        ours, theirs = self.part.mixed, other.part.mixed
        if theirs.size:
            found[:, theirs] = _over_runs(other.table, self.part).T
        if ours.size:
            found[ours] = _over_runs(self.table, other.part)
        if ours.size and theirs.size:
            found[np.ix_(ours, theirs)] = self.table @ other.part.table.T
        return found


def _over_runs(table: Floats, part: Factor) -> Floats:
    """Return the sum of each row of weights over each run of cells of a factor."""
    found = np.empty((len(table), part.terms.size))
    at_once = max(1, _ENTRIES_AT_ONCE // max(table.shape[1], 1))
    for start in range(0, len(table), at_once):
        sums = np.zeros((len(table[start : start + at_once]), table.shape[1] + 1))
        np.cumsum(table[start : start + at_once], axis=1, out=sums[:, 1:])
        found[start : start + at_once] = sums[:, part.end] - sums[:, part.low]
    return found


def weigh(parts: Sequence[Factor], prior: Sequence[Shares]) -> list[Weighed]:
    """Return the factor of each attribute under its prior."""
    return [Weighed(part, shares) for part, shares in zip(parts, prior, strict=True)]
