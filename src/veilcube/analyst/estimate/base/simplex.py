"""The nearest non-negative numbers with a given sum."""

import numpy as np

from veilcube.system import Floats, compiled


@compiled
def project_onto_simplex(values: Floats, start: int, stop: int, total: float) -> None:
    """Replace a run of values by the nearest ones that are non-negative and sum to ``total`` (Michelot 1986).

    The threshold τ rises from the mean excess while values fall below it; each round drops at least one, or is the
    last.
    """
    kept, threshold = -1, -np.inf
    while total > 0:
        above, count = 0.0, 0
        for i in range(start, stop):
            if values[i] > threshold:
                above += values[i]
                count += 1
        if count == kept:
            break
        kept, threshold = count, (above - total) / count
    for i in range(start, stop):
        values[i] = max(values[i] - threshold, 0.0) if total > 0 else 0.0
