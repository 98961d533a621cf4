"""Privelet*: least squares after soft thresholding of the noisy wavelet coefficients, band by band.

Coefficients of one level of every attribute form a band. In whole-number rows all noise has one variance v, so a
band S of noisy coefficients c is thought to hold T = Σ c² - v |S| of signal, and its threshold θ is the one that
leaves as much: Σ max(|c| - θ, 0)² = T (CompThresh of Xiao, Wang and Gehrke, as corrected: sums over all coefficients,
divisor |S|; T <= 0 sets the whole band to zero). The left side falls and is convex in θ, so Newton's steps from θ = 0
never pass the root: no sorting, and all bands take their steps in one pass over the coefficients. The paper thresholds
totals too; totals are not differences that lie about zero, and moving them would bias every large answer, so the band
of totals stays as it is.

Sub-matrices of flat attributes share their bands' thresholds ("pooled") or have their own ("separate"). It reads what
was published and nothing else, and its intervals are those that least squares guarantees (``adjusted``).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veilcube.analyst.estimate.base import AdjustedEstimate
from veilcube.analyst.estimate.linear.least_squares import LeastSquares
from veilcube.errors import QueryError
from veilcube.operators import AxisOperator
from veilcube.record import ReleaseRecord
from veilcube.system import Floats, Integers, compiled, share_out

MOST_STEPS = 100
SETTLED = 1e-12


@dataclass(frozen=True)
class Thresholded:
    """Soft thresholding with one threshold for each subband, or for each subband of each flat sub-matrix."""

    is_pooled: bool = True

    @property
    def name(self) -> str:
        """The word that users call it by."""
        return "thresholded" if self.is_pooled else "thresholded_separately"

    def can_read(self, record: ReleaseRecord) -> bool:
        """Whether the release is one measurement by wavelets and flat attributes."""
        product = record.measurements[0].product
        if len(record.measurements) != 1 or product is None or record.measurements[0].cells is not None:
            return False
        return all(axis.is_flat or axis.has_bands for axis in product.axes)

    def fit(self, record: ReleaseRecord) -> AdjustedEstimate:
        """Return its answers about this release."""
        measurement = record.measurements[0]
        if measurement.product is None:
            raise QueryError("thresholds are for releases of wavelets; use another estimator")
        bands = [_bands(axis, self.is_pooled) for axis in measurement.product.axes]
        shrunk = soft_threshold(measurement.values, bands, measurement.noise.variance)
        return AdjustedEstimate(LeastSquares().fit(record), measurement.product.solve(shrunk))


def wanted_thresholding(record: ReleaseRecord) -> Thresholded | None:
    """Return the estimator that the plan of a release asks for, if it asks for thresholds."""
    strategy = record.plan.get("strategy")
    wanted = strategy.get("threshold") if isinstance(strategy, Mapping) else None
    found = {"pooled": Thresholded(), "separate": Thresholded(is_pooled=False)}.get(str(wanted))
    return found if found is not None and found.can_read(record) else None


@dataclass(frozen=True, eq=False)
class AxisBands:
    """The band of each row of an axis, and which bands are totals along it (on a flat axis, all)."""

    of_rows: Integers
    is_total: NDArray[np.bool_]


def _bands(axis: AxisOperator, is_pooled: bool) -> AxisBands:
    if axis.bands is not None:
        return AxisBands(axis.bands, np.arange(axis.bands.max() + 1) == 0)
    many = 1 if is_pooled else axis.size
    return AxisBands(np.arange(axis.size, dtype=np.int64) % many, np.ones(many, dtype=np.bool_))


@dataclass(frozen=True, eq=False)
class Bands:
    """Noisy coefficients as a matrix along the last axis; the bands of its rows, and of its columns within those."""

    values: NDArray[Any]
    rows: Integers
    columns: Integers
    is_total: NDArray[np.bool_]

    @classmethod
    def of(cls, values: NDArray[Any], axes: Sequence[AxisBands]) -> "Bands":
        """Number the combinations of the axes' bands, the last axis's fastest."""
        rows, is_total = np.zeros(1, dtype=np.int64), np.ones(1, dtype=np.bool_)
        for axis in axes[:-1]:
            rows = np.add.outer(rows * axis.is_total.size, axis.of_rows).ravel()
            is_total = np.logical_and.outer(is_total, axis.is_total).ravel()
        last = axes[-1]
        is_total = np.logical_and.outer(is_total, last.is_total).ravel()
        matrix = np.ascontiguousarray(values).reshape(rows.size, -1)
        return cls(matrix, rows * last.is_total.size, last.of_rows, is_total)

    def excesses(self, theta: Floats) -> tuple[Floats, Floats, Floats]:
        """Return for each band how many coefficients reach its threshold, by how much in all, and in squares."""
        parts: dict[int, Floats] = {}

        def work(start: int, stop: int) -> None:
            sums = np.zeros((3, theta.size))
            _add_excesses(self.values, self.rows, self.columns, theta, sums, start, stop)
            parts[start] = sums

        share_out(work, len(self.values), self.values.size)
        # Added in the order of the parts and not in that in which they were done, so that sums are always the same.
        count, excess, squares = np.sum([parts[start] for start in sorted(parts)], axis=0)
        return count, excess, squares

    def shrunk(self, theta: Floats) -> Floats:
        """Return the coefficients moved towards zero by their bands' thresholds."""
        found = np.empty(self.values.shape)
        settings = (self.values, self.rows, self.columns, theta, found)
        share_out(lambda start, stop: _shrink(*settings, start, stop), len(self.values), self.values.size)
        return found


