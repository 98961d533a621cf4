"""What is measured under Gaussian noise is chosen for its price, the L2 norm of a column, and no change lowers it."""

from fractions import Fraction
from itertools import chain, combinations

import numpy as np
import pytest

from support.dense_axes import all_ranges
from support.tree_levels import JOBS, TREES, levels
from veilcube.operators import FlatAxis, MatchedAxis, TreeAxis
from veilcube.planner import Adaptive, Marginals, Plan, Tree, Wavelet, plan
from veilcube.planner.design import Strategy, price_of
from veilcube.planner.design.weights import balance_weights, shares
from veilcube.planner.matched.gram import DenseMoments
from veilcube.planner.matched.search import Design, _logarithm_and_slopes, hat_design
from veilcube.planner.matched.strategy import match_axis, round_design
from veilcube.planner.partition.design import SPLITS
from veilcube.planner.staged.design import gaussian_weights, shares_below, shares_with_root
from veilcube.planner.tree.classes import TreeClasses
from veilcube.planner.tree.loops import range_variances
from veilcube.privacy import rho_of
from veilcube.query import Workload
from veilcube.schema import Nominal, Ordinal, Schema


def gaussian_error(schema: Schema, strategy: Strategy, workload: Workload) -> float:
    """The least expected error under Gaussian noise of what a strategy may choose."""
    found = plan(schema, rho=Fraction(1, 2), strategy=strategy, workload=workload)
    return min(option.expected_error for option in found.candidates if option.family == "gaussian")


def gaussian_choice(schema: Schema, strategy: Strategy | str, workload: Workload) -> Strategy:
    found = plan(schema, rho=Fraction(1, 2), strategy=strategy, workload=workload)
    options = [option for option in found.candidates if option.family == "gaussian"]
    return min(options, key=lambda option: option.expected_error).strategy


def test_independent_groups_get_the_fourth_roots_of_their_errors_in_one_step() -> None:
    costs = np.array([1.0, 16.0, 81.0])
    theta, value = balance_weights(
        lambda w: (float((costs / w**2).sum()), -2 * costs / w**3), np.ones(3), price_of("gaussian"), rounds=1
    )
    np.testing.assert_allclose(theta, np.array([1, 2, 3]) / np.sqrt(14))
    assert value == pytest.approx(14**2)


@pytest.mark.parametrize("measures_total", [True, False])
@pytest.mark.parametrize("name", TREES)
def test_the_price_of_a_tree_is_its_operators_squared_norm(name: str, measures_total: bool) -> None:
    tree = TREES[name] if measures_total else TREES[name][1:]
    price = TreeClasses(TREES[name][:-1], measures_total).price("gaussian")
    for seed in range(5):
        multipliers = tuple(np.random.default_rng(seed).integers(1, 9, len(tree)).tolist())
        axis = TreeAxis(int(tree[-1][-1]), tree, multipliers)
        assert price.norm(np.array(multipliers, dtype=np.float64)) ** 2 == pytest.approx(axis.largest_square)


@pytest.mark.parametrize("measures_total", [True, False])
@pytest.mark.parametrize("name", TREES)
def test_no_other_weights_of_a_tree_have_less_error(name: str, measures_total: bool) -> None:
    tree = TREES[name]
    low, high, _ = all_ranges(int(tree[-1][-1]))
    classes, generator = TreeClasses(tree[:-1], measures_total), np.random.default_rng(1)
    ranges, cost, price = classes.ranges(low, high), generator.uniform(0, 1, len(low)), classes.price("gaussian")
    theta, error = classes.optimise(ranges, cost, family="gaussian")
    assert price.norm(theta) == pytest.approx(1)
    # A weight on its way to nothing gets there slowly: such levels are left out, and need not arrive.
    parts = price.parts(theta)
    leaving = float(parts[parts < 0.06].sum())
    for size in (0.03, 0.1, 0.5):
        for _ in range(100):
            moved = theta * np.exp(generator.normal(0, size, len(theta)))
            other, _ = range_variances(classes._packed[0], ranges, moved / price.norm(moved), cost, np.zeros(len(low)))
            assert other > error * (1 - 1e-3 - leaving)


