"""Latent classes: one model of all tables of a release, which answers any question, with an interval."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import sqrt
from typing import TypeAlias

import numpy as np
import scipy
from numpy.typing import NDArray

from veilcube.analyst.estimate.base import Estimates, Finding, Portable, Runs
from veilcube.analyst.estimate.mixture.cells import CellSums, correct_cells
from veilcube.analyst.estimate.mixture.errors import ErrorModel, learn_errors
from veilcube.analyst.estimate.mixture.model import Mixture
from veilcube.analyst.estimate.mixture.observed import Observations, read_observations
from veilcube.analyst.estimate.mixture.possible import PossibleMixture, are_possible, without_impossible
from veilcube.analyst.estimate.mixture.remembered import fit_once
from veilcube.analyst.estimate.mixture.replicates import Replicate, replay
from veilcube.errors import QueryError
from veilcube.laws import normal_quantile
from veilcube.record import ReleaseRecord
from veilcube.schema import Ordinal, Region, Schema
from veilcube.system import Floats, Integers, require_cells

Fitted: TypeAlias = Mixture | PossibleMixture | CellSums

FITS, REPLAYS = 3, 6
LARGEST_SIZE = 2**62
ROWS_AT_ONCE = 2**18


@dataclass(frozen=True)
class LatentClasses:
    """A mixture of independent attributes, fitted to everything that was measured."""

    fits: int = FITS
    replays: int = REPLAYS

    @property
    def name(self) -> str:
        """The word that users call it by."""
        return "latent_classes"

    def can_read(self, record: ReleaseRecord) -> bool:
        """Whether the release is of grouped tables."""
        return all(part.grouped is not None for part in record.measurements)

    def fit(self, record: ReleaseRecord) -> "MixtureEstimate":
        """Return its answers about this release; how wrong they are is found out with the first of them."""
        return MixtureEstimate(record.schema, read_observations(record), self.fits, self.replays)


class MixtureEstimate:
    """Answers of the mean of several fitted models, corrected by the cells if they were measured."""

    def __init__(self, schema: Schema, observed: Observations, fits: int, replays: int) -> None:
        self._schema, self._observed, self._replays = schema, observed, replays
        self._fits = [self._refit(observed, seed) for seed in range(fits)]
        self.model = Mixture.mean_of([model for model, _ in self._fits])
        self._cells = self._corrected(observed, self.model)
        self.answering: Fitted = self._cells if self._cells is not None else self._answering(observed, self.model)

    def _refit(self, observed: Observations, seed: int) -> tuple[Mixture, Fitted]:
        model = fit_once(observed, seed)
        return model, self._answering(observed, model)

    def _answering(self, observed: Observations, model: Mixture) -> Fitted:
        cells = self._corrected(observed, model)
        if cells is not None:
            return cells
        return model if observed.impossible is None else PossibleMixture(model, observed.impossible)

    def _corrected(self, observed: Observations, model: Mixture) -> CellSums | None:
        if observed.cells is None:
            return None
        is_ordinal = [isinstance(attribute, Ordinal) for attribute in self._schema]
        corrected = correct_cells(model.cells(), observed.of_values, is_ordinal)
        return CellSums(without_impossible(corrected, observed.impossible))

    @cached_property
    def replicates(self) -> list[Replicate]:
        """The release played again on tables whose truth is known."""
        generator = np.random.default_rng(0)
        return [replay(self._observed, self.model, self._cells, self._refit, generator) for _ in range(self._replays)]

    @cached_property
    def error_model(self) -> ErrorModel:
        """How wrong answers are, as replays of the release tell."""
        return learn_errors(self._observed, self._fits, self.replicates)

    def findings(self, names: Sequence[str]) -> tuple[Finding, ...]:
        """Return how well the model explains what was measured."""
        return self.error_model.findings

    def cells(self) -> Floats:
        """Return the estimated count of every cell."""
        if self._cells is not None:
            return self._cells.values.copy()
        require_cells(self._schema.cells, 16, "every cell of the cube", "ask for the marginals of fewer attributes")
        return without_impossible(self.model.cells(), self._observed.impossible)

    def rectangles(self, low: Integers, high: Integers, confidence: float) -> Estimates:
        """Estimate the count of each block."""
        lengths = np.maximum(high - low + 1, 0)
        is_narrowed = (lengths < np.array(self._schema.shape)).astype(np.float64)
        found = self.estimates(self.answering.blocks(low, high), is_narrowed, confidence)
        return _emptied(found, (lengths == 0).any(axis=1))

    def region(self, region: Region, confidence: float) -> Estimates:
        """Estimate the count of a region."""
        value = self.answering.groups(region, ())
        found = self.estimates(value.reshape(1), _narrowed_by(region)[np.newaxis], confidence)
        return _shaped(_emptied(found, np.array([not region.boxes])), ())

    def grouped(self, region: Region, axes: Sequence[int]) -> "MixtureGroups":
        """Estimate the counts inside a region for every combination of cells of the given axes."""
        return MixtureGroups(self, region, tuple(axes))

    def portable(self, cuts: Sequence[Runs], confidence: float) -> Portable:
        """Return how to compute its answers elsewhere."""
        errors = self.error_model.portable()
        return Portable(self.answering.portable(cuts), {**errors, "deviations": normal_quantile(confidence)})

    def estimates(self, value: Floats, is_narrowed: Floats, confidence: float) -> Estimates:
        """Return expected counts of questions with their intervals, by which attributes each narrows, 1 or 0."""
        value = np.maximum(value, 0.0)
        stddev = self.error_model.stddevs(is_narrowed, value)
        width = normal_quantile(confidence) * stddev
        return Estimates(value, np.maximum(value - width, 0.0), value + width, stddev)

    def draw_rows(self, number: int) -> Iterator[NDArray[np.int32]]:
        """Yield rows drawn from the model as cell numbers, (rows, attributes), a part at a time."""
        generator, left, missed = np.random.default_rng(), number, 0
        while left:
            # Of few rows none may be possible by luck: ever more are tried.
            columns = self.model.draw_values(min(max(left, missed), ROWS_AT_ONCE), generator)
            kept = np.flatnonzero(are_possible(columns, self._observed.impossible))[:left]
            if kept.size:
                left, missed = left - kept.size, 0
                yield np.stack([column[kept] for column in columns], axis=1).astype(np.int32)
                continue
            missed += len(columns[0])
            if missed > ROWS_AT_ONCE:
                raise QueryError(
                    "the release has no rows where the schema says that rows can be; check what it forbids"
                )


def _narrowed_by(region: Region) -> Floats:
    """Return 1 for the attributes that a region narrows in any of its boxes."""
    found = np.zeros(len(region.shape))
    for box in region.boxes:
        found = np.maximum(found, [size < whole for size, whole in zip(box.sizes, region.shape, strict=True)])
    return found


def _emptied(found: Estimates, is_empty: NDArray[np.bool_]) -> Estimates:
    """Return estimates in which questions about no cell have the answer 0 for sure."""
    parts = [np.where(is_empty, 0.0, part) for part in (found.value, found.low, found.high, found.stddev)]
    return Estimates(parts[0], parts[1], parts[2], parts[3])


def _shaped(found: Estimates, shape: tuple[int, ...]) -> Estimates:
    parts = [part.reshape(shape) for part in (found.value, found.low, found.high, found.stddev)]
    return Estimates(parts[0], parts[1], parts[2], parts[3])


class MixtureGroups:
    """Counts of groups; errors of their sums are those of the replays, whose number decides how far they reach."""

    def __init__(
        self, estimate: MixtureEstimate, region: Region, axes: tuple[int, ...], size: int | None = None
    ) -> None:
        self._estimate, self._region, self._axes = estimate, region, axes
        self._kept = ... if size is None else slice(size)

    @cached_property
    def _values(self) -> Floats:
        return self._estimate.answering.groups(self._region, self._axes)[self._kept]

    @property
    def counts(self) -> Floats:
        """The estimated count of each group."""
        return self._values

    @cached_property
    def sizes(self) -> Integers:
        """How many cells of the cube each group holds."""
        shape = tuple(self._region.shape[axis] for axis in self._axes)
        found = np.zeros(shape)
        for box in self._region.boxes:
            part = np.ones(())
            for axis, size in enumerate(box.sizes):
                if axis in self._axes:
                    part = np.multiply.outer(part, box.mask(axis).astype(np.float64))
                else:
                    part = part * float(size)
            # Outer products come in the order of the cube's axes.
            order = sorted(self._axes)
            found += np.moveaxis(part, range(len(order)), [self._axes.index(axis) for axis in order])
        return np.minimum(found, float(LARGEST_SIZE)).astype(np.int64)[self._kept]

    def first(self, size: int) -> "MixtureGroups":
        """Return the first groups of a single axis only."""
        return MixtureGroups(self._estimate, self._region, self._axes, size)

    def estimates(self, confidence: float) -> Estimates:
        """Return every group's count with its interval."""
        is_narrowed = _narrowed_by(self._region)
        is_narrowed[[axis for axis in self._axes if self._region.shape[axis] > 1]] = 1.0
        value = self._values.ravel()
        each = np.broadcast_to(is_narrowed, (value.size, is_narrowed.size))
        found = _emptied(self._estimate.estimates(value, each, confidence), self.sizes.ravel() == 0)
        return _shaped(found, self._values.shape)

    @cached_property
    def _errors(self) -> Floats:
        """The errors of the groups in each replay, widened as intervals are."""
        narrowed = _narrowed_by(self._region)
        narrowed[list(self._axes)] = 1.0
        widened = self._estimate.error_model.widening(int(narrowed.sum()))
        return widened * np.stack(
            [
                (one.fitted.groups(self._region, self._axes) - one.truth.groups(self._region, self._axes))[self._kept]
                for one in self._estimate.replicates
            ]
        )

    def variance_of(self, weights: Floats) -> float:
        """Return the mean squared error of a weighted sum of the groups."""
        sums = (self._errors * weights).reshape(len(self._errors), -1).sum(axis=1)
        return float(np.square(sums).mean())

    def half_width_of(self, weights: Floats, confidence: float) -> float:
        """Return w such that the error of a weighted sum of the groups stays within ±w with ``confidence``."""
        return self._deviations(confidence) * sqrt(self.variance_of(weights))

    def prefix_variances(self, inside: float, outside: float) -> Floats:
        """Return the variance for each k of the sum that weighs groups 0..k ``inside`` and the rest ``outside``."""
        upto = np.cumsum(self._errors, axis=1)
        sums = inside * upto + outside * (upto[:, -1:] - upto)
        return np.asarray(np.square(sums).mean(axis=0))

    def prefix_half_widths(self, inside: float, outside: float, confidence: float) -> Floats:
        """Return the half-width for each k of the sum that weighs groups 0..k ``inside`` and the rest ``outside``."""
        return self._deviations(confidence) * np.sqrt(self.prefix_variances(inside, outside))

    def _deviations(self, confidence: float) -> float:
        """Return Student's quantile: a mean square of few errors is itself uncertain."""
        return float(scipy.special.stdtrit(len(self._errors), (1 + confidence) / 2))