def soft_threshold(values: NDArray[Any], axes: Sequence[AxisBands], variance: float) -> Floats:
    """Return coefficients moved towards zero by the threshold of their band."""
    bands = Bands.of(values, axes)
    return bands.shrunk(find_thresholds(bands, variance)).reshape(values.shape)


def find_thresholds(bands: Bands, variance: float) -> Floats:
    """Return the threshold of each band: 0 for totals, infinite where there seems to be no signal.

    >>> details = AxisBands(np.zeros(6, dtype=np.int64), np.array([False]))
    >>> find_thresholds(Bands.of(np.array([5, -3, 2, -1, 0.5, 0]), [details]), 2.0).round(10).tolist()
    [0.5994186832]
    """
    theta = np.zeros(bands.is_total.size)
    size, _, squares = bands.excesses(theta)
    signal = squares - variance * size
    theta[(signal <= 0) & ~bands.is_total] = np.inf
    moves = np.isfinite(theta) & ~bands.is_total
    for _ in range(MOST_STEPS):
        _, excess, squares = bands.excesses(theta)
        step = np.divide(squares - signal, 2 * excess, out=np.zeros_like(theta), where=moves & (excess > 0))
        theta[moves] += np.maximum(step[moves], 0.0)
        if (step[moves] <= SETTLED * theta[moves]).all():
            break
    return theta


@compiled
def _add_excesses(
    values: NDArray[Any], rows: Integers, columns: Integers, theta: Floats, sums: Floats, start: int,
    stop: int,
) -> None:  # fmt: skip
    for row in range(start, stop):
        for column in range(columns.size):
            band = rows[row] + columns[column]
            excess = abs(float(values[row, column])) - theta[band]
            if excess >= 0.0:
                sums[0, band] += 1.0
                sums[1, band] += excess
                sums[2, band] += excess * excess


@compiled
def _shrink(
    values: NDArray[Any], rows: Integers, columns: Integers, theta: Floats, shrunk: Floats, start: int,
    stop: int,
) -> None:  # fmt: skip
    for row in range(start, stop):
        for column in range(columns.size):
            value = float(values[row, column])
            rest = max(abs(value) - theta[rows[row] + columns[column]], 0.0)
            shrunk[row, column] = rest if value >= 0.0 else -rest
