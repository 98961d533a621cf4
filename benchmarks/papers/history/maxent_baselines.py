"""The two randomised-response baselines of the paper's section 5.2, with estimates of marginals from perturbed rows.

Each attribute gets an equal share of epsilon. Retention replacement keeps a value or draws another evenly; flipping
writes a value as bits, one for each cell, and flips every bit. Both are unbiased once the perturbation is inverted.
"""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from benchmarks.papers.history.census import Codes

Floats: TypeAlias = NDArray[np.float64]


class RetentionReplacement:
    """Rows whose values were kept with such a chance that no value's likelihood ratio exceeds exp(epsilon / d)."""

    def __init__(self, codes: Codes, sizes: tuple[int, ...], epsilon: float, seed: int) -> None:
        random, gain = np.random.default_rng(seed), np.expm1(epsilon / len(sizes))
        self._keep = [gain / (gain + size) for size in sizes]
        self._sizes = sizes
        self._rows = codes.copy()
        for axis, (size, keep) in enumerate(zip(sizes, self._keep, strict=True)):
            replaced = random.random(len(codes)) >= keep
            self._rows[replaced, axis] = random.integers(0, size, int(replaced.sum()))

    def marginal(self, *axes: int) -> Floats:
        """Return the estimated joint distribution of some attributes."""
        sizes = tuple(self._sizes[axis] for axis in axes)
        flat = np.ravel_multi_index(tuple(self._rows[:, axis] for axis in axes), sizes)
        table = np.bincount(flat, minlength=int(np.prod(sizes))).reshape(sizes) / len(self._rows)
        for place, axis in enumerate(axes):
            # The inverse of keep·I + (1 - keep)/size·J.
            keep = self._keep[axis]
            mean = table.mean(axis=place, keepdims=True)
            table = (table - (1 - keep) * mean) / keep
        return np.asarray(table)

    def shares(self, low: Codes, high: Codes) -> Floats:
        """Return the estimated shares of rows in blocks of cells: means of products of unbiased indicators."""
        found = np.empty(len(low))
        for query, (first, last) in enumerate(zip(low, high, strict=True)):
            weights = np.ones(len(self._rows))
            for axis in np.flatnonzero(last - first + 1 < np.array(self._sizes)):
                keep, size = self._keep[axis], self._sizes[axis]
                inside = (self._rows[:, axis] >= first[axis]) & (self._rows[:, axis] <= last[axis])
                weights *= (inside - (1 - keep) * (last[axis] - first[axis] + 1) / size) / keep
            found[query] = weights.mean()
        return found


class Flipping:
    """Rows as bits that were flipped; two values differ in two bits, so ((1 - f)/f)² = exp(epsilon / d)."""

    def __init__(self, codes: Codes, sizes: tuple[int, ...], epsilon: float, seed: int) -> None:
        random = np.random.default_rng(seed)
        flip = 1 / (1 + np.exp(epsilon / len(sizes) / 2))
        starts = np.cumsum([0, *sizes])
        products = np.zeros((int(starts[-1]), int(starts[-1])))
        for begin in range(0, len(codes), 20_000):
            part = codes[begin : begin + 20_000]
            bits = np.zeros((len(part), int(starts[-1])), dtype=np.bool_)
            bits[np.arange(len(part))[:, np.newaxis], part + starts[:-1]] = True
            bits ^= random.random(bits.shape) < flip
            centred = (bits - flip) / (1 - 2 * flip)
            products += centred.T @ centred
        self._products, self._starts = products / len(codes), starts

    def marginal(self, first: int, second: int) -> Floats:
        """Return the estimated joint distribution of two attributes."""
        starts = self._starts
        return np.asarray(self._products[starts[first] : starts[first + 1], starts[second] : starts[second + 1]])
