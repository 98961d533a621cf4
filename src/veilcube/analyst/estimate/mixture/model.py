"""A mixture of independent attributes (latent classes): a model of many attributes whose every table is known.

    p(x) = Σ_z w_z Π_i P_i[z, x_i]

Within a class z the attributes are independent, so a conjunction of conditions has the probability Σ_z w_z Π_i P_i[z](
condition i): whatever the number of attributes, an answer costs the number of classes times that of conditions, a table
is a product of matrices, and a row is drawn by drawing its class first.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np
from numpy.typing import NDArray

from veilcube.analyst.estimate.base import PlainData, Runs
from veilcube.analyst.estimate.mixture.observed import ModelAxis
from veilcube.operators import Axes
from veilcube.schema import Region
from veilcube.system import Floats, Integers

QUESTIONS_AT_ONCE = 2_048
# Numbers of a table's cells for each class that are held at once.
NUMBERS_AT_ONCE = 2**22


@dataclass(frozen=True, eq=False)
class Mixture:
    """Classes with their weights, which add up to 1, and for each axis the law of its places in each class."""

    axes: tuple[ModelAxis, ...]
    weights: Floats
    laws: tuple[Floats, ...]
    rows: float

    @classmethod
    def mean_of(cls, models: Sequence["Mixture"]) -> "Mixture":
        """Return the mean of several models: the classes of all of them."""
        weights = np.concatenate([model.weights * model.rows for model in models])
        laws = tuple(np.concatenate(of_axis) for of_axis in zip(*(model.laws for model in models), strict=True))
        rows = float(weights.sum()) / len(models)
        return cls(models[0].axes, weights / weights.sum(), laws, rows)

    @cached_property
    def _cumulated(self) -> list[Floats]:
        """The probability of the first k values of each attribute: (values + 1, classes)."""
        found = []
        for axis, laws in zip(self.axes, self.laws, strict=True):
            of_values = laws[:, axis.places] * axis.within
            ends = np.zeros((of_values.shape[1] + 1, len(of_values)))
            np.cumsum(of_values.T, axis=0, out=ends[1:])
            found.append(ends)
        return found

    @cached_property
    def _is_part(self) -> list[bool]:
        """Whether an axis has lost some of its values, so that all that are left are not everything."""
        return [not np.allclose(ends[-1], 1.0) for ends in self._cumulated]

    def blocks(self, low: Integers, high: Integers) -> Floats:
        """Return the expected count of each block, inclusive indices (questions, attributes)."""
        found = np.empty(len(low))
        for start in range(0, len(low), QUESTIONS_AT_ONCE):
            chosen = slice(start, start + QUESTIONS_AT_ONCE)
            found[chosen] = self._blocks(low[chosen], high[chosen])
        return found

    def _blocks(self, low: Integers, high: Integers) -> Floats:
        inside = np.tile(self.weights, (len(low), 1))
        for axis, ends in enumerate(self._cumulated):
            narrowed = np.flatnonzero((low[:, axis] > 0) | (high[:, axis] < len(ends) - 2) | self._is_part[axis])
            first, last = low[narrowed, axis], np.maximum(high[narrowed, axis] + 1, low[narrowed, axis])
            inside[narrowed] *= ends[last] - ends[first]
        return np.asarray(self.rows * inside.sum(axis=1))

    def within(self, masks: Sequence[NDArray[np.bool_] | None]) -> "Mixture":
        """Return the part of the model within masks of values: its laws no longer add up to 1."""
        axes, laws = list(self.axes), list(self.laws)
        for axis, mask in enumerate(masks):
            if mask is not None:
                axes[axis], laws[axis] = ModelAxis.plain(mask.size), self._of_values(axis) * mask
        return Mixture(tuple(axes), self.weights, tuple(laws), self.rows)

    def of_masks(self, masks: Sequence[NDArray[np.bool_] | None], axes: Sequence[int]) -> Floats:
        """Return the expected counts of all values of some attributes, the others within masks."""
        weights = self.weights.copy()
        for axis, mask in enumerate(masks):
            if axis not in axes and mask is not None:
                weights *= self._of_values(axis)[:, mask].sum(axis=1)
        laws = []
        for axis in axes:
            mask = masks[axis]
            laws.append(self._of_values(axis) if mask is None else self._of_values(axis) * mask)
        return self.rows * _table(weights, laws)

    def part(self, cuts: Sequence[Runs], factor: float) -> PlainData:
        """Return ``factor`` times its expected counts of runs: a weight for each class, a law for each attribute."""
        laws = [np.add.reduceat(self._of_values(axis), runs.first, axis=1) for axis, runs in enumerate(cuts)]
        return {"weights": factor * self.rows * self.weights, "laws": [np.ascontiguousarray(law) for law in laws]}

    def portable(self, cuts: Sequence[Runs]) -> PlainData:
        """Return how to compute its expected counts elsewhere."""
        return {"kind": "classes", "parts": [self.part(cuts, 1.0)]}

    def _of_values(self, axis: int) -> Floats:
        return self.laws[axis][:, self.axes[axis].places] * self.axes[axis].within

    def groups(self, region: Region, axes: Sequence[int]) -> Floats:
        """Return the expected counts inside a region for every combination of values of some attributes."""
        found = np.zeros(tuple(region.shape[axis] for axis in axes))
        for box in region.boxes:
            found += self.of_masks(box.axes, axes)
        return found

    def table(self, axes: Axes, groups: Sequence[Integers]) -> Floats:
        """Return the expected counts of a table over grouped places."""
        laws = [grouped(self.laws[axis], labels) for axis, labels in zip(axes, groups, strict=True)]
        return self.rows * _table(self.weights, laws)

    def cells(self) -> Floats:
        """Return the expected count of every cell."""
        return self.rows * _table(self.weights, [self._of_values(axis) for axis in range(len(self.axes))])

    def draw(self, rows: int, generator: np.random.Generator, *, is_even: bool = False) -> list[Integers]:
        """Return the places of rows drawn from the model, one array for each axis: a sample, or evenly."""
        sizes = generator.multinomial(rows, self.weights / self.weights.sum())
        if is_even:
            ends = np.floor(np.cumsum(self.weights) / self.weights.sum() * rows + generator.random()).astype(np.int64)
            ends[-1] = rows
            sizes = np.diff(np.minimum(ends, rows), prepend=0)
        columns = [np.empty(rows, dtype=np.int64) for _ in self.axes]
        owners = np.repeat(np.arange(sizes.size), sizes)
        for column, laws in zip(columns, self.laws, strict=True):
            ends = np.cumsum(laws, axis=1)
            offsets = 2.0 * np.arange(len(laws))  # one sorted list for all classes, each in a stretch of its own
            ladder = (ends / ends[:, -1:] + offsets[:, np.newaxis]).ravel()
            drawn = _strata(sizes, owners, generator) if is_even else generator.random(rows)
            chosen = np.searchsorted(ladder, drawn + offsets[owners], side="right")
            column[:] = np.minimum(chosen - owners * laws.shape[1], laws.shape[1] - 1)
        return columns

    def draw_values(self, rows: int, generator: np.random.Generator) -> list[Integers]:
        """Return the values of rows drawn evenly from the model, in a random order.

        Classes have as many rows as they should, up to one, and so has every stretch of their laws: such rows are
        nearer to the model than a sample is.
        """
        order, places = generator.permutation(rows), self.draw(rows, generator, is_even=True)
        return [axis.values_of(one, generator)[order] for axis, one in zip(self.axes, places, strict=True)]


def _strata(sizes: Integers, owners: Integers, generator: np.random.Generator) -> Floats:
    """Return numbers between 0 and 1, in random order within each class: one in each of its size's equal stretches."""
    order = np.argsort(owners + generator.random(owners.size), kind="stable")
    starts = np.cumsum(sizes) - sizes
    ranks = np.empty(owners.size)
    ranks[order] = np.arange(owners.size) - np.repeat(starts, sizes)
    return np.asarray((ranks + generator.random(owners.size)) / sizes[owners])


def grouped(laws: Floats, labels: Integers) -> Floats:
    """Return the laws of places, (classes, places), as laws of their groups."""
    groups = int(labels.max()) + 1
    if groups == labels.size:
        return laws
    found = np.zeros((len(laws), groups), dtype=laws.dtype)
    np.add.at(found.T, labels, laws.T)
    return found


def _table(weights: Floats, laws: Sequence[Floats]) -> Floats:
    """Return Σ_z w_z ⊗_i P_i[z], some classes at a time."""
    shape = tuple(law.shape[1] for law in laws)
    if not laws:
        return np.asarray(weights.sum())
    *others, last = laws
    found = np.zeros((prod(shape[:-1]), shape[-1]))
    at_once = max(1, NUMBERS_AT_ONCE // max(prod(shape[:-1]), 1))
    for start in range(0, len(weights), at_once):
        chosen = slice(start, start + at_once)
        products = weights[chosen, np.newaxis]
        for law in others:
            products = (products[:, :, np.newaxis] * law[chosen, np.newaxis, :]).reshape(len(products), -1)
        found += products.T @ last[chosen]
    return found.reshape(shape)
