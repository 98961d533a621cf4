"""Means, distribution functions and quantiles: questions about ratios of noisy counts, answered by inverting tests.

For a ratio r = a(x) / n(x) of two linear statistics, a value r is kept if the noise could explain why
a(y) - r n(y) is not zero (Fieller 1954). The noise of that difference is a weighted sum of independent noises with
known law, so the kept values cover the true ratio with the wanted probability, also where n is small against the noise:
there the interval is the whole domain, which is the honest answer.
"""

from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

from veilcube.analyst.estimate.base.protocol import Estimates, GroupedCounts


@dataclass(frozen=True)
class RatioEstimate:
    """A ratio with its interval and the standard deviation of its linear approximation."""

    value: float
    low: float
    high: float
    stddev: float


def mean_of_groups(groups: GroupedCounts, centres: NDArray[np.float64], confidence: float) -> RatioEstimate:
    """Estimate the mean of ``centres`` weighted by the groups' counts, between the least and the largest centre."""
    held = groups.sizes > 0
    floor, ceiling = float(centres[held].min()), float(centres[held].max())
    total = float(groups.counts.sum())
    middle = (floor + ceiling) / 2
    value = float(np.clip((centres * groups.counts).sum() / total, floor, ceiling)) if total > 0 else middle

    def standard_width(mean: float) -> float:
        weights = np.where(held, centres - mean, 0.0)
        spread = np.sqrt(groups.variance_of(weights))
        return groups.half_width_of(weights, confidence) / spread if spread > 0 else 0.0

    low, high = _fieller(groups, centres - middle, standard_width(value), (floor - middle, ceiling - middle))
    # The standardised width varies a little with the mean that is tested: take the widest of the ends as well.
    widest = max(standard_width(middle + end) for end in (low, high, value - middle))
    low, high = _fieller(groups, centres - middle, widest, (floor - middle, ceiling - middle))
    stddev = np.sqrt(groups.variance_of(np.where(held, centres - value, 0.0))) / total if total > 0 else np.inf
    return RatioEstimate(value, min(middle + low, value), max(middle + high, value), float(stddev))


def _fieller(
    groups: GroupedCounts, centres: NDArray[np.float64], width: float, domain: tuple[float, float]
) -> tuple[float, float]:
    """Solve for the mean m, with S the weighted and N the plain sum of the counts."""
    plain = np.where(groups.sizes > 0, 1.0, 0.0)
    ratio = _Ratio(
        np.array((centres * groups.counts).sum()),
        float(groups.counts.sum()),
        np.array(groups.variance_of(centres * plain)),
        np.array(groups.variance_of(plain)),
        np.array((groups.variance_of(centres + plain) - groups.variance_of(centres - plain)) / 4),
    )
    low, high = ratio.kept_values(np.array(width), domain)
    return float(low), float(high)


