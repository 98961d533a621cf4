"""Whole numbers that obey every fact, near refined answers: an integer program in the sum of the moves.

Minimise Σ |n_i - x_i| / s_i over whole n under the facts, with s_i the standard deviation of answer i before
refinement. Between two whole numbers the distance is replaced by the straight line that joins its values there, which
changes nothing for whole n: n_i is the whole number below x_i, plus 1 or not, plus or minus further steps. So the
program without whole numbers is as near to the one with them as can be, and for sums of groups inside of groups they
are the same. Branch and bound (HiGHS) finds a nearest point, which need not be unique, or, where that takes longer than
20 seconds, the nearest that it has met.
"""

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_array, hstack

from veilcube.analyst.refine.facts import FactSystem
from veilcube.errors import CapacityError, QueryError
from veilcube.system import Floats

MOST_WHOLE_ANSWERS = 1_000
_SECONDS = 20.0
_INFEASIBLE = 2


def nearest_integers(value: Floats, deviations: Floats, facts: FactSystem) -> Floats:
    """Return whole numbers near ``value`` that obey the facts exactly; answers without noise move at the highest price.

    Refuses facts that no whole numbers obey, and programs for which none are found within 20 seconds.
    """
    size = value.size
    if size > MOST_WHOLE_ANSWERS:
        raise CapacityError(f"at most {MOST_WHOLE_ANSWERS:,} answers can be made whole together, not {size:,}")
    least = deviations[deviations > 0].min(initial=1.0)
    prices = 1 / np.where(deviations > 0, deviations, 1e-3 * least)
    prices = prices / prices.max()
    below = np.floor(value)
    rest = facts.constants - facts.weights @ below
    weights = csr_array(facts.weights)
    # Variables: whether the value is rounded up, and further steps up and down.
    outcome = milp(
        np.concatenate([prices * (1 - 2 * (value - below)), prices, prices]),
        integrality=np.ones(3 * size),
        bounds=Bounds(np.zeros(3 * size), np.repeat([1.0, np.inf, np.inf], size)),
        constraints=(
            [LinearConstraint(hstack([weights, weights, -weights]), np.where(facts.is_equality, rest, -np.inf), rest)]
            if len(facts)
            else []
        ),
        options={"time_limit": _SECONDS},
    )
    if outcome.status == _INFEASIBLE:
        raise QueryError("no whole numbers obey the facts; leave out integers=True, or correct the facts")
    if outcome.x is None:
        raise QueryError(f"no whole answers were found within {_SECONDS:.0f} seconds; leave out integers=True")
    up, further, down = np.rint(outcome.x).reshape(3, size)
    return np.asarray(below + up + further - down)
