"""Counts of chosen nodes against dense matrices."""

import numpy as np
import pytest

from support.halving_trees import TREES, matrix_of
from veilcube.errors import QueryError, ReleaseFileError
from veilcube.operators import HalvingTree, NodeCounts, read_operator
from veilcube.operators.staged.nodes import read_nodes
from veilcube.schema import Region

CASES = [(name, level) for name, tree in TREES.items() for level in range(tree.depth + 1)]
each_level = pytest.mark.parametrize(("name", "level"), CASES)


def some_nodes(tree: HalvingTree, level: int, seed: int = 3) -> NodeCounts:
    """Return about two thirds of a level's nodes."""
    chosen = np.flatnonzero(np.random.default_rng([seed, level]).random(tree.nodes(level)) < 0.67)
    return NodeCounts(tree, level, chosen.size, chosen)


def dense(operator: NodeCounts) -> np.ndarray:
    """Return the rows of the chosen nodes, from the positions of the cells alone."""
    tree = operator.tree
    prefixes = np.empty(tree.cells, dtype=np.int64)
    prefixes[tree.order] = tree.positions >> operator.level
    every = np.unique(prefixes)
    return (every[operator.chosen][:, None] == prefixes).astype(np.float64)


@each_level
def test_apply_and_adjoint_are_those_of_the_matrix(name: str, level: int) -> None:
    operator = some_nodes(TREES[name], level)
    matrix, rng = dense(operator), np.random.default_rng(1)
    counts = rng.integers(0, 100, size=operator.cell_shape)
    np.testing.assert_array_equal(operator.apply(counts), matrix @ counts.ravel())
    assert operator.apply(counts).dtype == np.int64
    measured = rng.normal(size=operator.measurement_shape)
    np.testing.assert_allclose(operator.adjoint(measured).ravel(), matrix.T @ measured, atol=1e-12)
    assert operator.adjoint(measured).shape == operator.cell_shape


@each_level
def test_solve_is_the_least_squares_answer_of_smallest_norm(name: str, level: int) -> None:
    operator = some_nodes(TREES[name], level)
    measured = np.random.default_rng(2).integers(-9, 99, size=operator.rows)
    np.testing.assert_allclose(operator.solve(measured).ravel(), np.linalg.pinv(dense(operator)) @ measured, atol=1e-9)


@each_level
def test_a_row_counts_in_one_node_at_most_and_an_exchanged_row_in_two(name: str, level: int) -> None:
    tree = TREES[name]
    operator = NodeCounts(tree, level, tree.nodes(level), np.arange(tree.nodes(level)))
    columns = matrix_of(operator).T
    assert operator.sensitivity("add-remove") == np.abs(columns).sum(axis=1).max()
    exchanged = max(np.abs(a - b).sum() for a in columns for b in columns)
    assert operator.sensitivity("replace") == (exchanged if tree.nodes(level) > 1 else 2)


def test_plain_data_and_arrays_bring_it_back() -> None:
    operator = some_nodes(TREES["uneven hierarchy"], 1)
    bare = read_operator(operator.to_dict())
    assert bare.array_shapes == {"nodes": operator.measurement_shape}
    again = bare.with_arrays(operator.arrays())
    np.testing.assert_array_equal(matrix_of(again), matrix_of(operator))


def test_nodes_are_asked_for_only_when_they_are_known() -> None:
    bare = read_nodes(some_nodes(TREES["odd size"], 1).to_dict())
    assert bare.measurement_shape == (bare.rows,)
    with pytest.raises(ValueError, match="not known yet"):
        bare.apply(np.zeros(11, dtype=np.int64))


@pytest.mark.parametrize("nodes", [[1, 0, 2], [0, 0, 1], [-1, 0, 1], [0, 1, 6], [0, 1], [0, 1, 2, 3], [[0, 1, 2]]])
def test_nodes_that_are_unsorted_doubled_outside_or_of_another_number_are_refused(nodes: list[int]) -> None:
    with pytest.raises(ValueError, match="must increase and lie in their level"):
        NodeCounts(TREES["odd size"], 1, 3, np.array(nodes))


@pytest.mark.parametrize(
    "spoilt",
    [
        {"level": -1},
        {"level": 5},
        {"level": True},
        {"level": "1"},
        {"rows": -1},
        {"rows": 12},
        {"rows": 2**70},
        {"rows": 1.0},
        {"tree": None},
        {"tree": [{"size": 11, "bits": 3, "codes": None}]},
    ],
)
def test_untrusted_data_is_refused(spoilt: dict[str, object]) -> None:
    sound = some_nodes(TREES["odd size"], 1).to_dict()
    assert read_operator(sound).cell_shape == (11,)
    with pytest.raises(ReleaseFileError, match="not well formed"):
        read_operator(sound | spoilt)
    with pytest.raises(ReleaseFileError, match="not well formed"):
        read_operator({key: value for key, value in sound.items() if key not in spoilt})


def test_questions_need_the_posterior() -> None:
    operator = some_nodes(TREES["odd size"], 1)
    with pytest.raises(QueryError, match="posterior"):
        operator.variance_of_rectangles(np.array([[0]]), np.array([[3]]))
    with pytest.raises(QueryError, match="posterior"):
        operator.variance_of_region(Region.on_axis((11,), 0, np.arange(11) < 3))
