"""The covariance matrix G of thousands of facts, factored: which facts are new, and which repeat or contradict others.

G = B'S B, scaled to a unit diagonal, is factored in place as L L'. The square of a diagonal entry of L is what is left
of the variance of a fact after the facts before it: zero for a fact that follows from them. Then the factorisation is
repeated with pivots (LAPACK's pstrf), which leaves the facts that follow from others last, each as a combination
b = Σ α_i b_i of kept ones. It is redundant if its constant is Σ α_i c_i, and otherwise contradicts those with α_i ≠ 0.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dpotrf, dpstrf

from veilcube.system import Floats, Integers

# Share of a fact's variance that the others leave: below the first it follows from them, below the second nearly.
_DEPENDENT = 1e-11
_NEARLY_DEPENDENT = 1e-9
_NO_SHARE = 1e-6
# Sums of counts combine facts by simple fractions; these denominators make what rounding left of them exact again.
_DENOMINATOR = 5040
_EXACT_ROUNDING = 1e-12
_ROUNDING = 1e-7


@dataclass(frozen=True, eq=False)
class FactoredFacts:
    """L of the kept facts, G = diag(lengths) L L' diag(lengths); and the facts that cannot be right, if there are any.

    ``contradiction`` and ``near_repeat`` hold the positions of such facts among the given ones.
    """

    kept: Integers
    lengths: Floats
    triangle: Floats
    contradiction: tuple[int, ...] = ()
    near_repeat: tuple[int, ...] = ()

    def halve(self, covariances: Floats) -> Floats:
        """Return L^-1 diag(lengths)^-1 K for rows K of the kept facts: its squares add up to what they explain."""
        return np.asarray(self._solve(covariances / _column(self.lengths, covariances), transposed=False))

    def solve(self, values: Floats) -> Floats:
        """Return G^-1 v for values of the kept facts, vectors or columns."""
        lengths = _column(self.lengths, values)
        return np.asarray(self._solve(self._solve(values / lengths, transposed=False), transposed=True) / lengths)

    def _solve(self, values: Floats, *, transposed: bool) -> Floats:
        if not len(self.kept):
            return values
        trans = "T" if transposed else "N"
        return np.asarray(solve_triangular(self.triangle, values, lower=True, trans=trans, check_finite=False))


def factor_facts(build: Callable[[Floats], None], lengths: Floats, constants: Floats) -> FactoredFacts:
    """Return the factored covariance of facts; ``build`` fills a matrix with G.

    ``lengths`` are the facts' standard deviations, of which none may be zero. ``build`` is called again if the
    facts turn out to depend on each other.
    """
    matrix = _scaled(build, lengths)
    triangle, problem = dpotrf(matrix.T, lower=1, overwrite_a=1, clean=0)
    if problem == 0 and np.square(np.diagonal(triangle)).min(initial=1.0) > _NEARLY_DEPENDENT:
        return FactoredFacts(np.arange(len(lengths)), lengths, triangle)
    return _with_pivots(_scaled(build, lengths, matrix), lengths, constants)


def _scaled(build: Callable[[Floats], None], lengths: Floats, out: Floats | None = None) -> Floats:
    matrix = np.empty((len(lengths), len(lengths))) if out is None else out
    build(matrix)
    matrix /= lengths[:, np.newaxis]
    matrix /= lengths
    return matrix


def _with_pivots(matrix: Floats, lengths: Floats, constants: Floats) -> FactoredFacts:
    triangle, pivots, rank, _ = dpstrf(matrix.T, tol=_DEPENDENT, lower=1, overwrite_a=1)
    order = np.asarray(pivots, dtype=np.int64) - 1
    kept, others = order[:rank], order[rank:]
    along = np.array(triangle[rank:, :rank])
    found = FactoredFacts(kept, lengths[kept], _leading(triangle, rank))
    for other, row in zip(others.tolist(), along, strict=True):
        shares, is_exact = _snapped(_shares(found, row) * (lengths[other] / found.lengths))
        magnitude = abs(constants[other]) + float(np.abs(shares) @ np.abs(constants[kept]))
        slack = (_EXACT_ROUNDING if is_exact else _ROUNDING) * magnitude
        if abs(constants[other] - float(shares @ constants[kept])) > slack:
            return _refused(contradiction=_involved(kept, shares, other))
    left = np.square(np.diagonal(found.triangle))
    if rank and left.min() < _NEARLY_DEPENDENT:
        last = int(np.argmin(left))
        row = np.where(np.arange(rank) < last, np.asarray(found.triangle)[last], 0.0)
        shares = _shares(found, row)
        return _refused(near_repeat=_involved(kept, shares, int(kept[last])))
    return found


def _shares(found: FactoredFacts, along: Floats) -> Floats:
    """Return α, in units of the facts' standard deviations, for a fact at ``along`` in the kept ones' directions."""
    if not len(found.kept):
        return np.empty(0)
    return np.asarray(solve_triangular(found.triangle, along, lower=True, trans="T", check_finite=False))


def _snapped(shares: Floats) -> tuple[Floats, bool]:
    """Return shares as simple fractions where all are that but for rounding, and whether they are."""
    simple = np.round(shares * _DENOMINATOR) / _DENOMINATOR
    is_exact = bool((np.abs(simple - shares) <= _NO_SHARE).all())
    return (simple, True) if is_exact else (shares, False)


def _involved(kept: Integers, shares: Floats, other: int) -> tuple[int, ...]:
    is_part = np.abs(shares) > _NO_SHARE * np.abs(shares).max(initial=0.0)
    return (*np.sort(kept[is_part]).tolist(), other)


def _leading(triangle: Floats, rank: int) -> Floats:
    """Return the leading part of a matrix in Fortran's order as one of its own, inside the same memory."""
    size = len(triangle)
    if rank == size:
        return triangle
    memory = triangle.ravel(order="K")
    for column in range(rank):
        memory[column * rank : (column + 1) * rank] = memory[column * size : column * size + rank].copy()
    return memory[: rank * rank].reshape((rank, rank), order="F")


def _refused(contradiction: tuple[int, ...] = (), near_repeat: tuple[int, ...] = ()) -> FactoredFacts:
    return FactoredFacts(np.empty(0, np.int64), np.empty(0), np.empty((0, 0)), contradiction, near_repeat)


def _column(lengths: Floats, values: Floats) -> Floats:
    return lengths if values.ndim == 1 else lengths[:, np.newaxis]
