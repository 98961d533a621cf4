"""Least squares on product releases: every question, against dense linear algebra on a small cube."""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from support.tree_strategies import tree_release
from veilcube.analyst import Release, open_release
from veilcube.analyst.estimate.base.groups import LinearGroups, half_widths_of_moments
from veilcube.analyst.estimate.base.protocol import GroupedCounts
from veilcube.analyst.estimate.base.region_noise import RegionNoise
from veilcube.analyst.estimate.linear.least_squares import LinearEstimate
from veilcube.operators import BoundedMoments, ProductOperator
from veilcube.operators.base.moments import Moments
from veilcube.query import Workload, read_query, read_sql
from veilcube.schema import Nominal, Ordinal, Region, Schema

SCHEMA = Schema([Ordinal("age", 20, 27), Nominal("sex", ["F", "M"]), Ordinal("pay", 0, 5, missing="cell")])
COUNTS = np.random.default_rng(8).integers(0, 50, SCHEMA.shape)
CONDITIONS = [
    "TRUE",
    "age BETWEEN 22 AND 25 AND sex = 'F'",
    "age IN (20, 23, 27)",
    "age < 22 OR sex = 'M' AND pay > 2",
    "(age = 21 OR age = 26) AND pay < 4 OR sex = 'F' AND pay = 5",
]


@dataclass(frozen=True, eq=False)
class Dense:
    """The least-squares map of a release, written out."""

    solve: np.ndarray
    values: np.ndarray
    variance: float

    @classmethod
    def of(cls, release: Release) -> "Dense":
        (measurement,) = release.record.measurements
        cells = int(np.prod(measurement.operator.cell_shape))
        units = np.eye(cells, dtype=np.int64).reshape(cells, *measurement.operator.cell_shape)
        matrix = np.stack([measurement.operator.apply(unit).ravel() for unit in units], axis=1).astype(np.float64)
        return cls(np.linalg.pinv(matrix), measurement.values.ravel(), measurement.noise.variance)

    def value(self, query: np.ndarray) -> float:
        return float(query.ravel() @ self.solve @ self.values)

    def stddev(self, query: np.ndarray) -> float:
        return float(np.sqrt(self.variance) * np.linalg.norm(query.ravel() @ self.solve))

    def moments(self, query: np.ndarray) -> Moments:
        return Moments.of_weights(query.ravel() @ self.solve)


RELEASE = tree_release(SCHEMA, COUNTS, branching=2, epsilon="1/2", seed=1)
DENSE = Dense.of(RELEASE)


def indicator(region: Region) -> np.ndarray:
    query = np.zeros(region.shape)
    for box in region.boxes:
        query[np.ix_(*(box.indices(axis) for axis in range(query.ndim)))] = 1
    return query


def estimate() -> LinearEstimate:
    (measurement,) = RELEASE.record.measurements
    assert isinstance(measurement.operator, ProductOperator)
    return LinearEstimate(measurement.operator, measurement.values, measurement.noise)


def through_regions(region: Region, axes: tuple[int, ...]) -> GroupedCounts:
    """Return the same groups as the estimate does, their noise by the general way that knows no products."""
    (measurement,) = RELEASE.record.measurements
    plain = estimate().grouped(region, axes)
    return LinearGroups(plain.counts, plain.sizes, measurement.noise, RegionNoise(measurement.operator, region, axes))


each_condition = pytest.mark.parametrize("condition", CONDITIONS)


@each_condition
def test_a_count_is_the_least_squares_answer_with_its_exact_deviation(condition: str) -> None:
    query = indicator(read_sql(SCHEMA, condition).region)
    answer = RELEASE.count(condition, estimator="least_squares")
    assert answer.value == pytest.approx(DENSE.value(query))
    assert answer.stddev == pytest.approx(DENSE.stddev(query))
    width = half_widths_of_moments(RELEASE.record.measurements[0].noise, DENSE.moments(query), 0.95)
    assert answer.high - answer.value == pytest.approx(float(width))
    assert answer.value - answer.low == pytest.approx(float(width))


