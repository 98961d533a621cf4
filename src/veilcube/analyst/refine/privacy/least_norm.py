"""The shortest move of the noise that explains a shift of refined answers: min ||u||_1 over A u = shift.

If refined answers are A·noise plus a mean that two tables put ``shift`` apart, then every outcome under one table is an
outcome under the other with the noise moved by any u of this set. Laplace noise of scale 1 makes the ratio of densities
at most exp(||u||_1), and far out the shortest u is reached: the least norm is the logarithm of the worst ratio (the
statement that replaces Theorem 2 of Ying, Wu and Wang 2013). Without such a u outcomes never coincide: the norm is inf.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from veilcube.system import Floats

_RANK = 1e-10
_OUTSIDE = 1e-8


def greatest_least_norm(matrix: Floats, shifts: Floats, known: Floats) -> tuple[float, int]:
    """Return the greatest over ``shifts`` (one per row) of the least norm, and which shift has it.

    ``known`` are norms of moves that are known to explain a shift, inf where none is: the least norm is never above.
    A program is solved only where the shift might still be the worst.
    """
    right, coordinates, is_explained = _in_coordinates(matrix, shifts)
    is_explained |= np.isfinite(known)
    if not is_explained.all():
        return np.inf, int(np.argmin(is_explained))
    above = np.minimum(np.abs(coordinates @ right).sum(axis=1), known)
    worst, at = 0.0, 0
    for index in np.argsort(-above, kind="stable"):
        if above[index] <= worst:
            break
        norm = min(_least_norm(right, coordinates[index]), float(above[index]))
        if norm > worst:
            worst, at = norm, int(index)
    return worst, at


def norms_of_each(matrix: Floats, shifts: Floats) -> Floats:
    """Return for each single coordinate the greatest over ``shifts`` of its least norm, |shift_i| / max_j |A_ij|.

    A coordinate is still only where its shifts are exactly zero: the caller takes rounding away.
    """
    needed = np.abs(shifts).max(axis=0)
    reach = np.abs(matrix).max(axis=1)
    is_still = needed == 0
    with np.errstate(divide="ignore"):
        return np.asarray(np.where(is_still, 0.0, needed / np.where(is_still, 1.0, reach)))


def _in_coordinates(matrix: Floats, shifts: Floats) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    """Return an orthonormal basis of the rows of A, the shifts in it, and which shifts some move explains.

    Answers that share no noise are looked at apart: beside a large shift of one, rounding would hide that of another.
    """
    links = csr_array(matrix != 0, dtype=np.int64)
    _, component = connected_components(links @ links.T, directed=False)
    is_explained = np.ones(len(shifts), dtype=bool)
    bases, coordinates = [np.empty((0, matrix.shape[1]))], [np.empty((len(shifts), 0))]
    for label in range(component.max() + 1):
        members = np.flatnonzero(component == label)
        left, sizes, right = np.linalg.svd(matrix[members], full_matrices=False)
        rank = int((sizes > _RANK * sizes.max(initial=0.0)).sum())
        part = shifts[:, members]
        inside = part @ left[:, :rank]
        outside = np.linalg.norm(part - inside @ left[:, :rank].T, axis=1)
        is_explained &= outside <= _OUTSIDE * np.linalg.norm(part, axis=1)
        bases.append(right[:rank])
        coordinates.append(inside / sizes[:rank])
    return np.concatenate(bases), np.concatenate(coordinates, axis=1), is_explained


def _least_norm(basis: Floats, coordinates: Floats) -> float:
    """Solve min Σ(p + q) with basis (p - q) = coordinates; the rows of ``basis`` are orthonormal, so it is feasible."""
    size = np.abs(coordinates).max(initial=0.0)
    if size == 0:
        return 0.0
    outcome = linprog(
        np.ones(2 * basis.shape[1]), A_eq=np.hstack([basis, -basis]), b_eq=coordinates / size, method="highs"
    )
    return float(outcome.fun) * float(size) if outcome.status == 0 else np.inf