def test_the_best_weights_of_laplace_noise_are_not_those_of_gaussian_noise() -> None:
    low, high, _ = all_ranges(64)
    classes = TreeClasses(levels(64, 4, 4)[:-1], True)
    ranges, cost = classes.ranges(low, high), np.ones(len(low))
    price = price_of("gaussian")
    laplace, _ = classes.optimise(ranges, cost)
    _, best = classes.optimise(ranges, cost, family="gaussian")
    reused, _ = range_variances(classes._packed[0], ranges, laplace / price.norm(laplace), cost, np.zeros(len(low)))
    assert reused > 1.01 * best


def test_no_other_multipliers_of_marginals_have_less_error() -> None:
    schema = Schema([Ordinal("a", 1, 40), Ordinal("b", 1, 3), Ordinal("c", 1, 9), Nominal("d", ["x", "y"])])
    workload, generator = Marginals(2).natural_workload(schema), np.random.default_rng(2)
    chosen = gaussian_choice(schema, "marginals", workload)
    error = gaussian_error(schema, chosen, workload)
    laplace = Marginals(2).resolve(schema, workload)
    assert isinstance(chosen, Marginals)
    assert chosen.multipliers is not None
    assert gaussian_error(schema, laplace, workload) > 1.01 * error
    for _ in range(60):
        factors = np.exp(generator.normal(0, 0.15, len(chosen.multipliers)))
        moved = tuple(np.rint(1000 * np.array(chosen.multipliers) * factors).astype(int).tolist())
        # Small whole numbers may lose 0.3% of the variance.
        assert gaussian_error(schema, Marginals(2, moved), workload) > error * (1 - 2.5e-3)


def test_no_tree_of_two_inner_levels_has_less_error_than_the_one_that_is_found() -> None:
    schema = Schema([Ordinal("x", 1, 24)])
    workload = Workload.prefixes(schema)
    found = gaussian_error(schema, Tree(refine=False), workload)
    for branching in [(a, b) for a in range(2, 7) for b in range(2, 5) if a * b < 24] + [(a,) for a in range(2, 12)]:
        assert gaussian_error(schema, Tree(branching={"x": branching}, refine=False), workload) > found * (1 - 4e-3)


def test_gaussian_trees_have_smaller_fan_outs() -> None:
    schema = Schema([Ordinal("x", 1, 512)])
    workload = Workload.random_ranges(schema, 500, seed=1)
    laplace, gaussian = Tree(refine=False).resolve(schema, workload), gaussian_choice(schema, "tree", workload)
    assert isinstance(gaussian, Tree)
    assert len(gaussian.branching["x"]) > len(laplace.branching["x"])
    assert gaussian_error(schema, laplace, workload) > 1.1 * gaussian_error(schema, gaussian, workload)


def test_flat_attributes_of_wavelets_are_the_best_of_all_subsets() -> None:
    schema = Schema([Ordinal("a", 1, 30), Ordinal("b", 1, 5), JOBS])
    workload = Workload.random_ranges(schema, 200, seed=3)
    subsets = chain.from_iterable(combinations(schema.names, count) for count in range(4))
    errors = {flat: gaussian_error(schema, Wavelet(flat=flat), workload) for flat in subsets}
    chosen = gaussian_choice(schema, "wavelet", workload)
    assert isinstance(chosen, Wavelet)
    assert gaussian_error(schema, chosen, workload) == pytest.approx(min(errors.values()))
    # Under Laplace noise another set is best.
    assert Wavelet().options(schema, workload)[0].flat != chosen.flat


def test_the_blocks_of_an_adaptive_release_are_the_best_of_those_compared() -> None:
    schema = Schema([Ordinal("a", 1, 16), Ordinal("b", 1, 8)])
    workload = Workload.random_ranges(schema, 100, seed=4)
    grids = [(2**a, 2**b) for a in range(5) for b in range(4)]
    least = min(
        gaussian_error(schema, Adaptive(split=split, parts=parts), workload)
        for split in SPLITS["gaussian"]
        for parts in grids
    )
    assert gaussian_error(schema, Adaptive(), workload) == pytest.approx(least)


