"""Quantiles drawn by splits and read from trees: right without noise, in order, and within the bar's time and error."""

import time
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from support.seeded import SeededWords
from veilcube.analyst.estimate.polya.posterior import PosteriorEstimate
from veilcube.curator.cube import Cube
from veilcube.curator.ledger import Receipt
from veilcube.curator.mechanisms.protected.quantiles import (
    ReadQuantiles,
    _posterior_widths,
    draw_quantiles,
    read_quantiles_from_staged_tree,
    read_quantiles_from_tree,
)
from veilcube.curator.mechanisms.staged import StagedTreeMechanism
from veilcube.curator.sampling import discrete_laplace
from veilcube.curator.sampling.rank import draw_rank
from veilcube.errors import PrivacyError
from veilcube.laws.normal_quantiles import normal_quantile
from veilcube.operators import HalvingTree
from veilcube.planner import Plan
from veilcube.planner.quantiles import plan_quantiles
from veilcube.polya_tree import MeasuredTree, learn, node_values
from veilcube.privacy.quantile_split import QuantileSplit
from veilcube.schema import Region

PERCENTILES = [Fraction(i, 100) for i in range(1, 100)]
Counts = np.ndarray


def misses(counts: Counts, places: list[int], quantiles: list[Fraction]) -> np.ndarray:
    """Return by how many rows each answer misses its quantile."""
    up_to = np.cumsum(counts)
    wanted = np.array([float(quantile) for quantile in quantiles]) * up_to[-1]
    at = np.array(places)
    return np.maximum(np.maximum(up_to[at] - counts[at] - wanted, wanted - up_to[at]), 0)


def bell(cells: int, rows: int = 10**6) -> Counts:
    values = np.clip(np.random.default_rng(3).normal(0.5, 0.15, rows) * cells, 0, cells - 1)
    return np.bincount(values.astype(np.int64), minlength=cells)


