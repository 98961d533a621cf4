"""Products of small matrices with long rows, on the calling thread only.

A linear algebra library would be as fast but runs threads of its own, which keep a core busy long after such a
product and wait for each other where another program has the core; here they would cost more than all else.
"""

import numpy as np
from numpy.typing import NDArray

from veilcube.operators.parallel import compiled, compiled_fast

Floats = NDArray[np.float64]

BLOCK = 512  # so many columns of all components stay in a near cache


def mixed(weights: Floats, rows: Floats) -> Floats:
    """Return ``weights @ rows``."""
    out = np.zeros((weights.shape[0], rows.shape[1]))
    _add_mixtures(np.ascontiguousarray(weights), rows, out)
    return out


def matched(mixtures: Floats, rows: Floats) -> Floats:
    """Return ``mixtures @ rows.T``."""
    out = np.zeros((mixtures.shape[0], rows.shape[0]))
    _add_matches(mixtures, rows, out)
    return out


@compiled
def _add_mixtures(weights: Floats, rows: Floats, out: Floats) -> None:
    for begin in range(0, rows.shape[1], BLOCK):
        for k in range(weights.shape[0]):
            for c in range(weights.shape[1]):
                _add_scaled(weights[k, c], rows[c, begin : begin + BLOCK], out[k, begin : begin + BLOCK])


@compiled
def _add_matches(mixtures: Floats, rows: Floats, out: Floats) -> None:
    for begin in range(0, rows.shape[1], BLOCK):
        for k in range(mixtures.shape[0]):
            block = mixtures[k, begin : begin + BLOCK]
            if block.any():
                for c in range(rows.shape[0]):
                    out[k, c] += _dot(block, rows[c, begin : begin + BLOCK])


@compiled_fast
def _add_scaled(factor: float, row: Floats, out: Floats) -> None:
    for x in range(row.size):
        out[x] += factor * row[x]


@compiled_fast
def _dot(first: Floats, second: Floats) -> float:
    total = 0.0
    for x in range(first.size):
        total += first[x] * second[x]
    return total