def test_a_workload_of_blocks_and_irregular_queries_is_answered_at_once() -> None:
    queries = [{"age": (21, 24)}, "age IN (20, 25) OR pay = 3", {"sex": "F", "pay": (1, 4)}, "FALSE"]
    answers = RELEASE.answer(Workload(SCHEMA, queries), estimator="least_squares")
    for k, query in enumerate(queries):
        weights = indicator(read_query(SCHEMA, query))
        assert answers.value[k] == pytest.approx(DENSE.value(weights), abs=1e-9)
        assert answers.stddev[k] == pytest.approx(DENSE.stddev(weights), abs=1e-9)
    assert answers.low[3] == answers.high[3] == 0


@each_condition
@pytest.mark.parametrize("names", [("sex",), ("pay", "age"), ("age", "sex", "pay")])
def test_every_group_of_a_marginal_is_exact(condition: str, names: tuple[str, ...]) -> None:
    axes = tuple(SCHEMA.axis(name) for name in names)
    region = read_sql(SCHEMA, condition).region
    inside = indicator(region)
    for groups in (estimate().grouped(region, axes), through_regions(region, axes)):
        found = groups.estimates(0.95)
        for index in np.ndindex(*(SCHEMA.shape[axis] for axis in axes)):
            query = np.zeros(SCHEMA.shape)
            place: list[object] = [slice(None)] * 3
            for axis, cell in zip(axes, index, strict=True):
                place[axis] = cell
            query[tuple(place)] = inside[tuple(place)]
            assert found.value[index] == pytest.approx(DENSE.value(query), abs=1e-9)
            assert found.stddev[index] == pytest.approx(DENSE.stddev(query), abs=1e-9)
            assert groups.sizes[index] == query.sum()


@each_condition
@pytest.mark.parametrize("name", ["age", "pay"])
@pytest.mark.parametrize(("confidence", "most_above"), [(0.5, 1.4), (0.95, 1.1)])
def test_weighted_sums_and_prefixes_of_groups_have_exact_variances_and_intervals_not_too_narrow(
    condition: str, name: str, confidence: float, most_above: float
) -> None:
    axis = SCHEMA.axis(name)
    region = read_sql(SCHEMA, condition).region
    shape = [1, 1, 1]
    shape[axis] = -1
    inside = indicator(region)
    size = SCHEMA.shape[axis]
    weights = np.random.default_rng(2).normal(size=size)
    noise = RELEASE.record.measurements[0].noise
    for groups in (estimate().grouped(region, [axis]), through_regions(region, (axis,))):
        query = inside * weights.reshape(shape)
        assert groups.variance_of(weights) == pytest.approx(DENSE.stddev(query) ** 2)
        exact = float(half_widths_of_moments(noise, DENSE.moments(query), confidence))
        assert exact * (1 - 1e-9) <= groups.half_width_of(weights, confidence) <= exact * most_above
        variances, widths = groups.prefix_variances(0.7, -0.3), groups.prefix_half_widths(0.7, -0.3, confidence)
        for k in range(size):
            query = inside * np.where(np.arange(size) <= k, 0.7, -0.3).reshape(shape)
            assert variances[k] == pytest.approx(DENSE.stddev(query) ** 2)
            exact = float(half_widths_of_moments(noise, DENSE.moments(query), confidence))
            assert exact * (1 - 1e-9) <= widths[k] <= exact * most_above


