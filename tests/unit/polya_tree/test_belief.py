"""Belief propagation against a list of all tables, and what it makes of measurements that no table explains."""

from dataclasses import replace

import numpy as np
import pytest

from support.dense_posterior import DensePosterior
from support.posterior_draws import draw_cells
from veilcube.operators import HalvingTree
from veilcube.operators.staged.halving import SIDES, AxisCodes
from veilcube.polya_tree import Belief, MeasuredTree, NodeValues, SplitLaw, learn, propagate
from veilcube.polya_tree.belief import STEPS_IN_A_SCALE
from veilcube.polya_tree.split_law import BETA_SHAPES, COMPONENTS


def tree_of(cells: int) -> HalvingTree:
    return HalvingTree((AxisCodes(cells, (cells - 1).bit_length()),))


def values(level: int, nodes: list[int], counts: list[float], scale: float) -> NodeValues:
    return NodeValues(level, np.array(nodes), np.array(counts), scale)


def random_law(classes: int, seed: int) -> SplitLaw:
    return SplitLaw.of(np.random.default_rng(seed).dirichlet(np.ones(COMPONENTS), size=classes))


# Pass-through nodes are those with one child: cells 0, 1, 4, 7 of 3 bits leave the node of cell 7 without a sibling.
SKIPPING = HalvingTree((AxisCodes(4, 3, (0, 1, 4, 7)),))
CASES = {
    "one cell": (tree_of(1), [values(0, [0], [3], 1.5), values(0, [0], [6], 2.0)], 60),
    "two cells": (tree_of(2), [values(0, [0, 1], [4, -2], 1.5)], 40),
    "two cells and their sum": (tree_of(2), [values(1, [0], [9], 1.0), values(0, [0, 1], [4, 2], 1.5)], 40),
    "odd size": (tree_of(3), [values(1, [0, 1], [7, 1], 1.0), values(0, [0, 1, 2], [0, 8, 2], 1.2)], 32),
    "total not measured": (tree_of(4), [values(0, [0, 1, 2, 3], [3, -1, 5, 9], 1.0)], 24),
    "several measurements of a node": (
        tree_of(4),
        [
            values(2, [0], [14], 1.1),
            values(0, [0, 1, 2, 3], [3, -1, 5, 7], 1.0),
            values(1, [1], [11], 1.4),
            values(1, [0, 1], [2, 13], 1.0),
            values(0, [2], [4], 1.9),
        ],
        25,
    ),
    "a half that went no further": (
        tree_of(8),
        [values(2, [0, 1], [2, 9], 0.6), values(2, [0], [1], 0.5), values(0, [4, 5, 6, 7], [0, 0, 5, 3], 0.7)],
        17,
    ),
    "nodes of one child": (SKIPPING, [values(2, [0, 1], [5, 8], 1.2), values(0, [0, 1, 2, 3], [1, 4, 3, 6], 1.0)], 24),
}


def normal(parts: list[NodeValues], which: slice = slice(None)) -> list[NodeValues]:
    """Return the parts, some of them with Gaussian noise of the same variance."""
    chosen = set(range(len(parts))[which])
    return [replace(part, is_normal=number in chosen) for number, part in enumerate(parts)]


LAWS = {"Laplace": slice(0, 0), "Gaussian": slice(None), "both": slice(0, None, 2)}


def both(name: str, seed: int, law_of: str = "Laplace") -> tuple[Belief, DensePosterior]:
    tree, parts, most = CASES[name]
    measured = MeasuredTree.of(tree, normal(parts, LAWS[law_of]))
    law = random_law(tree.classes, seed)
    return propagate(measured, law), DensePosterior(measured, law.weights, 1.0, most)


@pytest.mark.parametrize("law_of", LAWS)
@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("name", CASES)
def test_means_and_posteriors_of_all_nodes_are_those_of_all_tables_listed(name: str, seed: int, law_of: str) -> None:
    belief, dense = both(name, seed, law_of)
    for v in range(belief.means.size):
        assert belief.means[v] == pytest.approx(dense.mean(v), abs=1e-4 * dense.mean(0))
        window = slice(belief.windows.offset[v], belief.windows.offset[v] + belief.windows.length[v])
        found = np.zeros(dense.chances(v).size)
        found[belief.windows.start[v] : belief.windows.start[v] + belief.windows.length[v]] = belief.chances[window]
        np.testing.assert_allclose(found, dense.chances(v), atol=1e-4)