@pytest.mark.parametrize("counts", [[5, 0, 3, 9, 1], [0, 0, 100, 0], [1] * 50, [40, 1, 1, 1, 60]])
@pytest.mark.parametrize("slots", [None, 1, 8])
def test_without_noise_every_answer_holds_its_quantile(counts: list[int], slots: int | None) -> None:
    quantiles = [Fraction(1, 5), Fraction(1, 2), Fraction(9, 10)]
    split = QuantileSplit.read(quantiles)
    rows = np.array(counts) * 64
    drawn = draw_quantiles(rows, split, [Fraction(10**6)] * split.levels, slots=slots, source=SeededWords(1))
    # A split within a value is as fine as the rows of one slot.
    assert misses(rows, drawn, quantiles).max() <= (2 if slots is None else rows.max() // slots + 2)
    assert drawn == sorted(drawn)


def test_a_heavy_value_is_every_quantile_that_it_holds() -> None:
    counts = np.array([0, 30_000, 0, 70_000])
    split = QuantileSplit.read(PERCENTILES)
    drawn = draw_quantiles(counts, split, [Fraction(10)] * split.levels, source=SeededWords(2))
    # With this much budget a draw is a few rows off, never a percent of them.
    assert set(drawn[:29]) == {1}
    assert set(drawn[30:]) == {3}


def test_answers_ascend_however_little_the_budget_is() -> None:
    split = QuantileSplit.read(PERCENTILES)
    for seed in range(5):
        drawn = draw_quantiles(
            bell(20, 50), split, [Fraction(1, 1000)] * split.levels, slots=4, source=SeededWords(seed)
        )
        assert drawn == sorted(drawn)
        assert 0 <= drawn[0] <= drawn[-1] < 20


def test_an_empty_table_still_gets_answers() -> None:
    split = QuantileSplit.read([0.2, 0.4, 0.6])
    drawn = draw_quantiles(np.zeros(7, dtype=np.int64), split, [Fraction(1)] * 2)
    assert len(drawn) == 3


def test_a_budget_is_needed_for_each_level() -> None:
    with pytest.raises(PrivacyError, match="one epsilon for each level"):
        draw_quantiles(bell(5), QuantileSplit.read([0.2, 0.8]), [Fraction(1)])


def test_without_noise_a_tree_gives_exact_quantiles() -> None:
    plan = plan_quantiles(50, [0.25, 0.5, 0.75], 1, method="tree")
    assert plan.tree is not None
    counts = np.random.default_rng(1).poisson(40, 50)
    silent = read_quantiles_from_tree(
        counts, plan.split.quantiles, plan.tree, 0.95, lambda _, shape: np.zeros(shape, dtype=np.int64)
    )
    assert misses(counts, silent.places, list(plan.split.quantiles)).max() < 1e-6


def test_intervals_of_tree_quantiles_hold_the_true_place() -> None:
    plan = plan_quantiles(100, [0.1, 0.5, 0.9], 0.2, method="tree")
    assert plan.tree is not None
    counts = np.random.default_rng(1).poisson(30, 100)
    up_to = np.cumsum(counts)
    true = np.searchsorted(up_to, up_to[-1] * np.array([0.1, 0.5, 0.9]))
    held = []
    for _ in range(300):
        found = read_quantiles_from_tree(counts, plan.split.quantiles, plan.tree, 0.8, discrete_laplace)
        held.append((np.array(found.first) <= true) & (true <= np.array(found.last)))
        assert all(a <= b <= c for a, b, c in zip(found.first, found.places, found.last, strict=True))
    assert np.mean(held) > 0.77


@pytest.mark.parametrize("cells", [2, 70, 300])
def test_with_next_to_no_noise_a_staged_tree_gives_exact_quantiles(cells: int) -> None:
    plan = plan_quantiles(cells, [0.25, 0.5, 0.75], 1000, method="staged")
    assert plan.staged is not None
    counts = np.random.default_rng(1).poisson(40, cells)
    found = read_quantiles_from_staged_tree(counts, plan.split.quantiles, plan.staged, 0.95, discrete_laplace)
    assert misses(counts, found.places, list(plan.split.quantiles)).max() <= 1


@pytest.mark.parametrize("spread", [0.15, 0.05])
def test_intervals_of_staged_quantiles_hold_the_true_place_on_smooth_data(spread: float) -> None:
    quantiles = [0.1, 0.35, 0.5, 0.9]
    plan = plan_quantiles(256, quantiles, 0.1, method="staged")
    assert plan.staged is not None
    values = np.clip(np.random.default_rng(5).normal(0.5, spread, 20_000) * 256, 0, 255)
    counts = np.bincount(values.astype(np.int64), minlength=256)
    true = np.searchsorted(np.cumsum(counts), 20_000 * np.array(quantiles))
    held, missed, rows = [], [], []
    for _ in range(25):
        found = read_quantiles_from_staged_tree(counts, plan.split.quantiles, plan.staged, 0.8, discrete_laplace)
        held.append((np.array(found.first) <= true) & (true <= np.array(found.last)))
        missed.append(misses(counts, found.places, list(plan.split.quantiles)) <= found.rows)
        rows.append(found.rows)
        assert all(a <= b <= c for a, b, c in zip(found.first, found.places, found.last, strict=True))
    assert np.mean(held) > 0.75
    assert np.mean(missed) > 0.75
    # An interval that says nothing would hold as well.
    assert np.mean(rows) < 1000


def test_quantiles_of_a_staged_tree_are_widened_as_releases_of_one_are() -> None:
    plan = plan_quantiles(256, [0.2, 0.5], 0.1, method="staged")
    assert plan.staged is not None
    mechanism = StagedTreeMechanism()
    cube = Cube(plan.staged.schema, bell(256, 20_000))
    receipt = Receipt.uncharged(mechanism.claim(plan.staged))
    measured = mechanism.measure(cube, plan.staged, receipt, discrete_laplace)
    values = node_values(measured, with_variances=True)
    belief = learn(MeasuredTree.of(HalvingTree.of(plan.staged.schema), values))
    estimate = PosteriorEstimate((256,), belief)
    groups = estimate.grouped(Region.everything((256,)), (0,))
    found = _posterior_widths(estimate.reconciled, plan.split.quantiles, 0.95)
    for quantile, widths in zip((0.2, 0.5), found, strict=True):
        released = normal_quantile(0.95) * np.sqrt(groups.prefix_variances(1 - quantile, -quantile))
        np.testing.assert_allclose(widths - belief.step, released, rtol=1e-3)


def test_a_staged_tree_misses_by_far_less_than_a_plain_one_where_noise_hides_even_cells() -> None:
    plain, staged = (plan_quantiles(256, PERCENTILES, "1/100", method=method) for method in ("tree", "staged"))
    assert plain.tree is not None
    assert staged.staged is not None
    counts = np.random.default_rng(1).poisson(500, 256)

    def missed(read: Callable[..., ReadQuantiles], plan: Plan) -> float:
        runs = [read(counts, PERCENTILES, plan, 0.95, discrete_laplace).places for _ in range(8)]
        return float(np.mean([misses(counts, places, PERCENTILES).mean() for places in runs]))

    assert missed(read_quantiles_from_staged_tree, staged.staged) < 0.6 * missed(read_quantiles_from_tree, plain.tree)


@pytest.mark.parametrize("cells", [1000, 2**17])
def test_99_quantiles_of_a_million_rows_take_under_5_seconds_and_beat_independent_draws(cells: int) -> None:
    counts = bell(cells)
    plan = plan_quantiles(cells, PERCENTILES, "1/10")
    started = time.process_time()
    if plan.tree is not None and plan.method == "tree":
        noisy = read_quantiles_from_tree(counts, plan.split.quantiles, plan.tree, 0.95, discrete_laplace)
        drawn = noisy.places
    else:
        drawn = draw_quantiles(counts, plan.split, plan.budgets)
    assert time.process_time() - started < 5
    few = PERCENTILES[::20]
    ranks = [10**6 - int(quantile * 10**6) for quantile in few]
    alone = [draw_rank(counts, Fraction(1, 990), rank, "exponential") for rank in ranks]
    assert misses(counts, drawn, PERCENTILES).mean() < 0.5 * misses(counts, alone, few).mean()
