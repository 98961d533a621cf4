"""Structural zeros in a model: what the schema says is impossible holds no rows, and its share goes to all others."""

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from veilcube.analyst.estimate.base import PlainData, Runs
from veilcube.analyst.estimate.mixture.model import Mixture
from veilcube.schema import Region
from veilcube.system import Floats, Integers

LEAST_SHARE = 1e-6


class PossibleMixture:
    """A mixture without the rows that it has where none can be."""

    def __init__(self, model: Mixture, impossible: Region) -> None:
        self.model, self._impossible = model, impossible

    @cached_property
    def _scale(self) -> float:
        inside = float(self.model.groups(self._impossible, ())) / self.model.rows
        return 1.0 / max(1.0 - inside, LEAST_SHARE)

    def blocks(self, low: Integers, high: Integers) -> Floats:
        """Return the expected count of each block, inclusive indices (questions, attributes)."""
        found = self.model.blocks(low, high)
        for box in self._impossible.boxes:
            found -= self.model.within(box.axes).blocks(low, high)
        return self._scale * found

    def groups(self, region: Region, axes: Sequence[int]) -> Floats:
        """Return the expected counts inside a region for every combination of values of some attributes."""
        both = region.intersect(self._impossible)
        return self._scale * (self.model.groups(region, axes) - self.model.groups(both, axes))

    def portable(self, cuts: Sequence[Runs]) -> PlainData:
        """Return how to compute its expected counts elsewhere."""
        taken = [self.model.within(box.axes).part(cuts, -self._scale) for box in self._impossible.boxes]
        return {"kind": "classes", "parts": [self.model.part(cuts, self._scale), *taken]}


def without_impossible(cells: Floats, impossible: Region | None) -> Floats:
    """Return cells with none where none can be, the others scaled so that they add up as before."""
    if impossible is None:
        return cells
    kept = np.where(impossible.mask(), 0.0, cells)
    return np.asarray(kept * (cells.sum() / kept.sum() if kept.sum() > 0 else 1.0))


def are_possible(columns: Sequence[Integers], impossible: Region | None) -> NDArray[np.bool_]:
    """Return which rows, given as one array of values an attribute, can be."""
    found = np.ones(len(columns[0]), dtype=np.bool_)
    for box in impossible.boxes if impossible is not None else ():
        inside = np.ones(found.size, dtype=np.bool_)
        for column, mask in zip(columns, box.axes, strict=True):
            if mask is not None:
                inside &= mask[column]
        found &= ~inside
    return found
