"""Answers from marginals without the cube: the same as least squares on the cube, and for cubes that do not exist."""

from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

import veilcube as vc
from veilcube.analyst.estimate.linear.least_squares import LinearEstimate
from veilcube.analyst.estimate.marginals.tables import MarginalsEstimate
from veilcube.curator.counting import Source, count
from veilcube.errors import PlanError, QueryError
from veilcube.laws.noise import DiscreteLaplace
from veilcube.operators import IdentityOperator
from veilcube.operators.marginals.tables import MarginalsOperator
from veilcube.query import read_query

SCHEMA = vc.Schema(
    [
        vc.Ordinal("age", 1, 6),
        vc.Nominal("sex", ["F", "M"]),
        vc.Ordinal("hours", 1, 4),
        vc.Nominal("job", ["a", "b", "c"]),
    ]
)
OPERATORS = [
    MarginalsOperator(SCHEMA.shape, SCHEMA.names, 2, (1, 2, 3, 1, 1, 2)),
    MarginalsOperator(SCHEMA.shape, SCHEMA.names, 3, (2, 1, 1, 1), ((0, 1, 2), (1, 3), (2, 3), (0, 3))),
]
WIDE = vc.Schema([vc.Ordinal(f"a{i}", 0, 9) for i in range(40)])


def both(operator: MarginalsOperator) -> tuple[MarginalsEstimate, LinearEstimate]:
    values = np.random.default_rng(0).integers(0, 100, operator.measurement_shape)
    noise = DiscreteLaplace(Fraction(7, 2))
    return MarginalsEstimate(operator, values, noise), LinearEstimate(operator, values, noise)


def rows(people: int, seed: int) -> dict[str, NDArray[np.int64]]:
    rng = np.random.default_rng(seed)
    return {f"a{i}": rng.integers(0, 10, people) for i in range(40)}


@pytest.mark.parametrize("operator", OPERATORS)
def test_blocks_regions_and_cells_are_those_of_the_cube(operator: MarginalsOperator) -> None:
    tables, cube = both(operator)
    low = np.array([[0, 0, 0, 0], [2, 0, 0, 0], [1, 0, 1, 0], [0, 1, 0, 2], [0, 0, 1, 1], [5, 0, 0, 1], [3, 0, 0, 0]])
    high = np.array([[5, 1, 3, 2], [3, 1, 3, 2], [4, 1, 2, 2], [5, 1, 3, 2], [5, 1, 2, 2], [5, 1, 3, 1], [2, 1, 3, 2]])
    found, expected = (estimate.rectangles(low, high, 0.9) for estimate in (tables, cube))
    for name in ("value", "low", "high", "stddev"):
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), atol=1e-9)
    np.testing.assert_allclose(tables.cells(), cube.cells())
    for text in ("age IN (1, 3) AND sex = 'F'", "age = 1 OR hours = 2", "job <> 'b'", "age = 1 AND age = 2"):
        region = read_query(SCHEMA, text)
        found, expected = (estimate.region(region, 0.9) for estimate in (tables, cube))
        for name in ("value", "low", "high"):
            np.testing.assert_allclose(getattr(found, name), getattr(expected, name), atol=1e-9)


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("text", ["age >= 1", "sex = 'F'", "sex = 'F' OR hours = 2", "hours IN (1, 4)"])
def test_groups_and_their_sums_are_those_of_the_cube(operator: MarginalsOperator, text: str) -> None:
    tables, cube = both(operator)
    axes = [3] if "OR" not in text else [1]
    region = read_query(SCHEMA, text)
    found, expected = (estimate.grouped(region, axes) for estimate in (tables, cube))
    np.testing.assert_allclose(found.counts, expected.counts, atol=1e-9)
    np.testing.assert_array_equal(found.sizes, expected.sizes)
    np.testing.assert_allclose(found.estimates(0.9).high, expected.estimates(0.9).high)
    weights = np.arange(found.counts.size) - 0.5
    assert found.variance_of(weights) == pytest.approx(expected.variance_of(weights))
    assert found.half_width_of(weights, 0.9) == pytest.approx(expected.half_width_of(weights, 0.9))
    np.testing.assert_allclose(found.prefix_variances(0.7, -0.3), expected.prefix_variances(0.7, -0.3), atol=1e-9)


