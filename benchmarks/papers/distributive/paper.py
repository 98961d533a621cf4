"""The paper's mechanism for a maximum over a limited domain, as its law. It is NOT differentially private.

TR-2010-003, sections 4.1.2 and 7: begin with equal probabilities; each record x raises those of the values within
``reach`` of it and lowers those from a floor up to below that range, both in proportion, by the smaller of what raises
the one by exp(alpha) or lowers the other by exp(-alpha). With the published floor, the least record, one more record
moves the floor and with it the effect of all other records; with the least value of the domain as the floor the law
still fails, by less. It lives here for comparison only, and nothing in the package can reach it.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def published_max_law(
    records: Sequence[int], values: int, alpha: float, reach: int, *, fixed_floor: bool = False
) -> Floats:
    """Return the probability with which each value of 1..values is published as the maximum of the records."""
    law = np.full(values, 1 / values)
    domain = np.arange(1, values + 1)
    floor = 1 if fixed_floor else min(records, default=1)
    raising, lowering = np.expm1(alpha), -np.expm1(-alpha)
    for record in records:
        upper = np.abs(domain - record) <= reach
        lower = (domain >= floor) & (domain < record - reach)
        mass_up, mass_down = law[upper].sum(), law[lower].sum()
        moved = min(mass_up * raising, mass_down * lowering)
        if moved > 0:
            law[upper] *= 1 + moved / mass_up
            law[lower] *= 1 - moved / mass_down
    return law


def largest_log_ratio(first: Floats, second: Floats) -> float:
    """Return the epsilon that two laws need: the largest absolute log-ratio of their probabilities."""
    return float(np.abs(np.log(first) - np.log(second)).max())
