"""The least-distance program by Clarabel, an interior point for sparse facts; an extra that only large programs need.

Minimise z'z/2 with slopes z >= needed. Clarabel ends strictly inside to a tolerance, so its prices only tell which
facts bind: prices far below the largest are those of facts with room to spare.
"""

from functools import cache
from importlib import import_module
from importlib.util import find_spec

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_matrix, identity

Floats = NDArray[np.float64]

_TOLERANCE = 1e-12
_NO_PRICE = 1e-7


@cache
def has_interior_point() -> bool:
    """Return whether the extra is installed."""
    return find_spec("clarabel") is not None


def least_distance_inside(slopes: Floats, needed: Floats) -> tuple[Floats, Floats] | None:
    """Return the shortest z and the prices of the rows, zero for those that do not bind; None if it was not found."""
    # By name, since it is an extra: mypy and users without it must not need it.
    clarabel = import_module("clarabel")
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = _TOLERANCE
    width = slopes.shape[1]
    solver = clarabel.DefaultSolver(
        csc_matrix(identity(width)),
        np.zeros(width),
        csc_matrix(-slopes),
        -needed,
        [clarabel.NonnegativeConeT(len(needed))],
        settings,
    )
    found = solver.solve()
    if str(found.status) not in ("Solved", "AlmostSolved"):
        return None
    prices = np.array(found.z)
    return np.array(found.x), np.where(prices > _NO_PRICE * prices.max(), prices, 0.0)
