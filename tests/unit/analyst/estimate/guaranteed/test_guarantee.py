"""Guaranteed intervals hold whatever the data are, also where noise is narrow and data are hostile to the prior."""

from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from support.releases import gaussian_release_of, release_of
from support.seeded import SeededWords
from veilcube.analyst.estimate.guaranteed.gaussian_blocks import GaussianReach
from veilcube.analyst.estimate.guaranteed.guarantee import Guarantee, JointReach
from veilcube.curator.sampling import joint_laplace
from veilcube.errors import QueryError
from veilcube.laws.noise import DiscreteLaplace, JointLaplace
from veilcube.laws.summed_noise import half_widths
from veilcube.operators import HalvingTree, NodeCounts
from veilcube.planner import Adaptive, Tree
from veilcube.query import Workload
from veilcube.record import JointBlocks, NoisyMeasurement
from veilcube.schema import Ordinal, Schema

LINE = Schema([Ordinal("x", 0, 255)])
PLANE = Schema([Ordinal("x", 0, 15), Ordinal("y", 0, 15)])


def spiky(schema: Schema) -> NDArray[np.int64]:
    counts = np.zeros(schema.shape, dtype=np.int64)
    counts.reshape(-1)[: schema.cells // 2] = 50
    counts.reshape(-1)[-5] = 3
    counts.reshape(-1)[-90] = 400
    return counts


def joint_parts(tree: HalvingTree, root: int, scales: list[Fraction]) -> list[NoisyMeasurement]:
    """Measure one block without noise or counts; scales by height, the cells' first."""
    parts = []
    for level in range(len(scales) - 1, -1, -1):
        chosen = np.arange(root << (len(scales) - 1 - level), (root + 1) << (len(scales) - 1 - level))
        operator = NodeCounts(tree, level, chosen.size, chosen)
        parts.append(NoisyMeasurement(operator, np.zeros(chosen.size, np.int64), JointLaplace(scales[level])))
    return parts


def test_the_reach_of_joint_noise_is_the_narrower_of_two_bounds() -> None:
    tree = HalvingTree.of(Schema([Ordinal("x", 0, 7)]))
    scales = [Fraction(7), Fraction(5), Fraction(3)]
    joint = JointReach.of(joint_parts(tree, 0, scales), np.arange(8))
    drawn = joint_laplace(scales, 100_000, source=SeededWords(2))

    def least(scale: int, missed: float) -> int:
        beyond = 2 - 2 * np.cumsum(DiscreteLaplace(Fraction(scale)).pmf(np.arange(-400, 401)))[400:]
        return int(np.argmax(beyond <= missed))  # the first w with P(|x| > w) <= missed

    for cells, nodes in [((0,), [7]), ((0, 1), [5]), ((0, 1, 2, 3), [3]), ((1, 2, 3), [7, 5]), ((0, 2), [7, 7])]:
        is_in = np.isin(np.arange(8), cells)[None, :]
        variance = drawn[:, cells].sum(axis=1).var()
        assert joint.variance(is_in)[0] == pytest.approx(1.01 * variance, rel=0.03)
        for missed in (0.3, 0.01, 1e-6):
            filled = sum(least(scale, missed / len(nodes)) for scale in nodes)
            found = float(joint.reach(is_in, joint.variance(is_in), missed)[0])
            bounds = (min(filled, np.sqrt(0.97 * variance / missed)), filled + len(nodes))
            assert bounds[0] <= found <= bounds[1]
            assert np.mean(np.abs(drawn[:, cells].sum(axis=1)) > found) <= missed + 0.005
    others = np.isin(np.arange(8), [4, 5])[None, :]  # they were measured in another way
    assert joint.reach(others, joint.variance(others), 0.1)[0] == 0.0


def test_least_squares_on_gaussian_blocks_is_that_of_a_matrix_with_its_variance() -> None:
    random = np.random.default_rng(4)
    parameters = [Fraction(7), Fraction(5), Fraction(3), Fraction(11)]
    values = tuple(random.integers(-9, 60, (2, 8 >> height)) for height in range(4))
    reach = GaussianReach.of([JointBlocks(np.array([0, 8]), tuple(parameters), True, values)], np.arange(16))
    rows = np.concatenate([np.kron(np.eye(8 >> height), np.ones(2**height)) for height in range(4)])
    precision = np.concatenate([np.full(8 >> height, 1 / float(parameters[height])) for height in range(4)])
    covariance = np.linalg.inv(rows.T @ (precision[:, None] * rows))
    ((places, cells),) = reach.cells()
    for block in range(2):
        measured = np.concatenate([one[block] for one in values])
        np.testing.assert_allclose(cells[block], covariance @ rows.T @ (precision * measured))
    np.testing.assert_array_equal(places.ravel(), np.arange(16))
    is_in = random.random((5, 16)) < 0.4
    expected = [sum(query[part] @ covariance @ query[part] for part in np.s_[:8, 8:]) for query in is_in.astype(float)]
    np.testing.assert_allclose(reach.variance(is_in), expected, rtol=1e-6)


def test_guaranteed_intervals_of_rich_lines_with_gaussian_noise_are_near_those_of_least_squares() -> None:
    schema = Schema([Ordinal("x", 0, 1023)])
    asked = Workload.random_ranges(schema, 50, seed=1)
    exact = 800 * (asked.high - asked.low + 1)[:, 0]
    staged = gaussian_release_of(schema, np.full(1024, 800), "1/2", 3, Tree(refine=True))
    assert any(part.noise.in_block for part in staged.record.measurements)
    sure = staged.answer(asked, interval="guaranteed")
    assert np.mean((sure.low <= exact) & (exact <= sure.high)) >= 0.95
    plain = gaussian_release_of(schema, np.full(1024, 800), "1/2", 3, Tree(refine=False))
    widths = [np.mean(one.high - one.low) for one in (sure, plain.answer(asked, estimator="least_squares"))]
    assert widths[0] < 2 * widths[1]


def test_guaranteed_intervals_under_gaussian_noise_hold_on_data_that_are_hostile_to_the_prior() -> None:
    for schema in (LINE, PLANE):
        asked = Workload.random_ranges(schema, 40, seed=2)
        blocks = (tuple(map(slice, *ends)) for ends in zip(asked.low, asked.high + 1, strict=True))
        exact = np.array([spiky(schema)[block].sum() for block in blocks])
        held = []
        for seed in range(25):
            release = gaussian_release_of(schema, spiky(schema), "1/50", seed, Tree(refine=True))
            answers = release.answer(asked, interval="guaranteed")
            held.append(np.mean((answers.low <= exact) & (exact <= answers.high)))
        assert np.mean(held) >= 0.95


def test_scales_that_no_grid_holds_are_bounded() -> None:
    tree = HalvingTree.of(Schema([Ordinal("x", 0, 7)]))
    for scales in ([Fraction(2**100), Fraction(1, 2**60)], [Fraction(1, 2**60), Fraction(2**100), Fraction(3)]):
        joint = JointReach.of(joint_parts(tree, 0, scales), np.arange(8))
        one, all_cells = np.isin(np.arange(8), [0]), np.arange(8) < 2 ** (len(scales) - 1)
        found = [
            float(joint.reach(cells[None, :], joint.variance(cells[None, :]), 0.05)[0]) for cells in (one, all_cells)
        ]
        assert found[0] >= scales[0] // 1  # noise of a scale below one is nearly always zero
        assert found[1] >= scales[-1] // 1
        assert np.isfinite(found).all()


def test_guaranteed_intervals_of_rich_lines_are_not_far_from_those_of_least_squares() -> None:
    schema = Schema([Ordinal("x", 0, 1023)])
    release = release_of(schema, np.full(1024, 800), 1, 3, Tree())
    for low, high in ((3, 9), (1, 700), (0, 1023), (17, 1001)):
        answer = release.count(x=(low, high), interval="guaranteed")
        assert answer.low <= 800 * (high - low + 1) <= answer.high
        assert answer.high - answer.low < 200  # independent noise of every cell would need 60 times its square root


def test_a_cell_within_a_node_that_stopped_lies_below_the_upper_end_of_the_node() -> None:
    counts = np.zeros(256, dtype=np.int64)
    counts[77] = 150
    held = [
        release_of(LINE, counts, "1/10", seed, Tree()).count(x=77, interval="guaranteed").high >= 150
        for seed in range(40)
    ]
    assert np.mean(held) >= 0.9


def test_blocks_and_regions_of_the_same_cells_have_the_same_interval() -> None:
    release = release_of(PLANE, spiky(PLANE), "1/2", 5, Tree())
    block = release.answer(Workload(PLANE, [{"x": (2, 9), "y": (0, 7)}]), interval="guaranteed")
    region = release.count("x BETWEEN 2 AND 9 AND y BETWEEN 0 AND 7", interval="guaranteed")
    assert (block.low[0], block.high[0]) == pytest.approx((region.low, region.high))


def test_a_linear_release_guarantees_the_interval_of_least_squares() -> None:
    release = release_of(LINE, spiky(LINE), "1/2", 5)
    plain = release.count(x=(10, 90), estimator="least_squares")
    sure = release.count(x=(10, 90), estimator="least_squares", interval="guaranteed")
    assert (sure.low, sure.high) == (max(plain.low, 0), max(plain.high, 0))


def test_no_other_kind_of_interval_and_no_groups_are_accepted() -> None:
    release = release_of(LINE, spiky(LINE), "1/2", 5, Tree())
    with pytest.raises(QueryError, match="'calibrated' or 'guaranteed'"):
        release.count(x=3, interval="certain")
    with pytest.raises(QueryError, match="GROUP BY"):
        release.count("SELECT x, COUNT(*) FROM t GROUP BY x", interval="guaranteed")
    assert isinstance(Guarantee(release.record), Guarantee)


def test_chosen_regions_are_guaranteed_by_the_cells_alone() -> None:
    schema = Schema([Ordinal("age", 0, 31), Ordinal("hours", 0, 31)])
    counts = np.full((32, 32), 20)
    grown = release_of(schema, counts, "1/2", 1, Adaptive(partition="grow", split=0.5))
    cells = grown.record.measurements[0]
    answer = grown.count(age=(0, 3), interval="guaranteed")
    assert answer.high - answer.low == pytest.approx(2 * float(half_widths(cells.noise, np.array([128]), 0.95)[0]))
    blocks = release_of(schema, counts, "1/2", 1, Adaptive(partition="blocks", split=0.5))
    assert blocks.count(age=(0, 3), interval="guaranteed").stddev == pytest.approx(
        blocks.count(age=(0, 3), estimator="least_squares").stddev
    )