@pytest.mark.parametrize("law_of", LAWS)
@pytest.mark.parametrize("counts", [(140, 120), (14, 190), (200, 11), (60, 75)])
def test_large_counts_have_the_posterior_of_all_tables_listed(counts: tuple[int, int], law_of: str) -> None:
    tree = tree_of(2)
    parts = [values(1, [0], [sum(counts) + 6], 2.5), values(0, [0, 1], list(counts), 3.0)]
    measured = MeasuredTree.of(tree, normal(parts, LAWS[law_of]))
    law = random_law(tree.classes, 5)
    belief, dense = propagate(measured, law), DensePosterior(measured, law.weights, 2.0, 125)
    assert belief.step == 2.0
    for v in range(3):
        assert belief.means[v] == pytest.approx(dense.mean(v), abs=0.02)


def test_a_coarse_grid_counts_in_its_steps() -> None:
    tree = tree_of(4)
    measured = MeasuredTree.of(tree, [values(1, [0, 1], [40, 3], 5.9), values(0, [0, 1, 2, 3], [9, 35, 8, -7], 5.2)])
    law = random_law(tree.classes, 4)
    belief, dense = propagate(measured, law), DensePosterior(measured, law.weights, 5.0, 28)
    assert belief.step == 5.0
    np.testing.assert_allclose(belief.means, [dense.mean(v) for v in range(belief.means.size)], atol=5e-3)


def random_tree(seed: int, cells: int = 200, scale: float = 4.0) -> MeasuredTree:
    """Return the measurements of two levels, the lower one only below some nodes."""
    rng, tree = np.random.default_rng(seed), tree_of(cells)
    counts = rng.gamma(0.4, 30, size=cells).astype(int)
    blocks = np.add.reduceat(counts, tree.starts(3))
    goes_on = np.flatnonzero(blocks > 60)
    below = np.flatnonzero(np.isin(tree.ancestors(0, 3), goes_on))
    noise = [np.rint(rng.laplace(0, scale, size=size)).astype(int) for size in (blocks.size, below.size)]
    parts = [NodeValues(3, np.arange(blocks.size), blocks + noise[0], scale)]
    return MeasuredTree.of(tree, [*parts, NodeValues(0, below, counts[below] + noise[1], scale)])


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_cells_are_never_negative_and_sum_to_the_mean_of_every_node(seed: int) -> None:
    belief = learn(random_tree(seed))
    cells, (starts, ends) = belief.cells(), belief.measured.spans()
    assert (cells >= 0).all()
    in_order = cells[belief.measured.tree.order]
    for v, mean in enumerate(belief.means):
        assert in_order[starts[v] : ends[v]].sum() == pytest.approx(mean, rel=1e-5, abs=1e-4)


def test_below_a_leaf_cells_are_even_where_the_law_prefers_no_side() -> None:
    measured = random_tree(4)
    belief = propagate(measured, SplitLaw.even(measured.tree))
    starts, ends = belief.measured.spans()
    in_order = belief.cells()[belief.measured.tree.order]
    wide = [v for v in belief.measured.leaves if ends[v] - starts[v] > 1]
    assert wide
    for v in wide:
        np.testing.assert_allclose(in_order[starts[v] : ends[v]], belief.means[v] / (ends[v] - starts[v]))


def test_a_tree_with_a_node_that_nobody_measured_is_refused() -> None:
    with pytest.raises(ValueError, match="nobody measured"):
        propagate(MeasuredTree.of(tree_of(4), [values(0, [0, 1, 2], [1, 1, 1], 1.0)]), SplitLaw.even(tree_of(4)))


EXTREMES = {
    "one cell": (1, [values(0, [0], [5], 1.0)]),
    "all zeros": (64, [values(0, list(range(64)), [0] * 64, 1.0)]),
    "all far below zero": (16, [values(0, list(range(16)), [-(10**6)] * 16, 1.0)]),
    "huge counts": (16, [values(0, list(range(16)), [10**9 + 7 * i for i in range(16)], 1.0)]),
    "huge counts beside empty cells": (16, [values(0, list(range(16)), [10**9, 0] * 8, 2.0)]),
    "counts near the largest": (4, [values(0, [0, 1, 2, 3], [2**59, 0, 2**59, 3], 1.0)]),
    "tiny scale": (16, [values(0, list(range(16)), list(range(16)), 2.0**-10)]),
    "huge scale": (16, [values(0, list(range(16)), [2**40 * (i - 4) for i in range(16)], 2.0**40)]),
    "a parent that contradicts its children": (
        4,
        [values(2, [0], [10**6], 1.0), values(0, [0, 1, 2, 3], [5, 0, 0, 5], 1.0)],
    ),
    "a parent below its children": (4, [values(2, [0], [0], 1.0), values(0, [0, 1, 2, 3], [10**6] * 4, 1.0)]),
    "two values of one node": (2, [values(0, [0, 1], [10**9, 3], 1.0), values(0, [0], [2], 1.0)]),
    "equal values of one node far apart": (1, [values(0, [0], [2**60], 2.0), values(0, [0], [0], 1.0)]),
    "very different scales": (
        32,
        [values(5, [0], [10**4], 0.01), values(0, list(range(32)), [10**5] * 16 + [0] * 16, 10.0**4)],
    ),
}


