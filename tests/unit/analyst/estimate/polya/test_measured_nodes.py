"""Which releases the posterior can read, and that every measured value reaches the node that it counts."""

import dataclasses

import numpy as np
import pytest

from support.releases import release_of
from support.staged_trees import refined_release
from support.tree_strategies import PlainTree, tree_release
from veilcube.analyst.estimate.polya.posterior import Posterior, has_measured_tree, measured_tree
from veilcube.curator.cube import Cube
from veilcube.curator.ledger import Receipt
from veilcube.curator.mechanisms import LinearMechanism
from veilcube.errors import QueryError, ReleaseFileError
from veilcube.operators import NodeCounts
from veilcube.planner import Identity, Strategy, Tree, plan
from veilcube.polya_tree import MeasuredTree
from veilcube.query import Workload
from veilcube.record import NoisyMeasurement, ReleaseRecord
from veilcube.schema import Nominal, Ordinal, Schema

LINE = Schema([Ordinal("a", 1, 37)])
PLANE = Schema([Ordinal("a", 1, 5), Ordinal("b", 1, 7)])
JOBS = Schema([Nominal("job", hierarchy={"Care": ["Nurse", "Aide", "Cook"], "Law": ["Judge"], "Tech": ["Dev", "Ops"]})])


def noiseless(schema: Schema, counts: np.ndarray, strategy: Strategy) -> ReleaseRecord:
    chosen = plan(schema, 1, strategy)
    claim = LinearMechanism().claim(chosen)
    measured = LinearMechanism().measure(
        Cube(schema, counts), chosen, Receipt.uncharged(claim), lambda scale, shape: np.zeros(shape, dtype=np.int64)
    )
    return ReleaseRecord(schema, claim, measured, {}, "2026-01-01T00:00:00+00:00", "test")


def check_values(measured: MeasuredTree, counts: np.ndarray) -> None:
    """Every value without noise is the sum of the cells of its node."""
    in_order = counts.ravel()[measured.tree.order]
    starts, ends = measured.spans()
    for v in range(measured.left.size):
        for m in range(measured.first[v], measured.first[v + 1]):
            assert measured.values[m] == pytest.approx(in_order[starts[v] : ends[v]].sum())


@pytest.mark.parametrize(
    ("schema", "strategy"),
    [
        (LINE, PlainTree(2)),
        (LINE, PlainTree(3)),
        (LINE, PlainTree(7)),
        (LINE, Tree(branching=[3, 5], weights=["1/2", "1/6", "1/6", "1/6"], refine=False)),
        (LINE, Tree(branching=4, refine=False)),
        (JOBS, Tree(branching="hierarchy", weights=["1/6", "1/2", "1/3"], refine=False)),
        (LINE, Identity()),
        (PLANE, Identity()),
        (JOBS, Identity()),
    ],
)
def test_every_measurement_of_a_tree_over_one_attribute_reaches_its_node(schema: Schema, strategy: Strategy) -> None:
    counts = np.random.default_rng(3).integers(0, 90, size=schema.shape)
    record = noiseless(schema, counts, strategy)
    assert has_measured_tree(record)
    measured = measured_tree(record)
    assert measured.values.size == record.measurements[0].values.size
    check_values(measured, counts)
    shares = float(record.measurements[0].noise.scale) / measured.scales
    np.testing.assert_allclose(shares, np.rint(shares))  # scales are divided by whole multipliers
    if isinstance(strategy, Identity):
        np.testing.assert_allclose(shares, 1)


def test_scales_are_divided_by_the_multipliers_of_their_levels() -> None:
    strategy = Tree(branching=[4], weights=["1/2", "1/3", "1/6"], refine=False)
    record = noiseless(LINE, np.ones(37, dtype=np.int64), strategy)
    measured = measured_tree(record)
    scale = float(record.measurements[0].noise.scale)
    root = slice(measured.first[0], measured.first[1])
    np.testing.assert_allclose(measured.scales[root], scale / 3)
    assert sorted(set(np.rint(scale / measured.scales))) == [1, 2, 3]


def test_products_of_trees_over_several_attributes_are_refused_with_the_names_of_those_that_can() -> None:
    release = tree_release(PLANE, np.ones(PLANE.shape, dtype=np.int64), 3)
    assert not has_measured_tree(release.record)
    with pytest.raises(QueryError, match="cannot read this release; use one of best, least_squares"):
        release.answer(Workload.prefixes(PLANE), estimator="posterior")


def test_cubes_with_too_many_cells_are_refused() -> None:
    schema = Schema([Ordinal("a", 1, 2**18 + 1)])
    assert not Posterior().can_read(noiseless(schema, np.zeros(schema.shape, dtype=np.int64), Identity()))


def deep_hierarchy() -> dict:
    spec: dict = {"last": ["x", "y"]}
    for number in range(27):
        spec = {f"group {number}": [f"value {number}", spec]}
    return spec


@pytest.mark.parametrize("strategy", [Identity(), Tree(branching="hierarchy", refine=False)])
def test_hierarchies_deeper_than_the_posterior_can_halve_are_refused(strategy: Strategy) -> None:
    schema = Schema([Nominal("job", hierarchy=deep_hierarchy())])
    counts = np.ones(schema.shape, dtype=np.int64)
    assert not Posterior().can_read(noiseless(schema, counts, strategy))
    wide = Schema([Nominal(name, hierarchy=deep_hierarchy()) for name in "abc"])
    assert not Posterior().can_read(release_of(wide, np.ones(wide.shape, dtype=np.int64)).record)


def test_a_refined_release_that_lacks_some_nodes_is_refused() -> None:
    record = refined_release(LINE, np.full(37, 9), epsilon=1, seed=2).record
    assert has_measured_tree(record)
    part = record.measurements[0]
    fewer = NodeCounts(part.operator.tree, part.operator.level, part.operator.rows - 1, part.operator.chosen[1:])
    lacking = dataclasses.replace(record, measurements=(NoisyMeasurement(fewer, part.values[1:].copy(), part.noise),))
    assert not has_measured_tree(lacking)


def test_refined_releases_of_two_different_trees_are_refused() -> None:
    square = Schema([Ordinal("a", 1, 8)])
    one, other = (refined_release(square, np.full(8, 9), seed=seed).record for seed in (1, 2))
    with pytest.raises(ReleaseFileError, match="declares less"):
        dataclasses.replace(one, measurements=one.measurements + other.measurements)
    tree = type(other.measurements[0].operator.tree)
    stretched = tree((dataclasses.replace(other.measurements[0].operator.tree.axes[0], bits=4),))
    foreign = [
        NoisyMeasurement(
            NodeCounts(stretched, part.operator.level, part.operator.rows, np.arange(part.operator.rows)),
            part.values,
            part.noise,
        )
        for part in other.measurements
    ]
    with pytest.raises(ReleaseFileError, match="another tree"):
        dataclasses.replace(one, measurements=(*one.measurements, *foreign))
