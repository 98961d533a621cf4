"""The noise of least-squares answers as plain data, for programs that compute their intervals elsewhere.

Sums of plain noisy cells have half-widths that depend on the number of cells alone: a staircase. On products the
moments of an answer's noise weights are products over the attributes (``operators.product``): an attribute gives the
noise weights of its runs, from which those of any set of them follow, or if these are too many the moments of ranges.
"""

from collections.abc import Sequence

import numpy as np

from veilcube.analyst.estimate.base import PlainData, Runs
from veilcube.laws import Noise, WidthRule, half_widths
from veilcube.operators import AxisOperator, ProductOperator

# An attribute with more noise weights than this tells the moments of its ranges only.
MOST_WEIGHTS, MOST_INDICATORS = 2**17, 2**22


def widths_of_sums(cells: int, noise: Noise, confidence: float) -> PlainData:
    """Return the half-width of sums of 0 to all cells: from ``starts[i]`` cells on it is ``widths[i]``."""
    every = half_widths(noise, np.arange(cells + 1), confidence)
    starts = np.flatnonzero(np.diff(every, prepend=-1.0))
    return {"kind": "sums", "starts": starts, "widths": every[starts], "stddev": noise.stddev}


def moments_of_runs(product: ProductOperator, noise: Noise, cuts: Sequence[Runs], confidence: float) -> PlainData:
    """Return the moments of each attribute's runs, and what makes a half-width of their products."""
    rule = WidthRule.of(confidence)
    return {
        "kind": "moments",
        "axes": [_of_axis(axis, runs) for axis, runs in zip(product.axes, cuts, strict=True)],
        "cumulants": noise.cumulants(),
        "variance": noise.variance,
        "table": rule.table.coefficients,
        "margin": rule.margin,
        "confidence": rule.confidence,
    }


def _of_axis(axis: AxisOperator, runs: Runs) -> PlainData:
    if axis.is_flat:
        return {"kind": "flat"}
    if len(runs) * axis.rows <= MOST_WEIGHTS and len(runs) * axis.size <= MOST_INDICATORS:
        return {"kind": "weights", "weights": axis.noise_weights(runs.indicators())}
    low, high = runs.ranges()
    cuts = np.stack([runs.first[low], runs.last[high] + 1], axis=1)
    found = axis.moments_of_steps(cuts, np.broadcast_to(np.array([0.0, 1.0, 0.0]), (len(cuts), 3)))
    return {"kind": "ranges", "moments": np.stack([found.second, found.fourth, found.sixth])}
