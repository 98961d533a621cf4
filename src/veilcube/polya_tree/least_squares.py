"""Least squares on a measured tree: what the measurements say without any prior.

With independent noises of known variances, the best linear unbiased estimate of all nodes is found by one pass up,
which joins what was measured of a node with the sum of its halves, and one pass down, which divides what is left over
between the halves in proportion to their variances. Its error has the covariance of a normal law with these factors,
so draws of the error come from the same pass down. Values by which a staged tree decided are doubted
(``measured_tree``).
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from veilcube.polya_tree.measured_tree import NONE, MeasuredTree
from veilcube.system import Floats, Integers


@dataclass(frozen=True, eq=False)
class TreeLeastSquares:
    """Each node's estimate from what was measured at and below it, and its variance."""

    measured: MeasuredTree
    below: Floats
    variances: Floats

    @classmethod
    def of(cls, measured: MeasuredTree) -> "TreeLeastSquares":
        """Go up the tree; every leaf must have been measured."""
        precision, weighted = _own(measured)
        below, variances = np.zeros(precision.size), np.zeros(precision.size)
        for group in measured.heights:
            leaves, inner = group[measured.left[group] == NONE], group[measured.left[group] != NONE]
            variances[leaves] = 1.0 / precision[leaves]
            below[leaves] = weighted[leaves] * variances[leaves]
            left, right, is_halved = _halves(measured, inner)
            of_halves = variances[left] + np.where(is_halved, variances[right], 0.0)
            sums = below[left] + np.where(is_halved, below[right], 0.0)
            variances[inner] = 1.0 / (1.0 / of_halves + precision[inner])
            below[inner] = variances[inner] * (sums / of_halves + weighted[inner])
        return cls(measured, below, variances)

    def contradictions(self) -> dict[int, tuple[int, float]]:
        """Return, by level, how many nodes were measured beside their halves, and their mean squared difference.

        That is in units of its variance: about 1, or less where values that decided are doubted.
        """
        measured = self.measured
        precision, weighted = _own(measured)
        inner = np.flatnonzero((precision > 0) & (measured.left != NONE))
        left, right, is_halved = _halves(measured, inner)
        sums = self.below[left] + np.where(is_halved, self.below[right], 0.0)
        variances = self.variances[left] + np.where(is_halved, self.variances[right], 0.0) + 1.0 / precision[inner]
        squares = np.square(weighted[inner] / precision[inner] - sums) / variances
        levels, found = measured.level[inner], {}
        for level in np.unique(levels).tolist():
            here = squares[levels == level]
            found[level] = (here.size, float(here.mean()))
        return found

    @cached_property
    def counts(self) -> Floats:
        """The estimate of every node."""
        counts = np.zeros((1, self.below.size))
        counts[:, 0] = self.below[0]
        self._pass_down(counts, self.below, None)
        estimates: Floats = counts[0]
        return estimates

    def draw_errors(self, normals: Floats) -> Floats:
        """Return draws of the error of every node, (draws, nodes), from as many standard normal numbers."""
        errors = np.zeros(normals.shape)
        errors[:, 0] = np.sqrt(self.variances[0]) * normals[:, 0]
        self._pass_down(errors, np.zeros_like(self.below), normals)
        return errors

    def _pass_down(self, counts: Floats, below: Floats, normals: Floats | None) -> None:
        for group in reversed(self.measured.heights):
            inner = group[self.measured.left[group] != NONE]
            left, right, is_halved = _halves(self.measured, inner)
            counts[:, left[~is_halved]] = counts[:, inner[~is_halved]]
            inner, left, right = inner[is_halved], left[is_halved], right[is_halved]
            of_halves = self.variances[left] + self.variances[right]
            share, surplus = self.variances[left] / of_halves, counts[:, inner] - below[left] - below[right]
            of_left = below[left] + share * surplus
            if normals is not None:
                of_left += np.sqrt(share * self.variances[right]) * normals[:, left]
            counts[:, left] = of_left
            counts[:, right] = counts[:, inner] - of_left


def _own(measured: MeasuredTree) -> tuple[Floats, Floats]:
    """Return the precision of what was measured of each node itself, and its values weighted by precision."""
    nodes = measured.left.size
    owner = np.repeat(np.arange(nodes), np.diff(measured.first))
    precision: Floats = np.bincount(owner, 1.0 / measured.variances, nodes).astype(np.float64)
    weighted: Floats = np.bincount(owner, measured.values / measured.variances, nodes).astype(np.float64)
    return precision, weighted


def _halves(measured: MeasuredTree, inner: Integers) -> tuple[Integers, Integers, NDArray[np.bool_]]:
    """Return the children of inner nodes, the left one twice where there is no right one, and where there is one."""
    left, right = measured.left[inner], measured.right[inner]
    is_halved = right != NONE
    return left, np.where(is_halved, right, left), is_halved