@dataclass(frozen=True, eq=False)
class _Ratio:
    """S / N of two linear statistics with the variances of their noise; S and the variances may be arrays."""

    weighted: NDArray[np.float64]
    total: float
    variance_of_weighted: NDArray[np.float64]
    variance_of_total: NDArray[np.float64]
    covariance: NDArray[np.float64]

    def kept_values(
        self, width: NDArray[np.float64], domain: tuple[float, float]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Solve (S - r N)² <= width² Var(S - r N) for r, a quadratic; the whole domain where no bound exists.

        It is solved for r - S/N: around its own middle nothing cancels, however large the counts are.
        """
        middle = self.weighted / self.total if self.total != 0 else np.zeros_like(self.weighted)
        covariance = self.covariance - middle * self.variance_of_total
        variance = self.variance_of_weighted - middle * (self.covariance + covariance)
        square = self.total**2 - width**2 * self.variance_of_total
        inside = (width * covariance) ** 2 + square * np.maximum(variance, 0.0)
        solvable = (square > 0) & (inside >= 0)
        root, divisor = width * np.sqrt(np.where(solvable, inside, 0)), np.where(solvable, square, 1)
        low = np.where(solvable, middle - (width**2 * covariance + root) / divisor, domain[0])
        high = np.where(solvable, middle + (root - width**2 * covariance) / divisor, domain[1])
        return np.clip(low, *domain), np.clip(high, *domain)


def ratio_of_groups(
    groups: GroupedCounts,
    above: NDArray[np.float64],
    below: NDArray[np.float64],
    confidence: float,
    domain: tuple[float, float] = (0.0, np.inf),
) -> RatioEstimate:
    """Estimate the ratio of two weighted sums of counts; all of the domain where noise may be all of the second."""
    total, weighted = float((below * groups.counts).sum()), float((above * groups.counts).sum())
    unknown = domain[1] if np.isinf(domain[1]) else sum(domain) / 2
    value = float(np.clip(weighted / total, *domain)) if total > 0 else unknown
    ratio = _Ratio(
        np.array(weighted),
        total,
        np.array(groups.variance_of(above)),
        np.array(groups.variance_of(below)),
        np.array((groups.variance_of(above + below) - groups.variance_of(above - below)) / 4),
    )

    def standard_width(weights: NDArray[np.float64]) -> float:
        spread = np.sqrt(groups.variance_of(weights))
        return groups.half_width_of(weights, confidence) / spread if spread > 0 else 0.0

    # A very large ratio is tested by the second sum alone.
    tested = [above, below, *([above - value * below] if np.isfinite(value) else [])]
    widest = max(map(standard_width, tested))
    ends = ratio.kept_values(np.array(widest), domain)
    widest = max([widest, *(standard_width(above - float(end) * below) for end in ends if np.isfinite(end))])
    low, high = (float(end) for end in ratio.kept_values(np.array(widest), domain))
    stddev = np.sqrt(groups.variance_of(above - value * below)) / total if total > 0 else np.inf
    return RatioEstimate(value, min(low, value), max(high, value), float(stddev))


def distribution_of_groups(groups: GroupedCounts, confidence: float) -> Estimates:
    """Estimate, for each group in order, the share C(k) / N of the counts at or below it."""
    steps, total, below = len(groups.counts), float(groups.counts.sum()), np.cumsum(groups.counts)
    value = np.clip(scipy.optimize.isotonic_regression(below).x / total, 0, 1) if total > 0 else np.full(steps, 0.5)
    of_share, of_all = groups.prefix_variances(1, 0), groups.prefix_variances(1, 1)
    of_both = (groups.prefix_variances(2, 1) - groups.prefix_variances(0, 1)) / 4
    ratio = _Ratio(below, total, of_share, of_all, of_both)
    low, high = ratio.kept_values(_widest_share_widths(groups, confidence), (0.0, 1.0))
    variance = of_share - 2 * value * of_both + value**2 * of_all
    stddev = np.sqrt(np.maximum(variance, 0)) / total if total > 0 else np.full(steps, np.inf)
    value[-1] = low[-1] = high[-1] = 1.0
    stddev[-1] = 0.0
    return Estimates(value, np.minimum(low, value), np.maximum(high, value), stddev)


def _widest_share_widths(groups: GroupedCounts, confidence: float) -> NDArray[np.float64]:
    """Return for each k the largest standardised width of C(k) - f N over all shares f.

    The law of a weighted sum lies furthest from the normal law where its terms are fewest, at f = 0 or f = 1, and
    nearest where they are all alike: one of the three ends is widest whatever the confidence.
    """
    widths = np.zeros(len(groups.counts))
    for inside, outside in ((1, 0), (0, 1), (1, 1)):
        variance = groups.prefix_variances(inside, outside)
        half_widths = groups.prefix_half_widths(inside, outside, confidence)
        widths = np.maximum(widths, half_widths / np.sqrt(np.where(variance > 0, variance, np.inf)))
    return widths


def quantile_of_groups(groups: GroupedCounts, rank: float, confidence: float) -> tuple[int, int, int]:
    """Return the group that holds the quantile, and the first and last group that may hold it.

    With T(k) = (1 - rank) C(k) - rank (N - C(k)), C(k) the count of groups 0..k, the quantile is the first k with
    T(k) >= 0. A group is kept unless T(k) is below -w(k) or T(k - 1) above w(k - 1); the true one is dropped with
    probability at most (1 - confidence) / 2 on either side.
    """
    steps = len(groups.counts)
    tests = np.cumsum(groups.counts) - rank * groups.counts.sum()
    widths = groups.prefix_half_widths(1 - rank, -rank, confidence)
    reaches = tests >= -widths
    stays_below = np.concatenate([[True], tests[:-1] <= widths[:-1]])
    reaches[-1] = True
    kept = np.flatnonzero(reaches & stays_below)
    smooth = scipy.optimize.isotonic_regression(tests).x
    best = int(np.argmax(smooth >= 0)) if (smooth >= 0).any() else steps - 1
    if kept.size == 0:
        return best, best, best
    return best, min(int(kept[0]), best), max(int(kept[-1]), best)
