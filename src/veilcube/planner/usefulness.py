"""How much data is enough: rows, error and epsilon of a released histogram, each found from the other two.

A histogram of n rows over m cells is published as counts with Laplace noise of scale d/epsilon (d = 1 when neighbours
add or remove a row, 2 when they exchange one) and divided by the public n. It is (error, delta)-useful if the answers
are within ``error``, a share of the rows, with probability 1 - delta. The noise only sets the unit, so each bound below
is one number Q(m, delta), and all three directions are the same equation

    rows · error · epsilon = d · Q(m, delta).

* ``paper``: Q = m ln(m/delta), Theorem 5.2 of TR-2010-003 (every noise below error/m: valid and very loose);
* ``sum``: the (1 - delta) quantile of Σ|noise|, exactly a Gamma variable of shape m. No sum of cells is further off, so
  it holds for all intervals and rectangles at once; it is what the paper's Lemma 4.1 bounds;
* ``single-query``: the (1 - delta) quantile of |Σ noise| over all m cells: one given query, exactly if it covers all
  cells, and better if it covers fewer (one more symmetric unimodal term never narrows a sum; Wintner 1938).

The law is the paper's continuous one. The discrete noise that veilcube draws is never wider by more than one count, and
visibly narrower from epsilon 1 on.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import isfinite, log
from numbers import Integral, Real
from types import MappingProxyType
from typing import Literal

import scipy

from veilcube.errors import PlanError
from veilcube.laws import DiscreteLaplace, half_widths, tail
from veilcube.privacy import EpsilonLike, Neighbours, read_epsilon

Quantity = Literal["rows", "error", "epsilon"]

MOST_CELLS = 2**40
SMALLEST_DELTA, LARGEST_DELTA = 1e-9, 0.999
# On a lattice this fine the discrete law is the continuous one to nine digits.
_FINE_SCALE = 2**30
# Beyond, the expansion behind `half_widths` is right to nine digits by itself.
_MOST_CELLS_INVERTED = 2**14

MEANINGS: Mapping[str, str] = MappingProxyType(
    {
        "paper": "the published bound, for every sum of cells at once: valid and very loose",
        "sum": "every sum of cells at once, so all intervals and rectangles: exact law of the sum of the noises' sizes",
        "single-query": "one given query, at worst over all cells: exact law of the summed noise",
    }
)


@dataclass(frozen=True)
class Usefulness:
    """Rows, error (a share of the rows) and epsilon that go together, by each bound; ``solved`` names the found one.

    The three mappings have the keys of ``MEANINGS``; the two quantities that were given are the same under every key.
    """

    cells: int
    delta: float
    neighbours: Neighbours
    solved: Quantity
    rows: Mapping[str, float]
    error: Mapping[str, float]
    epsilon: Mapping[str, float]

    def __str__(self) -> str:
        found: Mapping[str, float] = getattr(self, self.solved)
        lines = [f"{self.solved} {found[bound]:.6g}: {meaning}" for bound, meaning in MEANINGS.items()]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, object]:
        """Return it as plain data."""
        return {
            "cells": self.cells,
            "delta": self.delta,
            "neighbours": str(self.neighbours),
            "solved": self.solved,
            "rows": dict(self.rows),
            "error": dict(self.error),
            "epsilon": dict(self.epsilon),
            "meanings": dict(MEANINGS),
        }


def usefulness(
    *,
    cells: int,
    epsilon: EpsilonLike | None = None,
    error: float | None = None,
    delta: float = 0.05,
    rows: float | None = None,
    neighbours: str = Neighbours.ADD_REMOVE,
) -> Usefulness:
    """Find the one of ``rows``, ``error`` and ``epsilon`` that is left out, by each of three bounds.

    ``error`` is a share of the rows and ``delta`` the probability with which answers may be further off.

    >>> found = usefulness(cells=100, epsilon=0.05, error=0.02, delta=0.05)
    >>> {bound: round(rows) for bound, rows in found.rows.items()}
    {'paper': 760090, 'sum': 116997, 'single-query': 27747}
    """
    relation = Neighbours.read(neighbours)
    given = {
        "rows": _read_optional(rows, "rows", "a number of rows above 0, such as 100000"),
        "error": _read_optional(error, "error", "a share of the rows above 0, such as 0.02"),
        "epsilon": None if epsilon is None else float(read_epsilon(epsilon)),
    }
    known = {name: value for name, value in given.items() if value is not None}
    if len(known) != 2:
        raise PlanError(f"two of rows, error and epsilon must be given, not {len(known)}; leave out the one to find")
    size, share = _checked_cells(cells), _checked_delta(delta)
    found = _solve(size, share, 1 if relation is Neighbours.ADD_REMOVE else 2, *known.values())
    by_bound = {
        name: MappingProxyType(found if value is None else dict.fromkeys(found, value)) for name, value in given.items()
    }
    return Usefulness(size, share, relation, _left_out(known), **by_bound)


def _solve(cells: int, delta: float, sensitivity: int, first: float, second: float) -> dict[str, float]:
    found = {bound: sensitivity * quantile(cells, delta) / first / second for bound, quantile in _QUANTILES.items()}
    if not all(isfinite(value) and value > 0 for value in found.values()):
        raise PlanError("rows, error and epsilon are too far apart to plan with; use values nearer to 1")
    return found


def _left_out(known: Mapping[str, float]) -> Quantity:
    if "rows" not in known:
        return "rows"
    return "error" if "error" not in known else "epsilon"


def _published_quantile(cells: int, delta: float) -> float:
    return cells * log(cells / delta)


def _quantile_of_sizes(cells: int, delta: float) -> float:
    """The x with P(Gamma(cells) > x) = delta: the sizes of Laplace noises are exponential variables."""
    return float(scipy.special.gammainccinv(cells, delta))


def _quantile_of_sum(cells: int, delta: float) -> float:
    """The w with P(|Σ noise| > w) = delta, by inverting the exact tail around the half-width of an interval."""
    noise = DiscreteLaplace(Fraction(_FINE_SCALE))
    near = float(half_widths(noise, [cells], 1 - delta)[0])

    def excess(width: float) -> float:
        return 2 * float(tail(noise, cells, width)) - delta

    width = near if cells > _MOST_CELLS_INVERTED else scipy.optimize.brentq(excess, near / 2, 2 * near, rtol=1e-10)
    return float(width) / _FINE_SCALE


_QUANTILES: Mapping[str, Callable[[int, float], float]] = MappingProxyType(
    {"paper": _published_quantile, "sum": _quantile_of_sizes, "single-query": _quantile_of_sum}
)


def _read_optional(value: object, name: str, allowed: str) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, Real) or not isfinite(value) or value <= 0:
        raise PlanError(f"{name} must be {allowed}; correct it, or leave it out to find it")
    return float(value)


def _checked_cells(cells: object) -> int:
    if isinstance(cells, bool) or not isinstance(cells, Integral) or not 1 <= int(cells) <= MOST_CELLS:
        raise PlanError("cells must be a whole number from 1 to 2**40: the number of cells of the histogram")
    return int(cells)


def _checked_delta(delta: object) -> float:
    if isinstance(delta, bool) or not isinstance(delta, Real) or not SMALLEST_DELTA <= float(delta) <= LARGEST_DELTA:
        raise PlanError(
            f"delta, a probability of failure, must lie from {SMALLEST_DELTA:g} to {LARGEST_DELTA}; 0.05 is usual"
        )
    return float(delta)
