"""The exact posterior of each question about an adaptive release, from the two observations that it has (ISPE, step E).

The part of a query that lies in one region is seen twice, by independent noise: once as the sum of its own m noisy
cells, and once as the noisy total of the region less the noisy cells that do not belong to the query. The second has
one noise of a total's scale and one of a cell's for each cell taken off. With a flat prior the posterior of the part is
the normalised product of the two laws (Theorems 4.1 and 4.2 there), exactly. Different regions share no noise, so a
query that meets several is the sum of independent parts, whose law is the convolution of theirs: mean, standard
deviation and equal-tailed interval are of that. Within a region the mean is near least squares', which answers many
thousand times faster. Under Gaussian noise both laws of a part are normal, and so are their product and the sum of
parts: the mean is that of least squares, and the interval holds the whole numbers that the normal law rounds to.

Regions that were chosen from the noisy cells follow their noise, so the product is exact for blocks and a little too
narrow for others, whose intervals are widened as least squares' are.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import sqrt
from typing import TypeAlias

import numpy as np

from veilcube.analyst.estimate.base import BlockQueries, CountQueries, Estimates, queries_about_region
from veilcube.analyst.estimate.partition.cells_and_regions import AdaptiveEstimate, is_adaptive, single, widening_of
from veilcube.analyst.estimate.partition.groups import AdaptiveGroups
from veilcube.analyst.study import Posterior, SummedPosterior, posterior
from veilcube.errors import QueryError
from veilcube.laws import normal_quantile
from veilcube.record import ReleaseRecord
from veilcube.schema import Region
from veilcube.system import Floats, Integers

# What was seen of a question in one region: the sum of its cells, what the total says, its cells and those left over.
Part: TypeAlias = tuple[int, int, int, int]

# Some fifty in a second.
MOST_QUERIES = 2_000
# Of regions that questions meet, some hundreds in a second.
MOST_PARTS = 10_000
MOST_KEPT = 2_000
# Below this scale whole noises differ from continuous ones by more than rounding.
LARGEST_DISCRETE_SCALE = 20
# Beyond this standard deviation they are not summed one by one.
WIDEST_DISCRETE = 2.0**13
# Below this scale, the probability of any noise at all is less than 1e-27.
LEAST_SCALE = 1 / 64


@dataclass(frozen=True)
class Observed:
    """The exact posterior of each question; it has no settings."""

    @property
    def name(self) -> str:
        """The word that users call it by."""
        return "observed"

    def can_read(self, record: ReleaseRecord) -> bool:
        """Whether the release is of cells and regions."""
        return is_adaptive(record)

    def fit(self, record: ReleaseRecord) -> "ObservedEstimate":
        """Return its answers about this release."""
        return ObservedEstimate(record)


@dataclass(frozen=True)
class NormalPosterior:
    """What is known about a count, less the sum of its noisy cells, where all noise is Gaussian."""

    mean: float
    stddev: float

    @classmethod
    def of(cls, seen: Sequence[Part], of_cells: float, of_totals: float) -> "NormalPosterior":
        """Join the two observations of each part by their precisions and add the parts up."""
        own, others, held, left_over = np.array(seen, dtype=np.float64).T
        first, second = held * of_cells, left_over * of_cells + of_totals
        mean = float(np.sum(first / (first + second) * (others - own)))
        return cls(mean, sqrt(float(np.sum(first * second / (first + second)))))

    def interval(self, confidence: float) -> tuple[float, float]:
        """Return the whole numbers beyond which at most half of the rest lies on either side.

        The law on the whole numbers is taken as that of the normal variable, rounded. Where its standard deviation is
        below one half, that is wider than need be.
        """
        reach = normal_quantile(confidence) * self.stddev
        return float(np.floor(self.mean - reach + 0.5)), float(np.ceil(self.mean + reach - 0.5))


class ObservedEstimate:
    """Posteriors from what was published of the cells and of the regions of a query."""

    def __init__(self, record: ReleaseRecord) -> None:
        cells, regions = record.measurements
        self._unbiased = AdaptiveEstimate(record)
        self._cells, self._totals, self._regions = cells.values, regions.values, self._unbiased.answers.regions
        self._noises = cells.noise, regions.noise
        self._is_normal = cells.noise.family == "gaussian"
        self._scales = [noise.laplace_scale for noise in self._noises]
        self._summed = self._regions.apply(self._cells)
        self._beliefs: dict[tuple[int, int, int], Posterior] = {}

    def cells(self) -> Floats:
        """Return the posterior mean of every cell."""
        shape = self._cells.shape
        index = np.indices(shape).reshape(len(shape), -1).T
        return self.rectangles(index, index, 0.5).value.reshape(shape)

    def rectangles(self, low: Integers, high: Integers, confidence: float) -> Estimates:
        """Estimate the count of each block."""
        return self.ask(BlockQueries(self._cells.shape, low, high), confidence)

    def region(self, region: Region, confidence: float) -> Estimates:
        """Estimate the count of a region."""
        return single(self.ask(queries_about_region(region), confidence))

    def grouped(self, region: Region, axes: Sequence[int]) -> AdaptiveGroups:
        """Estimate the counts inside a region for every combination of cells of the given axes."""
        return replace(self._unbiased.grouped(region, axes), ask=self.ask)

    def ask(self, asked: CountQueries, confidence: float) -> Estimates:
        """Estimate the count of each question."""
        if len(asked.sizes) > MOST_QUERIES:
            raise QueryError(
                f"'observed' computes one posterior after another, for at most {MOST_QUERIES:,} questions at once; "
                "use estimator='least_squares' for more"
            )
        seen = list(self._seen_of(asked))
        each = [self._posterior(*one, confidence) for one in seen]
        moments = asked.moments(self._unbiased.answers)
        found = Estimates(*np.array(each, dtype=np.float64).reshape(-1, 4).T)
        return self._unbiased.holding_whole_regions(found, moments, asked, confidence)

    def _seen_of(self, asked: CountQueries) -> Iterator[tuple[list[Part], int]]:
        """Return what was seen of each question, and how many cells it has."""
        met = 0
        for chosen in asked.each():
            parts = self._parts(chosen)
            met += len(parts)
            if met > MOST_PARTS:
                raise QueryError(
                    f"'observed' takes every region that a question meets on its own, at most {MOST_PARTS:,} in all; "
                    "use estimator='least_squares' for more"
                )
            yield parts, chosen.size

    def _parts(self, chosen: Integers) -> list[Part]:
        """Return what was seen of a question in each region that it meets."""
        met, place = np.unique(self._regions.chosen.ravel()[chosen], return_inverse=True)
        held = np.bincount(place, minlength=met.size)
        own = np.zeros(met.size, dtype=np.int64)
        np.add.at(own, place, self._cells.ravel()[chosen])
        others = self._totals[met] - (self._summed[met] - own)
        rows = np.stack([own, others, held, self._regions.sizes[met] - held], axis=1)
        return [(row[0], row[1], row[2], row[3]) for row in rows.tolist()]

    def _posterior(self, seen: list[Part], cells: int, confidence: float) -> tuple[float, float, float, float]:
        """Return value, low, high and standard deviation of the count of so many cells, from the parts of it seen."""
        base = float(sum(own for own, *_ in seen))
        if not seen or max(self._scales) < LEAST_SCALE:
            return base, base, base, 0.0
        # A part's posterior moves with its cells, so only how far the two observations lie apart shapes it.
        belief: SummedPosterior | NormalPosterior
        if self._is_normal:
            belief = NormalPosterior.of(seen, *(noise.variance for noise in self._noises))
        else:
            belief = SummedPosterior([self._belief(others - own, held, left) for own, others, held, left in seen])
        low, high = belief.interval(confidence)
        middle, widening = belief.mean, float(widening_of(np.asarray(cells))) if self._unbiased.is_chosen else 1.0
        low, high = middle + widening * (low - middle), middle + widening * (high - middle)
        return base + middle, base + low, base + high, widening * belief.stddev

    def _belief(self, apart: int, held: int, left_over: int) -> Posterior:
        """Return the posterior of one part, less the sum of its own noisy cells."""
        key = apart, held, left_over
        if key not in self._beliefs:
            if len(self._beliefs) >= MOST_KEPT:
                self._beliefs.clear()
            self._beliefs[key] = self._belief_of((0, held, 0), (apart, left_over, 1))
        return self._beliefs[key]

    def _belief_of(self, *seen: tuple[int, int, int]) -> Posterior:
        """Return the posterior from observed values, each with how many noises of cells and of totals are in it."""
        variances = [noise.variance for noise in self._noises]
        spread = sqrt(min(cells * variances[0] + totals * variances[1] for _, cells, totals in seen))
        is_small = min(self._scales) <= LARGEST_DISCRETE_SCALE
        is_discrete = is_small and spread <= WIDEST_DISCRETE
        # So many whole noises are as good as continuous ones, if those have their variance.
        scales = [sqrt(variance / 2) for variance in variances] if is_small and not is_discrete else self._scales
        observations = []
        for value, *many in seen:
            noises: dict[float, int] = {}
            for scale, count in zip(scales, many, strict=True):
                if count:
                    used = max(scale, LEAST_SCALE)
                    noises[used] = noises.get(used, 0) + count
            observations.append((value, noises))
        return posterior(observations, discrete=is_discrete)
