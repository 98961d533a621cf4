"""Marginals against dense linear algebra."""

import numpy as np
import pytest

from veilcube.errors import PlanError, QueryError
from veilcube.operators import MarginalsOperator, read_marginals
from veilcube.operators.marginals.components import centred
from veilcube.query import read_query
from veilcube.schema import Ordinal, Schema

SCHEMA = Schema([Ordinal("a", 1, 3), Ordinal("b", 1, 2), Ordinal("c", 1, 4), Ordinal("d", 1, 1)])
OPERATORS = {
    "pairs": MarginalsOperator(SCHEMA.shape, SCHEMA.names, 2, (1, 2, 3, 1, 1, 2)),
    "singles": MarginalsOperator(SCHEMA.shape, SCHEMA.names, 1, (2, 1, 1, 3)),
    "chosen": MarginalsOperator(SCHEMA.shape, SCHEMA.names, 2, (2, 1, 3), ((0, 1), (1, 2), (3,))),
    "everything": MarginalsOperator(SCHEMA.shape, SCHEMA.names, 4, (2,)),
}


def dense(operator: MarginalsOperator) -> np.ndarray:
    cells = int(np.prod(operator.cell_shape))
    one_row = (np.eye(cells, dtype=np.int64)[cell].reshape(operator.cell_shape) for cell in range(cells))
    return np.array([operator.apply(row) for row in one_row]).T.astype(np.float64)


@pytest.fixture(params=OPERATORS)
def operator(request: pytest.FixtureRequest) -> MarginalsOperator:
    return OPERATORS[request.param]


def test_adjoint_and_least_squares_are_those_of_the_matrix(operator: MarginalsOperator) -> None:
    matrix = dense(operator)
    noisy = np.random.default_rng(0).normal(size=len(matrix))
    assert operator.measurement_shape == (len(matrix),)
    np.testing.assert_allclose(operator.adjoint(noisy).ravel(), matrix.T @ noisy, atol=1e-12)
    np.testing.assert_allclose(operator.solve(noisy).ravel(), np.linalg.pinv(matrix) @ noisy, atol=1e-12)


def test_sensitivity_is_exact(operator: MarginalsOperator) -> None:
    columns = dense(operator).T
    assert operator.sensitivity("add-remove") == columns.sum(axis=1).max()
    assert operator.sensitivity("replace") == max(np.abs(a - b).sum() for a in columns for b in columns)


def test_moments_of_blocks_are_those_of_the_noise_weights(operator: MarginalsOperator) -> None:
    matrix = dense(operator)
    weights_of = matrix @ np.linalg.pinv(matrix.T @ matrix)
    ranges = [[(i, j) for i in range(size) for j in range(i, size)] for size in operator.cell_shape]
    blocks = [(a, b, c, d) for a in ranges[0] for b in ranges[1] for c in ranges[2] for d in ranges[3]]
    narrowed = [tuple(axis for axis, (i, j) in enumerate(block) if j - i + 1 < SCHEMA.shape[axis]) for block in blocks]
    asked = [block for block, axes in zip(blocks, narrowed, strict=True) if axes in operator.components]
    low, high = (np.array([[ends[side] for ends in block] for block in asked]) for side in (0, 1))
    moments = operator.moments_of_rectangles(low, high)
    np.testing.assert_allclose(moments.second, operator.variance_of_rectangles(low, high))
    for row, block in enumerate(asked):
        query = np.zeros(operator.cell_shape)
        query[tuple(slice(i, j + 1) for i, j in block)] = 1
        weights = weights_of @ query.ravel()
        np.testing.assert_allclose(operator.noise_weights(query), weights, atol=1e-12)
        assert moments.second[row] == pytest.approx((weights**2).sum())
        assert moments.fourth[row] == pytest.approx((weights**4).sum())
        assert moments.sixth[row] == pytest.approx((weights**6).sum())


def test_sums_of_products_have_the_noise_weights_of_the_query_that_they_write_out(operator: MarginalsOperator) -> None:
    rng = np.random.default_rng(1)
    sizes = list(enumerate(SCHEMA.shape))
    products = [
        [rng.normal(size=size) if axis in table else np.full(size, 1.5) for axis, size in sizes]
        for table in (operator.tables[0], operator.tables[-1])
    ]
    query = sum(np.einsum("a,b,c,d->abcd", *factors) for factors in products)
    np.testing.assert_allclose(operator.noise_weights_of_products(products), operator.noise_weights(query), atol=1e-12)


def test_the_components_estimate_every_table_as_least_squares_on_the_cube_does(operator: MarginalsOperator) -> None:
    noisy = np.random.default_rng(2).normal(size=operator.measurement_shape)
    cells, residuals = operator.solve(noisy), operator.residuals(noisy)
    for axes, part in residuals.items():
        table = cells.sum(axis=tuple(axis for axis in range(4) if axis not in axes))
        np.testing.assert_allclose(part, centred(table), atol=1e-12)


