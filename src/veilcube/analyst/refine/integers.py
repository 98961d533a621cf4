"""Whole numbers that obey every fact, near refined answers: an integer program in the sum of the moves.

Minimise Σ |n_i - x_i| / s_i over whole n under the facts, with s_i the standard deviation of answer i before
refinement. Found by branch and bound (HiGHS): a nearest point in this distance, which need not be unique.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_array, eye_array, hstack, vstack

from veilcube.analyst.refine.facts import FactSystem
from veilcube.errors import CapacityError, QueryError

Floats = NDArray[np.float64]

MOST_WHOLE_ANSWERS = 1_000
_SECONDS = 20.0
_INFEASIBLE = 2


def nearest_integers(value: Floats, deviations: Floats, facts: FactSystem) -> Floats:
    """Return whole numbers near ``value`` that obey the facts exactly; answers without noise move at the highest price.

    Refuses facts that no whole numbers obey, and programs that are not solved within 20 seconds.
    """
    size = value.size
    if size > MOST_WHOLE_ANSWERS:
        raise CapacityError(f"at most {MOST_WHOLE_ANSWERS:,} answers can be made whole together, not {size:,}")
    least = deviations[deviations > 0].min(initial=1.0)
    prices = 1 / np.where(deviations > 0, deviations, 1e-3 * least)
    origin = np.rint(value)
    rest = facts.constants - facts.weights @ origin
    # Variables: the whole step from the rounded value, and how far it ends from the value.
    ones, offsets = eye_array(size), value - origin
    far = vstack([hstack([ones, -ones]), hstack([-ones, -ones])])
    weights = hstack([csr_array(facts.weights), csr_array((len(facts), size))])
    outcome = milp(
        np.concatenate([np.zeros(size), prices / prices.max()]),
        integrality=np.concatenate([np.ones(size), np.zeros(size)]),
        bounds=Bounds(np.concatenate([np.full(size, -np.inf), np.zeros(size)]), np.full(2 * size, np.inf)),
        constraints=[
            LinearConstraint(far, -np.inf, np.concatenate([offsets, -offsets])),
            *([LinearConstraint(weights, np.where(facts.is_equality, rest, -np.inf), rest)] if len(facts) else []),
        ],
        options={"time_limit": _SECONDS},
    )
    if outcome.status == _INFEASIBLE:
        raise QueryError("no whole numbers obey the facts; leave out integers=True, or correct the facts")
    if outcome.status != 0:
        raise QueryError(f"no whole answers were found within {_SECONDS:.0f} seconds; leave out integers=True")
    return np.asarray(origin + np.rint(outcome.x[:size]))
