"""Which rows of a linear system say something new, and which repeat or contradict the ones before.

Rows are taken in the user's order by Gram-Schmidt with reorthogonalisation. A row that lies in the span of kept rows,
b = Σ α_i b_i, is redundant if its constant is Σ α_i c_i too; otherwise it and the rows with α_i ≠ 0 contradict each
other, and no smaller set of them does.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from veilcube.system import Floats

# Relative length of what is left of a row after projection: below the first it lies in the span of the others.
_DEPENDENT = 1e-10
_NEARLY_DEPENDENT = 1e-7
_ROUNDING = 1e-9
# Relative size of a row's part in a combination: below it is what the triangular solution's rounding leaves.
_NO_SHARE = 1e-12


@dataclass(frozen=True, eq=False)
class Independent:
    """Kept rows as ``triangle @ basis``, ``basis`` with orthonormal rows; and the first rows that cannot be right.

    ``contradiction`` and ``near_repeat`` hold the indices of such rows, empty where there are none.
    """

    kept: tuple[int, ...]
    basis: Floats
    triangle: Floats
    contradiction: tuple[int, ...] = ()
    near_repeat: tuple[int, ...] = ()

    def spans(self, rows: Floats) -> NDArray[np.bool_]:
        """Return which of other rows are combinations of the kept ones, so that these determine what they say."""
        rest = rows - (rows @ self.basis.T) @ self.basis
        return np.asarray(np.linalg.norm(rest, axis=1) <= _DEPENDENT * np.linalg.norm(rows, axis=1))


def independent_rows(rows: Floats, constants: Floats, magnitudes: Floats) -> Independent:
    """Return the rows that are linearly independent of the ones before them.

    ``magnitudes`` is the size of the numbers that each constant was computed from: what its rounding is relative to.
    """
    found = _Growing(rows.shape[1])
    lengths = np.linalg.norm(rows, axis=1)
    near_repeat: tuple[int, ...] = ()
    for index, (row, length) in enumerate(zip(rows, lengths, strict=True)):
        along, rest = found.project(row)
        left = np.linalg.norm(rest)
        if left > _DEPENDENT * length:
            if left < _NEARLY_DEPENDENT * length and not near_repeat:
                near_repeat = (*found.involved(along), index)
            found.append(index, along, rest)
            continue
        shares = found.shares(along)
        expected = shares @ constants[found.kept]
        slack = _ROUNDING * (magnitudes[index] + np.abs(shares) @ magnitudes[found.kept])
        if abs(constants[index] - expected) > slack:
            return found.result(contradiction=(*found.involved(along), index))
    return found.result(near_repeat=near_repeat)


class _Growing:
    """An orthonormal basis that grows row by row."""

    def __init__(self, width: int) -> None:
        self.kept: list[int] = []
        self._basis = np.empty((min(width, 16), width))
        self._triangle = np.zeros((min(width, 16),) * 2)

    def _parts(self) -> tuple[Floats, Floats]:
        size = len(self.kept)
        return self._basis[:size], self._triangle[:size, :size]

    def project(self, row: Floats) -> tuple[Floats, Floats]:
        basis, _ = self._parts()
        along = basis @ row
        rest = row - along @ basis
        again = basis @ rest
        return along + again, rest - again @ basis

    def shares(self, along: Floats) -> Floats:
        """Return α with Σ α_i b_i = Σ along_k q_k, exactly 0 where only rounding is left of α_i b_i."""
        _, triangle = self._parts()
        if not self.kept:
            return np.empty(0)
        shares = np.asarray(solve_triangular(triangle, along, lower=True, trans="T"))
        sizes = np.abs(shares) * np.linalg.norm(triangle, axis=1)
        return np.where(sizes > _NO_SHARE * sizes.max(), shares, 0.0)

    def involved(self, along: Floats) -> tuple[int, ...]:
        return tuple(index for index, share in zip(self.kept, self.shares(along), strict=True) if share)

    def append(self, index: int, along: Floats, rest: Floats) -> None:
        size = len(self.kept)
        if size == len(self._basis):
            more = min(2 * size, self._basis.shape[1])
            self._basis = np.concatenate([self._basis, np.empty((more - size, self._basis.shape[1]))])
            grown = np.zeros((more, more))
            grown[:size, :size] = self._triangle
            self._triangle = grown
        left = np.linalg.norm(rest)
        self._basis[size] = rest / left
        self._triangle[size, :size] = along
        self._triangle[size, size] = left
        self.kept.append(index)

    def result(self, contradiction: tuple[int, ...] = (), near_repeat: tuple[int, ...] = ()) -> Independent:
        basis, triangle = self._parts()
        return Independent(tuple(self.kept), basis, triangle, contradiction, near_repeat)
