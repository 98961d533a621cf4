import numpy as np
import pytest

from veilcube.errors import PlanError
from veilcube.operators import FlatAxis, ProductOperator
from veilcube.operators.base.axis import AxisOperator
from veilcube.operators.matched.axis import MatchedAxis
from veilcube.operators.tree.axis import tree_axis
from veilcube.planner.matched import strategy as matched
from veilcube.planner.matched.gram import DenseMoments, RangeMoments, WorkloadBlocks
from veilcube.planner.matched.search import expected_error, hat_design, refine, search, set_design
from veilcube.planner.matched.strategy import Matched, match_axis, matched_strategies, round_design
from veilcube.query import Workload
from veilcube.schema import Nominal, Ordinal, Schema


def error(axes: tuple[AxisOperator, ...], workload: Workload) -> float:
    """Return the root mean expected squared error at epsilon 0.1, continuous noise, one row more or less."""
    operator = ProductOperator(axes, workload.schema.names)
    units = operator.variance_of_rectangles(workload.low, workload.high)
    for row, region in workload.regions.items():
        units[row] = operator.variance_of_region(region)
    return float(np.sqrt(2 * units.mean()) * operator.sensitivity("add-remove") / 0.1)


def line(size: int) -> Schema:
    return Schema([Ordinal("x", 1, size)])


def mixed_workload() -> Workload:
    schema = Schema([Ordinal("x", 1, 9), Nominal("c", list("abcde"))])
    return Workload(
        schema,
        [{"x": (2, 5)}, {"c": ["a", "c"]}, {"x": (1, 1), "c": ["b", "e"]}, {"x": (3, 9), "c": "d"}, {"c": ["a", "c"]}],
    )


def test_second_moments_equal_the_weighted_sum_of_outer_products() -> None:
    workload = mixed_workload()
    blocks = WorkloadBlocks.of(workload)
    weights = np.array([1.0, 2.0, 0.5, 3.0, 1.5])
    # Queries with gaps stand after the others.
    order = [0, 3, 1, 2, 4]
    for axis, queries in enumerate(blocks.axes):
        masks = []
        for row in order:
            mask = np.zeros(queries.size)
            mask[workload.low[row, axis] : workload.high[row, axis] + 1] = 1.0
            masks.append(workload.regions[row].boxes[0].mask(axis) if row in workload.regions else mask)
        expected = sum(weight * np.outer(mask, mask) for weight, mask in zip(weights, masks, strict=True))
        np.testing.assert_allclose(queries.gram(weights), expected / weights.sum(), atol=1e-12)