@pytest.mark.parametrize("name", EXTREMES)
def test_extreme_measurements_leave_everything_finite_and_consistent(name: str) -> None:
    cells, parts = EXTREMES[name]
    belief = learn(MeasuredTree.of(tree_of(cells), parts))
    estimate = belief.cells()
    assert np.isfinite(estimate).all()
    assert (estimate >= 0).all()
    assert np.isfinite(belief.law.weights).all()
    assert estimate.sum() == pytest.approx(belief.means[0], rel=1e-5, abs=1e-4)
    assert belief.windows.length.max() <= 100_000
    assert np.isfinite(draw_cells(belief, draws=4)).all()


def test_values_of_one_node_that_contradict_each_other_leave_it_near_the_sharper_one() -> None:
    belief = learn(MeasuredTree.of(tree_of(1), [values(0, [0], [10**9], 4.0), values(0, [0], [50], 2.0)]))
    assert belief.means[0] == pytest.approx(50, abs=10)


def test_noise_of_very_different_scales_makes_the_grid_coarser_and_not_the_windows_endless() -> None:
    belief = learn(MeasuredTree.of(tree_of(2), [values(1, [0], [5], 1.0), values(0, [0, 1], [5000, 1], 64000.0)]))
    assert belief.step == 64000 // STEPS_IN_A_SCALE


@pytest.mark.parametrize("count", [10**3, 10**6, 10**9])
def test_large_counts_are_as_sure_as_small_ones(count: int) -> None:
    belief = learn(MeasuredTree.of(tree_of(4), [values(0, [0, 1, 2, 3], [count, 3 * count, count, 2 * count], 2.0)]))
    np.testing.assert_allclose(belief.cells(), [count, 3 * count, count, 2 * count], atol=2.5)
    assert 1.0 < draw_cells(belief, draws=400).std(axis=0).max() < 4.0


@pytest.mark.parametrize("shape", [0.1, 1.0, 16.0, 256.0])
def test_weights_learn_the_component_that_divided_the_data(shape: float) -> None:
    rng, cells = np.random.default_rng(int(10 * shape)), 256
    counts = np.array([200_000])
    while counts.size < cells:
        left = rng.binomial(counts, rng.beta(shape, shape, size=counts.size))
        counts = np.stack([left, counts - left], axis=1).ravel()
    measured = MeasuredTree.of(tree_of(cells), [NodeValues(0, np.arange(cells), counts, 1.0)])
    weights = learn(measured).law.weights[SIDES : 4 * SIDES : SIDES].mean(axis=0)  # levels 1 to 3, between the ends
    near = [c for c, other in enumerate(BETA_SHAPES) if shape / 4.01 <= other <= 4.01 * shape]
    assert weights[near].sum() > 2.5 * len(near) / COMPONENTS


@pytest.mark.parametrize("name", ["total not measured", "several measurements of a node", "nodes of one child"])
def test_learning_raises_the_evidence_of_the_weights(name: str) -> None:
    tree, parts, most = CASES[name]
    measured = MeasuredTree.of(tree, parts)
    before, once, learned = (
        DensePosterior(measured, belief.law.weights, 1.0, most).evidence
        for belief in (learn(measured, rounds=0), learn(measured, rounds=1), learn(measured))
    )
    assert before < once
    assert before < learned


def test_below_a_leaf_cells_get_the_shares_that_the_law_gives_their_branches() -> None:
    tree = tree_of(8)
    law = random_law(tree.classes, 5)
    belief = propagate(MeasuredTree.of(tree, [values(2, [0, 1], [40, 20], 1.0)]), law)
    left = law.left_shares
    for node in (0, 1):
        upper = left[tree.kinds(2)[node]]
        halves = [upper, 1 - upper]
        expected = [
            halves[half] * share
            for half in (0, 1)
            for share in (left[tree.kinds(1)[2 * node + half]], 1 - left[tree.kinds(1)[2 * node + half]])
        ]
        mean = belief.means[belief.measured.node_at(2)[node]]
        np.testing.assert_allclose(belief.cells()[4 * node : 4 * node + 4], mean * np.array(expected))
