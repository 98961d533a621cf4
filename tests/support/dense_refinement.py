"""Refinement of a whole release by dense matrices, for small cubes: what the implicit one is compared with."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from veilcube.analyst import Release
from veilcube.query import Workload

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class DenseRefinement:
    """Refined cells and their covariance."""

    cells: Floats
    covariance: Floats

    def stddev(self, queries: Floats) -> Floats:
        """Return the standard deviation of questions, one a row."""
        variances = np.einsum("qi,ij,qj->q", queries, self.covariance, queries)
        return np.sqrt(np.maximum(variances, 0.0))


def dense_refinement(release: Release, facts: Floats, constants: Floats) -> DenseRefinement:
    """Return x̂ + S B (B'S B)⁺ (c - B'x̂) with S = (A'A)⁺; ``facts`` has one row for each fact."""
    weighted, values = [], []
    for measurement in release.record.measurements:
        shape = measurement.operator.cell_shape
        cells = np.eye(int(np.prod(shape)), dtype=np.int64).reshape(-1, *shape)
        columns = [measurement.operator.apply(cell).ravel() for cell in cells]
        weighted.append(np.array(columns).T / measurement.noise.stddev)
        values.append(measurement.values.ravel() / measurement.noise.stddev)
    rows = np.concatenate(weighted)
    covariance = np.linalg.pinv(rows.T @ rows, rcond=1e-10)
    estimate = covariance @ rows.T @ np.concatenate(values)
    gain = covariance @ facts.T @ np.linalg.pinv(facts @ covariance @ facts.T, rcond=1e-10)
    return DenseRefinement(estimate + gain @ (constants - facts @ estimate), covariance - gain @ facts @ covariance)


def dense_queries(workload: Workload) -> Floats:
    """Return the blocks of a workload as rows of ones and zeros over the cells."""
    rows = np.zeros((len(workload), *workload.schema.shape))
    for row, low, high in zip(rows, workload.low, workload.high, strict=True):
        row[tuple(slice(first, last + 1) for first, last in zip(low, high, strict=True))] = 1
    return rows.reshape(len(rows), -1)
