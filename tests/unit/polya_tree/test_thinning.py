"""A tree thinned for learning: some of the measurements, enough of each level, and the ends of the domain."""

import numpy as np
import pytest

from veilcube.operators import HalvingTree
from veilcube.operators.staged.halving import SIDES, AxisCodes
from veilcube.polya_tree import MeasuredTree, NodeValues, belief, learn
from veilcube.polya_tree.measured_tree import NONE, thinned

LINE = HalvingTree((AxisCodes(2000, 11),))
PLANE = HalvingTree((AxisCodes(64, 6), AxisCodes(64, 6)))


def fully_measured(tree: HalvingTree, levels: tuple[int, ...], seed: int = 1) -> MeasuredTree:
    """Return noisy counts of all nodes of some levels."""
    rng = np.random.default_rng(seed)
    counts = rng.poisson(50, tree.cells)
    parts = []
    for level in levels:
        sums = np.add.reduceat(counts, tree.starts(level))
        noise = np.rint(rng.laplace(0, 5.0, sums.size)).astype(np.int64)
        parts.append(NodeValues(level, np.arange(sums.size), sums + noise, 5.0 + level))
    return MeasuredTree.of(tree, parts)


def measurements(measured: MeasuredTree) -> set[tuple[int, int, float, float]]:
    owner = np.repeat(np.arange(measured.left.size), np.diff(measured.first))
    return set(zip(measured.level[owner], measured.rank[owner], measured.values, measured.scales, strict=True))


def refined(measured: MeasuredTree, level: int) -> np.ndarray:
    return np.flatnonzero((measured.level == level) & (measured.left != NONE))


@pytest.mark.parametrize("tree", [LINE, PLANE], ids=["line", "plane"])
def test_a_thinned_tree_holds_some_of_the_measurements_and_covers_every_cell(tree: HalvingTree) -> None:
    measured = fully_measured(tree, (6, 3, 0))
    small = thinned(measured, 20)
    assert small.is_covered
    assert measurements(small) < measurements(measured)
    assert small.left.size < measured.left.size / 2


def test_about_as_many_nodes_go_on_as_were_asked_for_and_with_all_that_is_below_them() -> None:
    measured = fully_measured(LINE, (8, 5, 2, 0))
    small = thinned(measured, 30)
    assert refined(small, 8).size == refined(measured, 8).size == 8
    for level in (5, 2):
        assert 30 <= refined(small, level).size <= 32
    below = np.isin(LINE.ancestors(0, 2), small.rank[refined(small, 2)])
    assert np.count_nonzero(small.level == 0) == np.count_nonzero(below)


def test_nodes_at_the_ends_of_both_axes_are_among_those_that_go_on() -> None:
    small = thinned(fully_measured(PLANE, (4, 0)), 32)
    for level in (4, 3, 2, 1):
        sides = small.kinds[refined(small, level)] % SIDES
        assert np.bincount(sides, minlength=SIDES).min() >= 8


def test_nodes_that_were_not_measured_always_go_on() -> None:
    measured = fully_measured(LINE, (0,))
    assert thinned(measured, 10) is measured


def test_a_small_tree_stays_as_it_is() -> None:
    measured = fully_measured(LINE, (6, 3, 0))
    assert thinned(measured, 250) is measured


def test_learning_from_some_nodes_answers_nearly_as_from_all(monkeypatch: pytest.MonkeyPatch) -> None:
    measured = fully_measured(LINE, (6, 3, 0), seed=2)
    some = learn(measured)
    monkeypatch.setattr(belief, "NODES_TO_LEARN_FROM", measured.left.size)
    every = learn(measured)
    assert not np.array_equal(some.law.weights, every.law.weights)
    moved = np.sqrt(np.mean(np.square(some.cells() - every.cells())))
    noise = np.sqrt(np.mean(np.square(every.cells() - 50)))
    assert moved < 0.25 * noise
