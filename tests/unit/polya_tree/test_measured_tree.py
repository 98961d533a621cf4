"""The measured part of a halving tree: which nodes it keeps, and where their values go."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from support.halving_trees import TREES
from veilcube.laws import BlockGaussian, DiscreteGaussian, DiscreteLaplace
from veilcube.operators import IdentityOperator, NodeCounts
from veilcube.polya_tree import MeasuredTree, NodeValues, node_values
from veilcube.polya_tree.measured_tree import NONE, thinned
from veilcube.record import NoisyMeasurement


def values(level: int, nodes: list[int], counts: list[int], scale: float = 1.0) -> NodeValues:
    return NodeValues(level, np.array(nodes), np.array(counts), scale)


def of_node(measured: MeasuredTree, level: int, rank: int) -> list[tuple[float, float]]:
    v = measured.node_at(level)[rank]
    part = slice(measured.first[v], measured.first[v + 1])
    return sorted(zip(measured.values[part], measured.scales[part], strict=True))


def test_values_are_found_at_their_nodes_however_many_there_are() -> None:
    tree = TREES["power of two"]
    parts = [values(2, [0, 1, 2, 3], [9, 8, 7, 6]), values(2, [1, 3], [5, 4], 0.5), values(0, [4, 6], [3, 2], 2.0)]
    measured = MeasuredTree.of(tree, parts)
    assert of_node(measured, 2, 0) == [(9.0, 1.0)]
    assert of_node(measured, 2, 1) == [(5.0, 0.5), (8.0, 1.0)]
    assert of_node(measured, 0, 6) == [(2.0, 2.0)]
    assert of_node(measured, 0, 5) == []
    assert of_node(measured, 4, 0) == []
    assert measured.node_at(0)[[0, 8]].tolist() == [NONE, NONE]


@pytest.mark.parametrize("name", TREES)
def test_children_split_the_cells_of_their_parent_and_leaves_hold_every_cell_once(name: str) -> None:
    tree = TREES[name]
    rng = np.random.default_rng(8)
    nodes = [np.flatnonzero(rng.random(tree.nodes(level)) < 0.4) for level in range(tree.depth + 1)]
    parts = [NodeValues(level, chosen, np.zeros(chosen.size, np.int64), 1.0) for level, chosen in enumerate(nodes)]
    measured = MeasuredTree.of(tree, parts)
    starts, ends = measured.spans()
    for v, (left, right) in enumerate(zip(measured.left, measured.right, strict=True)):
        if left == NONE:
            assert right == NONE
            continue
        assert left > v
        assert measured.level[left] == measured.level[v] - 1
        assert (starts[left], ends[right if right != NONE else left]) == (starts[v], ends[v])
        assert right == NONE or ends[left] == starts[right]
    spans = sorted((starts[v], ends[v]) for v in measured.leaves)
    assert [start for start, _ in spans] == [0, *(end for _, end in spans)][:-1]
    assert spans[-1][1] == tree.cells
    assert measured.first[-1] == sum(chosen.size for chosen in nodes)


@pytest.mark.parametrize("name", TREES)
def test_each_group_of_heights_needs_only_the_groups_before_it(name: str) -> None:
    tree = TREES[name]
    measured = MeasuredTree.of(tree, [values(0, list(range(tree.cells)), [1] * tree.cells)])
    done: set[int] = {NONE}
    for group in measured.heights:
        assert set(measured.left[group]) | set(measured.right[group]) <= done
        done |= set(group.tolist())
    assert len(done) == measured.left.size + 1


def test_a_tree_is_covered_only_if_every_leaf_was_measured() -> None:
    tree = TREES["power of two"]
    assert MeasuredTree.of(tree, [values(3, [0, 1], [1, 1])]).is_covered
    assert MeasuredTree.of(tree, [values(3, [1], [1]), values(2, [0, 1], [1, 1])]).is_covered
    assert not MeasuredTree.of(tree, [values(3, [1], [1])]).is_covered
    assert not MeasuredTree.of(tree, [values(4, [0], [1]), values(3, [1], [1])]).is_covered


def test_measurements_of_nodes_are_read_and_others_refused() -> None:
    tree, noise = TREES["odd size"], DiscreteLaplace(Fraction(5, 2))
    nodes = NoisyMeasurement(NodeCounts(tree, 1, 2, np.array([1, 3])), np.array([4, 5]), noise)
    (found,) = node_values([nodes])
    assert (found.level, found.nodes.tolist(), found.values.tolist(), found.scale) == (1, [1, 3], [4, 5], 2.5)
    cells = NoisyMeasurement(IdentityOperator((11,), ("a",)), np.zeros(11, np.int64), noise)
    with pytest.raises(TypeError, match="not of nodes"):
        node_values([nodes, cells])


def gaussian(level: int, nodes: list[int], sigma_squared: int) -> NoisyMeasurement:
    operator = NodeCounts(TREES["power of two"], level, len(nodes), np.array(nodes))
    return NoisyMeasurement(operator, np.zeros(len(nodes), np.int64), DiscreteGaussian(Fraction(sigma_squared)))


def test_gaussian_noise_is_read_by_its_variance_and_keeps_its_law_in_a_thinned_tree() -> None:
    (found,) = node_values([gaussian(0, list(range(16)), 8)])
    assert (found.scale, found.noise_variance, found.is_normal) == (2.0, pytest.approx(8.0), True)
    laplace = values(1, list(range(8)), [1] * 8, 2.0)
    measured = MeasuredTree.of(TREES["power of two"], [found, laplace])
    small = thinned(measured, 2)
    assert 0 < small.is_normal.sum() < measured.is_normal.sum() == 16
    assert (small.level[np.repeat(np.arange(small.left.size), np.diff(small.first))] == 0).tolist() == list(
        small.is_normal
    )


def test_gaussian_values_decide_unless_all_of_a_block_is_measured_at_once() -> None:
    look, cells = gaussian(3, [0, 1], 9), gaussian(0, list(range(16)), 7)
    block = replace(cells, noise=BlockGaussian(cells.noise.sigma_squared))
    assert [part.decided for part in node_values([look, cells, block])] == [True, True, False]
    assert node_values([block])[0].is_normal