@pytest.mark.parametrize("size", [1, 2, 30, 200])
def test_ranges_give_the_same_moments_as_the_matrix_written_out(size: int) -> None:
    rng = np.random.default_rng(size)
    queries = WorkloadBlocks.of(Workload.random_ranges(line(size), 4 * size, seed=size)).axes[0]
    weights = rng.random(4 * size)
    ranges, written = queries.moments(weights), DenseMoments(queries.gram(weights))
    assert isinstance(ranges, RangeMoments)
    np.testing.assert_allclose(ranges.diagonal, written.diagonal, atol=1e-12)
    assert ranges.both_ends == pytest.approx(written.both_ends)
    design = hat_design(size, (size // 5 + 2, 1))
    found = ranges.spread(design.own, design.columns, design.shared)
    expected = written.spread(design.own, design.columns, design.shared)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9 * expected.max())


def test_more_ranges_than_pay_are_written_out() -> None:
    queries = WorkloadBlocks.of(Workload.random_ranges(line(60), 20_000, seed=7)).axes[0]
    assert isinstance(queries.moments(np.ones(20_000)), DenseMoments)


def test_variances_of_blocks_multiply_to_those_of_the_product() -> None:
    workload = mixed_workload()
    blocks = WorkloadBlocks.of(workload)
    axes = (round_design(hat_design(9, (3, 1)), 50), round_design(set_design(np.eye(2, 5) > 0), 20))
    operator = ProductOperator(axes, ("x", "c"))
    expected = operator.variance_of_rectangles(workload.low, workload.high)
    for row, region in workload.regions.items():
        expected[row] = operator.variance_of_region(region)
    found = blocks.axes[0].variances(axes[0]) * blocks.axes[1].variances(axes[1])
    np.testing.assert_allclose(found, expected[[0, 3, 1, 2, 4]] * operator.sensitivity("add-remove") ** 2)


def test_rounding_keeps_the_error_and_makes_all_columns_sum_alike() -> None:
    workload = Workload.prefixes(line(300))
    moments = WorkloadBlocks.of(workload).axes[0].moments(np.ones(300))
    design = refine(hat_design(300, (20, 3)), moments, 20)
    smooth = np.sqrt(2 * expected_error(design, moments)) / 0.1
    for column_sum, tolerance in ((4000, 1e-4), (256, 0.01)):
        axis = round_design(design, column_sum)
        assert set(axis.column_sums().tolist()) == {column_sum}
        assert error((axis,), workload) == pytest.approx(smooth, rel=tolerance)


def test_rounding_leaves_each_cell_a_row_of_its_own_however_coarse() -> None:
    # Three rows of 0.74 each round to 1, which would leave the cells nothing of a column sum of 3.
    axis = round_design(set_design(np.ones((3, 4), dtype=np.bool_)), 3)
    assert isinstance(axis, MatchedAxis)
    assert axis.own.tolist() == [1, 1, 1, 1]
    assert round_design(hat_design(20, (5,)), 1) == FlatAxis(20)


@pytest.mark.parametrize("kind", ["prefixes", "random ranges"])
def test_one_axis_beats_every_tree_of_equal_weights_clearly(kind: str) -> None:
    schema = line(256)
    workload = Workload.prefixes(schema) if kind == "prefixes" else Workload.random_ranges(schema, 3000, seed=1)
    trees = [error((tree_axis(256, fanout),), workload) for fanout in (2, 4, 8, 16)]
    assert error(matched_strategies(schema, workload)[0].axes, workload) < 0.85 * min(trees)


def test_prefixes_of_256_cells_come_within_two_percent_of_dense_optimisation() -> None:
    # 73.7: 600 steps of L-BFGS on all entries of 288 dense rows, from a random start.
    workload = Workload.prefixes(line(256))
    assert error(matched_strategies(line(256), workload)[0].axes, workload) < 73.7 * 1.02


def test_a_product_beats_identity_and_products_of_trees() -> None:
    schema = Schema([Ordinal("x", 1, 64), Ordinal("y", 1, 40)])
    workload = Workload.random_ranges(schema, 1000, seed=2)
    others = [error((tree_axis(64, b), tree_axis(40, b)), workload) for b in (4, 8, 16)]
    others.append(error((FlatAxis(64), FlatAxis(40)), workload))
    assert error(matched_strategies(schema, workload)[0].axes, workload) < 0.7 * min(others)


def test_queries_with_gaps_and_unions_are_matched_too() -> None:
    schema = Schema([Ordinal("x", 1, 30), Nominal("c", list("abcdefgh"))])
    workload = Workload.from_sql(schema, ["x <= 10 OR c IN ('a', 'c')", "c IN ('a', 'c', 'h')", "x > 20"])
    flat = error((FlatAxis(30), FlatAxis(8)), workload)
    assert error(matched_strategies(schema, workload)[0].axes, workload) < 0.5 * flat


def test_attributes_of_one_cell_stay_flat() -> None:
    schema = Schema([Nominal("one", ["only"]), Ordinal("x", 1, 30)])
    axes = matched_strategies(schema, Workload.prefixes(schema))[0].axes
    assert axes[0] == FlatAxis(1)
    assert isinstance(axes[1], MatchedAxis)


def test_many_attributes_leave_room_for_the_counts_in_64_bits() -> None:
    schema = Schema([Ordinal(name, 1, 12) for name in "abcdef"])
    operator = matched_strategies(schema, Workload.random_ranges(schema, 200, seed=3))[0].operator(schema)
    assert operator.sensitivity("add-remove") <= 2**32


def test_a_search_is_remembered_by_what_the_workload_asks() -> None:
    schema = line(100)
    first = matched_strategies(schema, Workload.prefixes(schema))[0]
    assert matched_strategies(schema, Workload.prefixes(schema))[0] is first
    assert matched_strategies(schema, Workload.random_ranges(schema, 50, seed=4))[0] is not first


def test_only_the_last_few_searches_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matched, "MOST_REMEMBERED", 2)
    monkeypatch.setattr(matched, "_REMEMBERED", {})
    found = [matched_strategies(line(size), Workload.prefixes(line(size)))[0] for size in (5, 6, 7)]
    assert list(matched._REMEMBERED.values()) == found[1:]


