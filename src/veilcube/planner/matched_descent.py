"""L-BFGS for the search of matched strategies (Nocedal & Wright, Numerical Optimization, algorithm 7.5).

Ours and not scipy's since its inner products go through BLAS, whose threads wait for one another at every call: on a
machine with other work that took longer than the objective itself.
"""

from collections import deque
from collections.abc import Callable

import numpy as np

from veilcube.operators.axis import Floats

MEMORY = 15
FIRST_MOVE = 0.1
# The search ends when this many steps together lower the objective by less than this.
PATIENCE, LEAST_GAIN = 5, 2e-5
_SHORTEST_STEP = 1e-6

Objective = Callable[[Floats], tuple[float, Floats]]


def descend(objective: Objective, start: Floats, steps: int) -> Floats:
    """Return where at most so many steps lead from a start, each lowering the objective, a value with its slopes."""
    point = start
    value, slopes = objective(point)
    history: deque[tuple[Floats, Floats, float]] = deque(maxlen=MEMORY)
    values = deque([value], maxlen=PATIENCE + 1)
    for _ in range(steps):
        direction = _direction(point, slopes, history)
        descent, length = _dot(slopes, direction), 1.0
        while True:
            moved = point + length * direction
            new_value, new_slopes = objective(moved)
            if new_value <= value + 1e-4 * length * descent:
                break
            length /= 2
            if length < _SHORTEST_STEP:
                return point
        step, change = moved - point, new_slopes - slopes
        curvature = _dot(step, change)
        if curvature > 1e-12 * np.sqrt(_dot(step, step) * _dot(change, change)):
            history.append((step, change, curvature))
        point, value, slopes = moved, new_value, new_slopes
        values.append(value)
        if len(values) > PATIENCE and values[0] - value < LEAST_GAIN:
            break
    return point


def _direction(point: Floats, slopes: Floats, history: deque[tuple[Floats, Floats, float]]) -> Floats:
    """Return the step of the two-loop recursion; the first one moves the steepest number by a tenth of its kind."""
    if not history:
        steepest = float(np.abs(slopes).max())
        typical = max(float(np.sqrt(np.mean(np.square(point)))), FIRST_MOVE)
        return slopes * (-FIRST_MOVE * typical / steepest if steepest > 0 else 0.0)
    result, shares = slopes.copy(), []
    for step, change, curvature in reversed(history):
        shares.append(_dot(step, result) / curvature)
        result -= shares[-1] * change
    _, change, curvature = history[-1]
    result *= curvature / _dot(change, change)
    for (step, change, curvature), share in zip(history, reversed(shares), strict=True):
        result += (share - _dot(change, result) / curvature) * step
    return -result


def _dot(left: Floats, right: Floats) -> float:
    return float((left * right).sum())