def test_products_that_are_not_determined_are_refused() -> None:
    factors = [np.arange(size) + 1.0 for size in SCHEMA.shape]
    with pytest.raises(QueryError, match="ties more than 2"):
        OPERATORS["pairs"].noise_weights_of_products([factors])


@pytest.mark.parametrize(
    "tables", [(), ((0, 0),), ((1, 0),), ((0, 4),), ((0, 1), (0, 1)), ((0, 1, 2),), ((),), ((-1, 0),)]
)
def test_chosen_tables_must_be_different_and_sorted(tables: tuple[tuple[int, ...], ...]) -> None:
    with pytest.raises(PlanError, match="marginal"):
        MarginalsOperator(SCHEMA.shape, SCHEMA.names, 2, (1,) * len(tables), tables)


def test_sixty_attributes_are_no_obstacle() -> None:
    shape = (20,) * 60
    operator = MarginalsOperator(shape, tuple(f"a{i}" for i in range(60)), 2, (1,) * 1770)
    low, high = np.zeros((3, 60), dtype=np.int64), np.full((3, 60), 19)
    high[0, 3] = high[1, [4, 9]] = 0
    moments = operator.moments_of_rectangles(low, high)
    # A cell of a table is known from its own table alone but for the parts that other tables tell too.
    assert (moments.second > 0).all()
    assert (moments.second < 1).all()
    assert np.isfinite(moments.sixth).all()
    assert operator.measurement_shape == (1770 * 400,)


def test_unions_that_the_tables_determine_have_their_exact_variance() -> None:
    operator, shape = OPERATORS["pairs"], SCHEMA.shape
    weights_of = (matrix := dense(operator)) @ np.linalg.pinv(matrix.T @ matrix)
    query = np.zeros(shape)
    query[0, 0], query[:, 1, 1] = 1, 1
    region = read_query(SCHEMA, "(a = 1 AND b = 1) OR (b = 2 AND c = 2)")
    weights = weights_of @ query.ravel()
    assert operator.variance_of_region(region) == pytest.approx((weights**2).sum())
    bounds = operator.moments_of_region(region)
    assert bounds.bounded
    assert bounds.fourth >= (weights**4).sum()
    assert bounds.sixth >= (weights**6).sum()
    box = read_query(SCHEMA, "a <> 2 AND c = 4")
    query = np.zeros(shape)
    query[[0, 2], :, 3] = 1
    weights = weights_of @ query.ravel()
    exact = operator.moments_of_region(box)
    assert not exact.bounded
    assert exact.fourth == pytest.approx((weights**4).sum())
    assert exact.sixth == pytest.approx((weights**6).sum())


def test_what_the_tables_do_not_determine_is_refused() -> None:
    operator = OPERATORS["pairs"]
    with pytest.raises(QueryError, match="3 attributes at once; ask about at most 2"):
        operator.variance_of_rectangles(np.array([[0, 0, 0, 0]]), np.array([[1, 0, 1, 0]]))
    with pytest.raises(QueryError, match="ties more than 2"):
        operator.variance_of_region(read_query(SCHEMA, "a = 1 OR (b = 1 AND c = 2)"))
    query = np.zeros(SCHEMA.shape)
    query[0, 0, 0, 0] = 1
    with pytest.raises(QueryError, match="ties more than 2"):
        operator.noise_weights(query)


def test_empty_queries_have_no_error() -> None:
    operator = OPERATORS["singles"]
    assert operator.variance_of_rectangles(np.array([[0, 0, 1, 0]]), np.array([[1, 0, 0, 0]])).tolist() == [0.0]
    assert operator.variance_of_region(read_query(SCHEMA, "a = 1 AND a = 2")) == 0


def test_plain_data_brings_it_back(operator: MarginalsOperator) -> None:
    assert read_marginals(operator.to_dict()) == operator


@pytest.mark.parametrize(
    "spoilt",
    [
        {"shape": "3"},
        {"shape": [3, 2, 4, 0]},
        {"shape": [2**30, 2**30, 4, 1]},
        {"shape": [3, 2, 4]},
        {"attributes": ["a"]},
        {"k": 0},
        {"k": True},
        {"k": 2.0},
        {"multipliers": [1, 2, 3]},
        {"multipliers": [1, 2, 3, 1, 1, -2]},
        {"multipliers": [1, 2, 3, 1, 1, 2**40]},
        {"shape": [2] * 40, "attributes": ["a"] * 40, "k": 20},
    ],
)
def test_untrusted_data_is_refused(spoilt: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"."):
        read_marginals(OPERATORS["pairs"].to_dict() | spoilt)