def test_weighted_sums_over_two_attributes_are_those_of_the_cube() -> None:
    tables, cube = both(OPERATORS[0])
    region = read_query(SCHEMA, {})
    weights = np.random.default_rng(1).normal(size=(2, 6))
    found, expected = (estimate.grouped(region, [1, 0]).variance_of(weights) for estimate in (tables, cube))
    assert found == pytest.approx(expected)


def test_tables_are_counted_as_the_cube_would_be() -> None:
    source = pa.table({"age": [1, 6, 6], "sex": ["F", "F", "M"], "hours": [2, 2, 4], "job": ["a", "c", "c"]})
    for operator in OPERATORS:
        tally, cube = Source.read(source, SCHEMA, None, None, None).count_tables(operator.tables), count(source, SCHEMA)
        np.testing.assert_array_equal(tally.measured_by(operator), cube.measured_by(operator))
        assert tally.exact_rows == cube.exact_rows == 3
        assert "exact counts not shown" in repr(tally)
    for other in (OPERATORS[0], IdentityOperator(SCHEMA.shape, SCHEMA.names)):
        with pytest.raises(PlanError, match="other tables"):
            tally.measured_by(other)


def test_a_person_is_capped_before_tables_are_counted() -> None:
    source = pa.table({"age": [1] * 5, "sex": ["F"] * 5, "hours": [2] * 5, "job": ["a"] * 5, "id": [7] * 5})
    tally = Source.read(source, SCHEMA, "id", 2, None).count_tables(OPERATORS[0].tables)
    assert tally.exact_rows == 2
    assert tally.unit.max_rows == 2


def test_a_table_of_forty_attributes_is_released_and_answered(tmp_path: Path) -> None:
    data = rows(5_000, seed=2)
    plan = vc.plan(WIDE, 50, vc.Marginals(k=2))
    release = vc.release(pa.table(data), schema=WIDE, plan=plan)
    release.save(tmp_path / "wide.veil")
    again = vc.open(tmp_path / "wide.veil")
    truth = np.count_nonzero((data["a3"] <= 4) & (data["a31"] == 7))
    answer = again.count(a3=(0, 4), a31=7)
    assert answer.low - 200 <= truth <= answer.high + 200
    assert again.count().value == pytest.approx(5_000, abs=50)
    assert again.marginal("a5", "a7").value.shape == (10, 10)
    assert again.mean("a9").value == pytest.approx(data["a9"].mean(), abs=0.3)
    assert again.answer(vc.Workload(WIDE, ["a1 = 2 OR a2 = 3", {"a39": 1}])).value.shape == (2,)


def test_what_a_wide_release_cannot_answer_is_refused_with_a_reason(tmp_path: Path) -> None:
    schema = vc.Schema([vc.Ordinal(f"a{i}", 0, 9) for i in range(20)])
    release = vc.release(pa.table(rows(100, 3)), 1, vc.Marginals(tables=[("a0", "a1"), ("a2",)]), schema=schema)
    with pytest.raises(QueryError, match="2 chosen marginals"):
        release.count(a0=1, a2=2, estimator="least_squares")
    for export in (release.to_pandas, release.to_xarray, lambda: release.to_parquet(tmp_path / "cells.parquet")):
        with pytest.raises(QueryError, match="ask for counts or marginals"):
            export()


@pytest.mark.parametrize("tables", ["age", [], [()], [("age", "age")], [("age", "height")], ["age"], 3])
def test_tables_that_do_not_fit_are_refused(tables: object) -> None:
    with pytest.raises(PlanError, match="marginal"):
        vc.plan(SCHEMA, 1, vc.Marginals(tables=tables))  # type: ignore[arg-type]


def test_a_cube_that_no_machine_counts_is_released_by_tables() -> None:
    release = vc.release(pa.table(rows(10, 4)), 1, schema=WIDE)
    assert release.plan["strategy"]["name"] == "grouped tables"  # type: ignore[index]
    with pytest.raises(PlanError, match="use strategy='auto', 'grouped tables' or 'marginals'"):
        vc.release(pa.table(rows(10, 4)), 1, "identity", schema=WIDE)


def test_a_cube_too_large_for_this_machine_says_what_to_do() -> None:
    schema = vc.Schema([vc.Ordinal(f"a{i}", 0, 9) for i in range(12)])
    with pytest.raises(vc.VeilcubeError, match="strategy='auto'"):
        vc.release(pa.table(rows(10, 4)), 1, "tree", schema=schema)