@pytest.mark.parametrize("split", SPLITS["gaussian"])
def test_cells_lose_at_most_a_thirtieth_to_the_regions(split: Fraction) -> None:
    schema = Schema([Ordinal("a", 1, 16)])
    adaptive = Plan.design.func(_plan_of(schema, Adaptive(split=split, parts=(1,))))
    cells, _ = adaptive.laws(_plan_of(schema, Adaptive(split=split, parts=(1,))))
    alone = _plan_of(schema, "identity").noise
    assert 1 < cells.variance / alone.variance < (31 / 30) ** 2


def _plan_of(schema: Schema, strategy: Strategy | str) -> Plan:
    workload = Workload.random_ranges(schema, 50, seed=5)
    found = plan(schema, rho=Fraction(1, 100), strategy=strategy, workload=workload)
    return Plan(
        schema, found.strategy, found.operator, found.promise, found.neighbours, found.unit, workload, family="gaussian"
    )


def test_staged_levels_have_the_weights_of_laplace_noise_to_the_power_of_three_quarters() -> None:
    laplace = np.array([7, 4, 4, 4]) / 19
    weights = np.array(gaussian_weights([Fraction(part, 19) for part in (7, 4, 4, 4)]), dtype=np.float64)
    np.testing.assert_allclose(weights, laplace**0.75 / (laplace**0.75).sum(), rtol=2e-3)
    # For the errors c / m² of levels on their own these are the best weights of either price.
    costs = laplace**3
    best, _ = balance_weights(
        lambda w: (float((costs / w**2).sum()), -2 * costs / w**3), np.ones(4), price_of("gaussian")
    )
    np.testing.assert_allclose(weights / np.sqrt(np.square(weights).sum()), best, rtol=2e-3)


def test_a_staged_tree_spends_all_of_rho_on_the_weights_that_its_error_is_planned_with() -> None:
    schema = Schema([Ordinal("a", 1, 64), Ordinal("b", 1, 64)])
    found = plan(schema, rho=Fraction(1, 10), strategy="staged tree")
    (strategy,) = [option.strategy for option in found.candidates if option.family == "gaussian"]
    gaussian = Plan(
        schema, strategy, strategy.operator(schema), found.promise, found.neighbours, found.unit, found.workload,
        family="gaussian",
    )  # fmt: skip
    assert 0.999 < rho_of(gaussian.event) / Fraction(1, 10) <= 1
    planned = shares(gaussian.operator.multipliers)
    noise = np.array([law.variance for law in gaussian.design.laws(gaussian.step_spending)]) ** -0.5
    np.testing.assert_allclose(noise / noise.sum(), planned, rtol=1e-3)


def block_error(level: int, theta: np.ndarray) -> float:
    """The mean variance of prefixes and random ranges inside a block, from weights of its heights, the root first.

    The halves of the root are left out where there is no weight for them.
    """
    size, fanouts = 2**level, [2 ** (level - len(theta) + 2), *[2] * (len(theta) - 3)] if len(theta) > 2 else []
    classes = TreeClasses(levels(size, *fanouts)[:-1], True)
    ends = np.sort(np.random.default_rng(8).integers(0, size, (1000, 2)), axis=1)
    low, high = np.concatenate([np.zeros(size, dtype=np.int64), ends[:, 0]]), np.append(np.arange(size), ends[:, 1])
    cost = np.concatenate([np.full(size, 0.5 / size), np.full(1000, 0.5 / 1000)])
    variances = classes.variances(classes.ranges(low, high), theta)
    return float(cost @ variances)


@pytest.mark.parametrize("level", range(2, 12))
def test_heights_of_a_block_have_near_the_best_shares_of_rho(level: int) -> None:
    generator = np.random.default_rng(9)
    rooted = np.array(shares_with_root(level, "gaussian"), dtype=np.float64)[::-1]
    # Below a node that was measured with as much of rho as there is for the block.
    below = np.array(shares_below(level, "gaussian"), dtype=np.float64)[::-1]
    for shares_of, fixed in ((rooted, []), (below, [1.0])):
        assert shares_of.sum() == pytest.approx(1)
        error = block_error(level, np.sqrt([*fixed, *shares_of]))
        for _ in range(60):
            moved = shares_of * np.exp(generator.normal(0, 0.3, len(shares_of)))
            assert block_error(level, np.sqrt([*fixed, *(moved / moved.sum())])) > error * (1 - 0.015)