def test_the_strategy_describes_itself_and_refuses_another_schema() -> None:
    schema = line(100)
    strategy = matched_strategies(schema, Workload.prefixes(schema))[0]
    assert strategy.name == "matched"
    shared = strategy.operator(schema).measurement_shape[0] - 100
    assert strategy.to_dict() == {"name": "matched", "shared_rows": [shared]}
    with pytest.raises(PlanError, match="other attributes"):
        strategy.operator(line(99))


def test_axes_beyond_the_limit_are_refused_with_the_limit() -> None:
    schema = line(5000)
    with pytest.raises(PlanError, match="at most 4096 cells and 'x' has 5000, so none was searched"):
        matched_strategies(schema, Workload.random_ranges(schema, 10, seed=5))
    with pytest.raises(PlanError, match="square matrix"):
        match_axis(np.ones((3, 4)))


def test_workloads_of_another_schema_or_without_cells_are_refused() -> None:
    with pytest.raises(PlanError, match="another schema"):
        matched_strategies(line(10), Workload.prefixes(line(11)))
    with pytest.raises(PlanError, match="every query of the workload is empty"):
        matched_strategies(line(10), Workload.from_sql(line(10), ["x = 3 AND x = 4"]))


def test_a_matched_strategy_of_flat_axes_is_the_identity() -> None:
    strategy = Matched((FlatAxis(3),))
    assert strategy.operator(line(3)).sensitivity("add-remove") == 1


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "bar"), [("prefixes", 141.4), ("random ranges", 174.4)])
def test_4096_cells_are_answered_no_worse_than_by_hdmm(kind: str, bar: float) -> None:
    schema = line(4096)
    if kind == "prefixes":
        workload = Workload.prefixes(schema)
        found = error(matched_strategies(schema, workload)[0].axes, workload)
    else:
        low, high = np.triu_indices(4096)
        table = np.zeros((4096, 4096))
        table[low, high] = 1.0 / (4096 * (4096 - (high - low)))
        held = np.cumsum(np.cumsum(table, axis=0)[:, ::-1], axis=1)[:, ::-1]
        gram = np.triu(held) + np.triu(held, 1).T
        axis = match_axis(gram)
        found = float(np.sqrt(2 * axis.variance_of_ranges(low, high) @ table[low, high]) * 4000 / 0.1)
    assert found <= bar
    assert found < 0.9 * bar


def test_search_ends_in_a_design_no_worse_than_the_identity() -> None:
    rng = np.random.default_rng(6)
    for size in (2, 3, 5, 17):
        queries = rng.random((30, size)) < 0.5
        gram = queries.T.astype(np.float64) @ queries
        moments = DenseMoments(gram)
        assert expected_error(search(moments, queries[:4], 10), moments) <= np.trace(gram) * (1 + 1e-12)