@pytest.mark.parametrize("estimator", ["least_squares", "nonnegative"])
def test_sums_means_quantiles_and_distributions_hold_the_truth(estimator: str) -> None:
    release = tree_release(SCHEMA, COUNTS * 100, branching=3, epsilon=1, seed=4)
    by_age, ages = COUNTS.sum(axis=(1, 2)) * 100, np.arange(20, 28)
    total = release.sum("age", estimator=estimator, confidence=0.9999)
    assert total.low <= (by_age * ages).sum() <= total.high
    mean = release.mean("age", estimator=estimator, confidence=0.9999)
    assert mean.low <= (by_age * ages).sum() / by_age.sum() <= mean.high
    assert mean.high - mean.low < 0.2
    below = np.cumsum(by_age) / by_age.sum()
    shares = release.cdf("age", estimator=estimator, confidence=0.9999)
    assert ((shares.low <= below) & (below <= shares.high)).all()
    median = release.quantile("age", estimator=estimator, where="sex = 'F' OR pay = 2")
    chosen = COUNTS.copy()
    chosen[:, 1, [0, 1, 3, 4, 5, 6]] = 0
    exact = 20 + int(np.argmax(np.cumsum(chosen.sum(axis=(1, 2))) >= chosen.sum() / 2))
    assert median.low <= exact <= median.high
    # Missing pay is a cell behind the regular ones, which a sum leaves out.
    pay = release.sum("pay", estimator=estimator, confidence=0.9999)
    assert pay.low <= (COUNTS.sum(axis=(0, 1))[:6] * 100 * np.arange(6)).sum() <= pay.high


@pytest.mark.parametrize("estimator", ["least_squares", "nonnegative"])
def test_a_product_release_survives_its_file_and_every_export(estimator: str, tmp_path: Path) -> None:
    RELEASE.save(tmp_path / "tree.veil")
    again = open_release(tmp_path / "tree.veil")
    assert again.record.measurements[0].operator == RELEASE.record.measurements[0].operator
    frame = again.to_pandas(estimator=estimator)
    np.testing.assert_allclose(frame["value"].to_numpy(), RELEASE.to_xarray(estimator=estimator).to_numpy().ravel())
    assert (frame["low"] <= frame["value"]).all()
    again.to_parquet(tmp_path / "cells.parquet", estimator=estimator)
    assert (tmp_path / "cells.parquet").exists()


def test_float_sums_of_a_large_cube_agree_with_slices() -> None:
    rng = np.random.default_rng(3)
    schema = Schema([Ordinal("x", 1, 600), Ordinal("y", 1, 500)])
    release = tree_release(schema, rng.integers(0, 4 * 10**5, schema.shape), branching=8, epsilon="1/10", seed=2)
    workload = Workload.random_ranges(schema, 2000, seed=5)
    cells = release.to_xarray(estimator="least_squares").to_numpy()
    answers = release.answer(workload, estimator="least_squares")
    for k in range(50):
        block = cells[tuple(slice(a, b + 1) for a, b in zip(workload.low[k], workload.high[k], strict=True))]
        assert abs(answers.value[k] - block.sum()) < 1e-3 * answers.stddev[k]


class BareOperator:
    """A product that tells its variances and noise weights and nothing of its higher moments."""

    def __init__(self, operator: ProductOperator) -> None:
        self._operator = operator

    def __getattr__(self, name: str) -> object:
        if name.startswith("moments"):
            raise AttributeError(name)
        return getattr(self._operator, name)

    @property
    def answers(self) -> BoundedMoments:
        return BoundedMoments(self._operator)


def test_an_operator_without_higher_moments_gets_intervals_that_are_wide_enough() -> None:
    record = RELEASE.record
    (measurement,) = record.measurements
    assert isinstance(measurement.operator, ProductOperator)
    bare = replace(measurement, operator=BareOperator(measurement.operator))
    release = Release(replace(record, measurements=(bare,)))
    for condition in CONDITIONS:
        ours, exact = (each.count(condition, estimator="least_squares") for each in (release, RELEASE))
        assert ours.value == pytest.approx(exact.value)
        assert ours.stddev == pytest.approx(exact.stddev)
        assert 1 - 1e-9 <= (ours.high - ours.low) / (exact.high - exact.low) <= 1.12
    mean = release.mean("age", estimator="least_squares")
    assert mean.value == pytest.approx(RELEASE.mean("age", estimator="least_squares").value)