def test_shares_of_joint_laplace_noise_would_lose_much_of_gaussian_noise() -> None:
    def error(shares_of: np.ndarray) -> float:
        return block_error(9, np.sqrt(shares_of[::-1] / shares_of.sum()))

    laplace = np.array(shares_with_root(9), dtype=np.float64)
    assert error(laplace**2) > 1.5 * error(np.array(shares_with_root(9, "gaussian"), dtype=np.float64))


def prefix_gram(size: int) -> np.ndarray:
    prefixes = np.tril(np.ones((size, size)))
    return prefixes.T @ prefixes / size


def matched_error(axis: MatchedAxis | FlatAxis, gram: np.ndarray) -> float:
    rows = axis.apply(np.eye(axis.size, dtype=np.int64)).T.astype(np.float64)
    return float(np.trace(np.linalg.inv(rows.T @ rows) @ gram)) * axis.largest_square


@pytest.mark.parametrize("size", [16, 64, 256])
def test_rows_matched_to_prefixes_err_no_more_than_the_square_root_of_their_matrix(size: int) -> None:
    # The factorisation into square roots is within a constant of the best there is (Henzinger, Upadhyay and others).
    coefficients = np.cumprod([1.0, *((2 * k - 1) / (2 * k) for k in range(1, size))])
    mean = float(((size - np.arange(size)) * coefficients**2).sum()) / size
    axis = match_axis(prefix_gram(size), family="gaussian")
    assert matched_error(axis, prefix_gram(size)) < mean * float((coefficients**2).sum()) * 1.01


def test_matched_columns_have_one_length_and_no_change_of_rows_lowers_the_error() -> None:
    gram, generator = prefix_gram(24), np.random.default_rng(6)
    axis = match_axis(gram, family="gaussian")
    assert isinstance(axis, MatchedAxis)
    rows = axis.apply(np.eye(24, dtype=np.int64)).T.astype(np.float64)
    norms = np.sqrt(np.square(rows).sum(axis=0))
    assert norms.min() > 0.999 * norms.max()
    error = matched_error(axis, gram)
    for size in (0.01, 0.05, 0.2):
        for _ in range(50):
            moved = rows * np.exp(generator.normal(0, size, rows.shape))
            moved /= np.sqrt(np.square(moved).sum(axis=0))
            assert np.trace(np.linalg.inv(moved.T @ moved) @ gram) > error * (1 - 2e-3)


def test_rows_matched_for_laplace_noise_cost_more_under_gaussian_noise() -> None:
    gram = prefix_gram(64)
    assert matched_error(match_axis(gram), gram) > 1.1 * matched_error(match_axis(gram, family="gaussian"), gram)


def test_slopes_of_normed_columns_are_those_of_differences() -> None:
    design, moments = hat_design(12, (4, 2), "gaussian"), DenseMoments(prefix_gram(12))
    generator = np.random.default_rng(7)
    own, entries = generator.uniform(0.1, 1, len(design.own)), generator.uniform(0.1, 1, len(design.entries))
    _, own_slopes, entry_slopes = _logarithm_and_slopes(design, own, entries, moments)

    def value(place: int, step: float, is_own: bool) -> float:
        moved_own, moved = own.copy(), entries.copy()
        (moved_own if is_own else moved)[place] += step
        return _logarithm_and_slopes(design, moved_own, moved, moments)[0]

    for place in range(12):
        for slopes, is_own in ((own_slopes, True), (entry_slopes, False)):
            difference = (value(place, 1e-6, is_own) - value(place, -1e-6, is_own)) / 2e-6
            assert slopes[place] == pytest.approx(difference, rel=1e-4, abs=1e-7)


@pytest.mark.parametrize("column_norm", [3, 20, 4000])
def test_rounded_columns_are_never_longer_than_asked(column_norm: int) -> None:
    design: Design = hat_design(20, (5, 1), "gaussian")
    axis = round_design(design, column_norm)
    assert axis.largest_square <= column_norm**2
    assert axis.largest_square > (column_norm - 2) ** 2
