"""Products of axes: sensitivity by brute force, least squares and variances against dense Kronecker products."""

from itertools import product

import numpy as np
import pytest

from support.dense_axes import DenseAxis
from veilcube.errors import ReleaseFileError
from veilcube.operators import FlatAxis, ProductOperator, TreeAxis, product as product_module, read_operator
from veilcube.operators.tree.axis import tree_axis
from veilcube.operators.tree.shape import levels_of_fanouts
from veilcube.schema import Region

ROOTLESS = TreeAxis(4, (np.array([0, 2, 4]), np.arange(5)), (1, 2))
OPERATORS = [
    ProductOperator((tree_axis(5, 2, (3, 1, 2, 1)),), ("x",)),
    ProductOperator((tree_axis(4, 2, (1, 2, 1)), FlatAxis(3)), ("x", "y")),
    ProductOperator((tree_axis(3, 3, (2, 3)), ROOTLESS), ("x", "y")),
    ProductOperator((FlatAxis(2), tree_axis(3, 2), tree_axis(1, 2, (2,))), ("x", "y", "z")),
]
each_operator = pytest.mark.parametrize("operator", OPERATORS, ids=lambda operator: str(operator.cell_shape))


def columns(operator: ProductOperator) -> np.ndarray:
    cells = int(np.prod(operator.cell_shape))
    units = np.eye(cells, dtype=np.int64).reshape(cells, *operator.cell_shape)
    return np.stack([operator.apply(unit).ravel() for unit in units])


def dense_least_squares(operator: ProductOperator) -> np.ndarray:
    joined = np.ones((1, 1))
    for axis in operator.axes:
        joined = np.kron(joined, DenseAxis.of(axis).least_squares)
    return joined


@each_operator
def test_measurements_are_those_of_the_kronecker_product(operator: ProductOperator) -> None:
    joined = np.ones((1, 1))
    for axis in operator.axes:
        joined = np.kron(joined, DenseAxis.of(axis).matrix)
    np.testing.assert_array_equal(columns(operator), joined.T)


@each_operator
def test_sensitivity_is_the_largest_change_over_all_cells_and_pairs_of_cells(operator: ProductOperator) -> None:
    vectors = columns(operator)
    assert operator.sensitivity("add-remove") == np.abs(vectors).sum(axis=1).max()
    pairs = np.abs(vectors[:, None, :] - vectors[None, :, :]).sum(axis=2)
    assert operator.sensitivity("replace") == pairs.max()


def test_a_cube_of_one_cell_still_gets_noise_when_rows_are_exchanged() -> None:
    operator = ProductOperator((tree_axis(1, 2, (3,)), FlatAxis(1)), ("x", "y"))
    assert operator.sensitivity("replace") == 6


@each_operator
def test_least_squares_adjoint_and_noise_weights_agree_with_dense_matrices(operator: ProductOperator) -> None:
    rng = np.random.default_rng(7)
    dense = dense_least_squares(operator)
    measured = rng.integers(-50, 50, size=operator.measurement_shape)
    np.testing.assert_allclose(operator.solve(measured).ravel(), dense @ measured.ravel(), atol=1e-9)
    np.testing.assert_allclose(
        operator.adjoint(measured.astype(float)).ravel(), columns(operator) @ measured.ravel(), atol=1e-9
    )
    query = rng.normal(size=operator.cell_shape)
    np.testing.assert_allclose(operator.noise_weights(query).ravel(), query.ravel() @ dense, atol=1e-9)


@each_operator
def test_moments_of_all_rectangles_are_exact(operator: ProductOperator) -> None:
    ends = [[(i, j) for i in range(size) for j in range(i, size)] for size in operator.cell_shape]
    blocks = np.array(list(product(*ends)))
    low, high = blocks[:, :, 0], blocks[:, :, 1]
    queries = np.zeros((len(blocks), *operator.cell_shape))
    for query, lows, highs in zip(queries, low, high, strict=True):
        query[tuple(slice(a, b + 1) for a, b in zip(lows, highs, strict=True))] = 1
    weights = queries.reshape(len(blocks), -1) @ dense_least_squares(operator)
    found = operator.moments_of_rectangles(low, high)
    np.testing.assert_allclose(found.second, (weights**2).sum(axis=1))
    np.testing.assert_allclose(operator.variance_of_rectangles(low, high), found.second)
    np.testing.assert_allclose(found.fourth, (weights**4).sum(axis=1))
    np.testing.assert_allclose(found.sixth, (weights**6).sum(axis=1))


def random_region(shape: tuple[int, ...], rng: np.random.Generator, boxes: int) -> Region:
    parts = []
    for _ in range(boxes):
        masks = [rng.random(size) < 0.6 for size in shape]
        parts.append(Region.everything(shape).intersect(*(Region.on_axis(shape, i, m) for i, m in enumerate(masks))))
    return Region.nothing(shape).union(*parts)


