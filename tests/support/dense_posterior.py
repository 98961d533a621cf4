"""The posterior of a small tree by listing every table up to a largest count: slow, and nothing to get wrong."""

from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc

from veilcube.polya_tree import MeasuredTree
from veilcube.polya_tree.measured_tree import NONE
from veilcube.polya_tree.split_law import ALL_LEFT, ALL_RIGHT, BETA_SHAPES, COMPONENTS, HALF

Floats = NDArray[np.float64]


def defined_row(weights: Floats, j: int) -> Floats:
    """Return π(i|j) = F((i+½)/j) - F((i-½)/j) for all i, straight from the definition."""
    return weights @ component_row(j)


@cache
def component_row(j: int) -> Floats:
    """Return π(i|j) of every component."""
    table = np.zeros((COMPONENTS, j + 1))
    borders = np.clip((np.arange(j + 2) - 0.5) / max(j, 1), 0.0, 1.0)
    for component, shape in enumerate(BETA_SHAPES):
        table[component] = np.diff(betainc(shape, shape, borders)) if j else 1.0
    for i in (j // 2, (j + 1) // 2):
        table[HALF, i] += 0.5
    table[ALL_LEFT, j] = table[ALL_RIGHT, 0] = 1.0
    return table


class DensePosterior:
    """The joint law of the leaves' counts, each from 0 to ``most`` steps."""

    def __init__(self, measured: MeasuredTree, weights: Floats, step: float, most: int) -> None:
        leaves = measured.leaves
        grids = np.meshgrid(*[np.arange(most + 1)] * leaves.size, indexing="ij", sparse=True)
        self.counts: dict[int, NDArray[np.int64]] = dict(zip(leaves.tolist(), grids, strict=True))
        joint = np.ones((1,) * leaves.size)
        for v in range(measured.left.size - 1, -1, -1):  # children come after their parents
            left, right = int(measured.left[v]), int(measured.right[v])
            if left != NONE and right == NONE:
                self.counts[v] = self.counts[left]
            elif left != NONE:
                self.counts[v] = self.counts[left] + self.counts[right]
                joint = joint * _splits(weights[measured.kinds[v]], self.counts[v], self.counts[left])
            for m in range(measured.first[v], measured.first[v + 1]):
                distance = np.abs(measured.values[m] - step * self.counts[v])
                sigma_squared = 2 * measured.scales[m] ** 2
                is_normal = bool(measured.is_normal[m])
                exponent = distance**2 / (2 * sigma_squared) if is_normal else distance / measured.scales[m]
                joint = joint * np.exp(-exponent)
        self.evidence = float(joint.sum())
        self.joint = joint / self.evidence
        self.step = step

    def mean(self, v: int) -> float:
        return self.step * float((self.joint * self.counts[v]).sum())

    def variance(self, v: int) -> float:
        return self.step**2 * float((self.joint * np.square(self.counts[v])).sum()) - self.mean(v) ** 2

    def chances(self, v: int) -> Floats:
        counts = np.broadcast_to(self.counts[v], self.joint.shape)
        return np.bincount(counts.ravel(), weights=self.joint.ravel())


def _splits(weights: Floats, whole: NDArray[np.int64], left: NDArray[np.int64]) -> Floats:
    """Return π(left|whole) for arrays of counts."""
    table = np.zeros((int(whole.max()) + 1,) * 2)
    for j in range(len(table)):
        table[j, : j + 1] = defined_row(weights, j)
    return table[whole, left]
