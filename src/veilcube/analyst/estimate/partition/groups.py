"""Groups of cells on an adaptive release: their counts, and the noise of weighted sums of them.

Every group is a question like any other, so it has the answer that ``count`` gives. Sums, means, quantiles and
distribution functions weigh groups against each other and need unbiased counts: those are of least squares, whoever
estimates.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from veilcube.analyst.estimate.base import (
    BlockQueries,
    CountQueries,
    Estimates,
    group_lists,
    queries_about_groups,
    queries_about_region,
)
from veilcube.laws import NoiseCumulants
from veilcube.operators import CellsAndRegions, PairedMoments, step_moments
from veilcube.schema import Region
from veilcube.system import Floats, Integers


@dataclass(frozen=True, eq=False)
class AdaptiveGroups:
    """Least-squares counts of groups; ``ask`` answers each of them, ``cumulants`` tell the noise of weighted sums."""

    counts: Floats
    sizes: Integers
    region: Region
    axes: tuple[int, ...]
    answers: CellsAndRegions
    cumulants: Callable[[PairedMoments, Integers, Floats], NoiseCumulants]
    ask: Callable[[CountQueries, float], Estimates]
    _kept: int | None = field(default=None)

    def first(self, size: int) -> "AdaptiveGroups":
        """Return the first groups of a single axis only; those behind must lie outside the region."""
        return replace(self, counts=self.counts[:size], sizes=self.sizes[:size], _kept=size)

    def estimates(self, confidence: float) -> Estimates:
        """Return every group's count with its interval."""
        asked, places = queries_about_groups(self.region, self.axes)
        found = self.ask(asked, confidence)
        shape = tuple(self.region.shape[axis] for axis in self.axes)

        def placed(part: Floats) -> Floats:
            every = np.zeros(shape)
            every.reshape(-1)[places] = part
            return every[: self._kept]

        return Estimates(placed(found.value), placed(found.low), placed(found.high), placed(found.stddev))

    def variance_of(self, weights: Floats) -> float:
        """Return the noise variance of a weighted sum of the groups."""
        return float(self._weighted(weights).second)

    def half_width_of(self, weights: Floats, confidence: float) -> float:
        """Return w such that the noise of a weighted sum of the groups stays within ±w with ``confidence``."""
        return float(self._weighted(weights).half_widths(confidence))

    def prefix_variances(self, inside: float, outside: float) -> Floats:
        """Return the variance for each k of the sum that weighs groups 0..k ``inside`` and the rest ``outside``."""
        return self._stepped(inside, outside).second

    def prefix_half_widths(self, inside: float, outside: float, confidence: float) -> Floats:
        """Return the half-width for each k of the sum that weighs groups 0..k ``inside`` and the rest ``outside``."""
        return self._stepped(inside, outside).half_widths(confidence)

    def _weighted(self, weights: Floats) -> NoiseCumulants:
        full = np.zeros(tuple(self.region.shape[axis] for axis in self.axes))
        full[: self._kept] = np.broadcast_to(weights, self.sizes.shape)
        others = [axis for axis in range(len(self.region.shape)) if axis not in self.axes]
        spread = np.expand_dims(np.transpose(full, np.argsort(self.axes)), others)
        query = self.region.mask() * spread
        sizes, share = np.asarray(np.count_nonzero(query)), np.asarray(query.mean())
        return self.cumulants(self.answers.paired_of_query(query), sizes, share)

    def _stepped(self, inside: float, outside: float) -> NoiseCumulants:
        first, rest = self._prefixes
        upto = np.cumsum(self.sizes)
        cells = upto * (inside != 0) + (upto[-1] - upto) * (outside != 0)
        share = (inside * upto + outside * (upto[-1] - upto)) / np.prod(self.region.shape)
        return self.cumulants(step_moments(self._everything, (first, rest), inside, outside), cells, share)

    @cached_property
    def _everything(self) -> PairedMoments:
        return queries_about_region(self.region).moments(self.answers)

    @cached_property
    def _prefixes(self) -> tuple[PairedMoments, PairedMoments]:
        """The moments of groups 0..k and of those behind, for each k: on a grid both are blocks."""
        (axis,) = self.axes
        block, kept = self.region.rectangle(), slice(0, self.sizes.size)
        if block is None or self.answers.blocks is None:
            first, rest = self.answers.paired_of_prefixes(group_lists(self.region, self.axes))
            return first.at(kept), rest.at(kept)
        low, high = (np.tile(end, (self.sizes.size, 1)) for end in block)
        until, after = high.copy(), low.copy()
        until[:, axis] = np.minimum(np.arange(self.sizes.size), high[:, axis])
        after[:, axis] = np.maximum(np.arange(self.sizes.size) + 1, low[:, axis])
        parts = (BlockQueries(self.region.shape, low, until), BlockQueries(self.region.shape, after, high))
        first, rest = (part.moments(self.answers) for part in parts)
        return first, rest