@each_operator
@pytest.mark.parametrize("boxes", [0, 1, 2, 4])
def test_variances_of_unions_of_boxes_are_exact(operator: ProductOperator, boxes: int) -> None:
    rng = np.random.default_rng(boxes)
    for _ in range(10):
        region = random_region(operator.cell_shape, rng, boxes)
        query = np.zeros(operator.cell_shape)
        for box in region.boxes:
            query[np.ix_(*(box.indices(axis) for axis in range(len(operator.axes))))] = 1
        weights = query.ravel() @ dense_least_squares(operator)
        assert operator.variance_of_region(region) == pytest.approx((weights**2).sum(), abs=1e-12)
        found = operator.moments_of_region(region)
        for power, moment in ((2, found.second), (4, found.fourth), (6, found.sixth)):
            assert float(moment) == pytest.approx((weights**power).sum(), abs=1e-12)


def test_moments_of_a_union_too_large_to_write_out_are_never_too_small(monkeypatch: pytest.MonkeyPatch) -> None:
    operator = OPERATORS[2]
    rng = np.random.default_rng(9)
    regions = [random_region(operator.cell_shape, rng, 3) for _ in range(20)]
    exact = [operator.moments_of_region(region) for region in regions]
    monkeypatch.setattr(product_module, "MOST_DENSE_MEASUREMENTS", 0)
    for region, known in zip(regions, exact, strict=True):
        bound = operator.moments_of_region(region)
        assert float(bound.second) == pytest.approx(float(known.second))
        assert bound.fourth >= known.fourth * (1 - 1e-9)
        assert bound.sixth >= known.sixth * (1 - 1e-9)


@each_operator
def test_a_product_comes_back_from_its_plain_data(operator: ProductOperator) -> None:
    assert read_operator(operator.to_dict()) == operator


TREE = {"kind": "tree", "size": 4, "fanouts": [1, 2], "multipliers": [1, 1, 1]}
RUNS = {"kind": "tree", "size": 4, "runs": [[4], [1, 3]], "multipliers": [1, 1, 1]}


@pytest.mark.parametrize(
    "axis",
    [
        None,
        {},
        {"kind": "bush", "size": 4},
        {"kind": "flat", "size": 0},
        {"kind": "flat", "size": True},
        {"kind": "flat", "size": 4.0},
        {"kind": "flat", "size": 2**60},
        TREE | {"size": "4"},
        TREE | {"fanouts": [1, 0]},
        TREE | {"fanouts": [1, 2] * 1000},
        TREE | {"fanouts": "12"},
        TREE | {"multipliers": [1, 1]},
        TREE | {"multipliers": [1, 1, -1]},
        TREE | {"multipliers": [1, 1, 2**40]},
        TREE | {"multipliers": [1, 1, 1.0]},
        RUNS | {"runs": [[4], [1, 2]]},
        RUNS | {"runs": [[2, 2], [1, 3]]},
        RUNS | {"runs": [[4], [1, 3, 0]]},
        RUNS | {"runs": [[1] * 5, [1, 3]]},
        RUNS | {"runs": []},
        RUNS | {"runs": 3},
    ],
)
def test_plain_data_that_describes_no_axis_is_refused(axis: object) -> None:
    assert read_operator({"kind": "product", "axes": [TREE, RUNS], "dimensions": ["x", "y"]})
    with pytest.raises(ReleaseFileError):
        read_operator({"kind": "product", "axes": [axis], "dimensions": ["x"]})


@pytest.mark.parametrize(
    "data",
    [
        {"axes": [TREE], "dimensions": []},
        {"axes": [TREE], "dimensions": [1]},
        {"axes": [], "dimensions": []},
        {"axes": [TREE] * 33, "dimensions": ["x"] * 33},
        {"axes": TREE, "dimensions": ["x"]},
    ],
)
def test_plain_data_that_describes_no_product_is_refused(data: dict[str, object]) -> None:
    with pytest.raises(ReleaseFileError):
        read_operator({"kind": "product", **data})


def test_a_file_that_claims_an_enormous_tree_takes_no_memory_before_its_size_is_known() -> None:
    data = {"kind": "tree", "size": 2**47, "fanouts": [1, 2**20, 2**20], "multipliers": [1, 1, 1, 1]}
    operator = read_operator({"kind": "product", "axes": [data], "dimensions": ["x"]})
    assert operator.measurement_shape == (1 + 2**20 + 2**40 + 2**47,)
    assert operator.sensitivity("add-remove") == 4


def test_a_file_that_lists_many_levels_that_split_nothing_takes_no_more_memory_than_one() -> None:
    levels = levels_of_fanouts(1000, (1, 1000, *(1,) * 60, *(5,) * 60))
    assert len({id(level) for level in levels}) == 2
    fanouts, multipliers = [1, 1000, *[1] * 60], [1] * 63
    data = {"kind": "tree", "size": 1000, "fanouts": fanouts, "multipliers": multipliers}
    axis = read_operator({"kind": "product", "axes": [data], "dimensions": ["x"]}).axes[0]
    assert axis.rows == 1001
    assert axis.apply(np.ones(1000, dtype=np.int64)).tolist() == [1000, *[62] * 1000]
