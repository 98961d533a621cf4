"""Shrunken estimates: smoothing, blending, and what they never do."""

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.ndimage import correlate1d

import veilcube as vc
from support.releases import release_of
from veilcube.analyst.estimate.partition import shrunken
from veilcube.analyst.estimate.partition.blending import Blend, Blends, Evidence, least_risk
from veilcube.analyst.estimate.partition.multiscale import CURVED, PLAIN, Smoother, detail_variances
from veilcube.analyst.estimate.partition.shrunken import queries_of_size, sample_boxes
from veilcube.errors import CapacityError
from veilcube.operators import RegionCounts
from veilcube.query import read_query
from veilcube.schema import Region
from veilcube.schema.region import Box

SCHEMA = vc.Schema([vc.Ordinal("age", 0, 47), vc.Ordinal("hours", 0, 63)])
ROWS, COLUMNS = np.mgrid[0:48, 0:64]
SMOOTH = np.rint(150 * np.exp(-(((ROWS - 20) / 14) ** 2) - ((COLUMNS - 30) / 20) ** 2)).astype(np.int64)
ROUGH = np.random.default_rng(0).integers(0, 400, (48, 64))


def errors(counts: NDArray[np.int64], queries: vc.Workload, strategy: object, estimator: str) -> float:
    """Return the mean absolute error over some releases."""
    truth = np.array([
        counts[tuple(slice(a, b + 1) for a, b in zip(low, high, strict=True))].sum()
        for low, high in zip(queries.low, queries.high, strict=True)
    ])  # fmt: skip
    found = [release_of(SCHEMA, counts, 0.2, seed, strategy).answer(queries, estimator=estimator) for seed in range(6)]
    return float(np.mean([np.abs(answers.value - truth).mean() for answers in found]))


def cells_and_small_ranges() -> tuple[vc.Workload, vc.Workload]:
    rng = np.random.default_rng(1)
    first = rng.integers(0, SCHEMA.shape, (800, 2))
    low = rng.integers(0, (42, 57), (800, 2))
    return vc.Workload.ranges(SCHEMA, first, first), vc.Workload.ranges(SCHEMA, low, low + np.array([2, 3]))


def test_smooth_tables_are_answered_far_better_than_by_the_identity() -> None:
    for queries in cells_and_small_ranges():
        ours = errors(SMOOTH, queries, vc.Adaptive(), "shrunken")
        assert ours <= 0.65 * errors(SMOOTH, queries, "identity", "least_squares")


def test_rough_tables_are_answered_almost_as_well_as_by_the_identity() -> None:
    for queries in cells_and_small_ranges():
        ours = errors(ROUGH, queries, vc.Adaptive(), "shrunken")
        assert ours <= 1.08 * errors(ROUGH, queries, "identity", "least_squares")


@pytest.mark.parametrize("partition", ["blocks", "grow", "kd"])
def test_releases_survive_their_file_and_answer_everything(partition: str, tmp_path: Path) -> None:
    release = vc.release(vc.Cube(SCHEMA, SMOOTH), 1, vc.Adaptive(partition=partition, split=0.5))
    release.save(tmp_path / "people.veil")
    again = vc.open(tmp_path / "people.veil")
    for estimator in ("best", "shrunken", "least_squares"):
        for question in ({"age": (3, 20)}, "age = 3 OR hours = 7", {}):
            answer = again.count(question, estimator=estimator) if isinstance(question, str) else again.count(
                **question, estimator=estimator
            )  # fmt: skip
            assert answer.low <= answer.value <= answer.high
        assert again.marginal("age", estimator=estimator).value.sum() == pytest.approx(SMOOTH.sum(), rel=0.05)
    assert again.to_xarray().shape == (48, 64)


def test_kept_totals_make_large_answers_those_of_least_squares() -> None:
    release = release_of(SCHEMA, SMOOTH, 0.5, 3, vc.Adaptive(split=0.5, side=16))
    plain, ours = (release.count(estimator=name).value for name in ("least_squares", "shrunken"))
    assert ours == pytest.approx(plain, rel=0.02)


@pytest.mark.parametrize("partition", ["blocks", "grow", "kd"])
def test_whole_regions_keep_the_interval_of_least_squares(partition: str) -> None:
    release = release_of(SCHEMA, SMOOTH, 0.2, 3, vc.Adaptive(partition=partition))
    operator = release.record.measurements[1].operator
    assert isinstance(operator, RegionCounts)
    for label in range(min(operator.regions, 30)):
        region = region_of(operator.chosen == label)
        plain, blended = (release.count(region, estimator=name) for name in ("least_squares", "shrunken"))
        assert blended.high - blended.low >= (plain.high - plain.low) * (1 - 1e-9)


def region_of(mask: NDArray[np.bool_]) -> Region:
    rows = [np.arange(len(mask)) == row for row in np.flatnonzero(mask.any(axis=1))]
    return Region(mask.shape, tuple(Box(mask.shape, (row, mask[row][0])) for row in rows))


def test_marginals_over_chosen_regions_are_no_surer_than_the_same_questions_alone() -> None:
    release = release_of(SCHEMA, SMOOTH, 0.2, 4, vc.Adaptive(partition="grow"))
    table = release.marginal("age", estimator="least_squares")
    for age in (0, 17, 47):
        alone, together = release.count(age=age, estimator="least_squares"), table[age]
        assert together.high - together.low >= 0.99 * (alone.high - alone.low)


@pytest.mark.parametrize("smoother", [PLAIN, CURVED], ids=["plain", "curved"])
def test_details_of_noise_have_the_variance_that_is_taken_off(smoother: Smoother) -> None:
    noise = np.random.default_rng(2).normal(size=(400, 400))
    for scale, expected in enumerate(detail_variances(smoother.taps, 3, 2)):
        spaced = np.zeros((len(smoother.taps) - 1) * 2**scale + 1)
        spaced[:: 2**scale] = smoother.taps
        coarser = correlate1d(correlate1d(noise, spaced, axis=0, mode="reflect"), spaced, axis=1, mode="reflect")
        assert np.var(noise - coarser) == pytest.approx(expected, rel=0.1)
        noise = coarser


def test_smoothing_agrees_with_scipy_without_shrinking() -> None:
    cells = np.random.default_rng(3).normal(size=(20, 30))
    everything_is_signal = PLAIN(cells, 0.0, (True, True))
    np.testing.assert_allclose(everything_is_signal, cells)
    everything_is_noise = PLAIN(cells, 1e9, (True, False))
    smoothed = cells
    for scale in range(3):
        taps = np.zeros(2 * 2**scale + 1)
        taps[[0, 2**scale, -1]] = PLAIN.taps
        smoothed = correlate1d(smoothed, taps, axis=0, mode="reflect")
    np.testing.assert_allclose(everything_is_noise, smoothed, atol=1e-12)


def test_categories_are_not_smoothed_into_each_other() -> None:
    jobs = vc.Schema([vc.Nominal("job", [f"j{i}" for i in range(64)]), vc.Ordinal("age", 0, 63)])
    counts = np.where(np.arange(64) % 2, 0, 300)[:, np.newaxis] * np.ones(64, dtype=np.int64)
    release = release_of(jobs, counts, 0.5, 4, vc.Adaptive())
    assert release.count(job="j1", age=(10, 20)).value == pytest.approx(0, abs=40)
    assert release.count(job="j2", age=(10, 20)).value == pytest.approx(3300, rel=0.05)


def test_weights_minimise_the_estimated_risk() -> None:
    rng = np.random.default_rng(5)
    root, gains = rng.normal(size=(2, 2)), np.array([0.8, 0.3])
    products = root @ root.T

    def risk(first: float, second: float) -> float:
        weights = np.array([first, second])
        return float(weights @ products @ weights - 2 * weights @ gains)

    grid = [risk(a, b) for a in np.linspace(0, 1, 101) for b in np.linspace(0, 1 - a, 101)]
    assert risk(*least_risk(products, gains)) <= min(grid) + 1e-9


def test_estimates_that_only_disagree_get_no_weight() -> None:
    assert least_risk(np.eye(2) * 100, np.array([-1.0, -2.0])).tolist() == [0.0, 0.0]


def evidence_of(deviations: NDArray[np.float64], levels: NDArray[np.float64]) -> Evidence:
    """Return evidence of one estimate that ignores the noise: its probes move it not at all."""
    many = levels.size
    return Evidence(deviations[np.newaxis], np.ones(many), np.ones(many), np.zeros((1, many)), levels)


def test_an_estimate_that_is_right_gets_all_the_weight_and_little_risk() -> None:
    # It differs from least squares by exactly the noise of least squares.
    rng = np.random.default_rng(6)
    blend = Blend.by(evidence_of(rng.normal(size=4000), np.zeros(4000)), independent=4000)
    assert blend.weights[0] == pytest.approx(1, abs=0.05)
    assert blend.risk == pytest.approx(0, abs=0.05)


def test_levels_on_which_smoothing_errs_are_judged_apart() -> None:
    rng = np.random.default_rng(7)
    levels = rng.uniform(0, 1, 4000)
    wrong = np.where(levels > 0.95, 5.0, 0.0)
    blends = Blends.by(evidence_of(rng.normal(size=4000) + wrong, levels), independent=4000)
    weights = [blends.kinds[kind].weights[0] for kind in blends.kind_of(np.array([0.1, 0.99]))]
    assert weights[0] > 0.9
    assert weights[1] < 0.1


def test_few_independent_queries_move_little_away_from_least_squares() -> None:
    evidence = evidence_of(np.random.default_rng(8).normal(size=1200), np.linspace(0, 1, 1200))
    blends = [Blends.by(evidence, independent) for independent in (1200.0, 15.0, 2.0)]
    weights = [float(blend.kinds[0].weights[0]) for blend in blends]
    assert weights[0] > 0.9
    assert weights[1] == pytest.approx(0.5, abs=0.05)
    assert weights[2] < 0.1
    assert [len(blend.kinds) for blend in blends] == [4, 1, 1]


def test_a_gain_that_may_be_luck_is_left_to_least_squares() -> None:
    deviations = np.random.default_rng(9).normal(size=1200) * 10
    assert Blend.by(evidence_of(deviations, np.zeros(1200)), independent=1200).weights.tolist() == [0.0]


def test_estimates_that_say_the_same_as_least_squares_get_no_weight_and_no_warning() -> None:
    with np.errstate(all="raise"):
        assert least_risk(np.zeros((2, 2)), np.zeros(2)).tolist() == [0.0, 0.0]
        assert least_risk(np.full((2, 2), 1e-300), np.full(2, 1e-300)).sum() == pytest.approx(1)


PLANE = vc.Schema([vc.Ordinal("a", 0, 63), vc.Ordinal("b", 0, 63)])
LINES = np.where((np.arange(64)[:, np.newaxis] % 8 == 0) | (np.arange(64) % 8 == 0), 80, 5)
PEAKS = np.where(np.random.default_rng(3).random((64, 64)) < 0.02, 500, 2)


def coverage(counts: NDArray[np.int64], epsilon: float, side: int, releases: int) -> float:
    """Return how often intervals of squares of about this side hold the truth."""
    rng, held = np.random.default_rng(side), []
    for seed in range(releases):
        lengths = rng.integers(max(1, side // 2), side + 1, (100, 2))
        low = rng.integers(0, 65 - lengths)
        queries = vc.Workload.ranges(PLANE, low, low + lengths - 1)
        corners = np.pad(counts.cumsum(0).cumsum(1), ((1, 0), (1, 0)))
        (a, b), (c, d) = low.T, (low + lengths).T
        truth = corners[c, d] - corners[a, d] - corners[c, b] + corners[a, b]
        found = release_of(PLANE, counts, epsilon, seed, vc.Adaptive()).answer(queries)
        held.append(np.mean((found.low <= truth) & (truth <= found.high)))
    return float(np.mean(held))


@pytest.mark.parametrize(
    ("counts", "epsilon", "side"),
    [(PEAKS, 0.05, 24), (PEAKS, 0.05, 40), (LINES, 0.02, 1), (LINES, 0.02, 3)],
    ids=["peaks, 24", "peaks, 40", "lines, cells", "lines, 3"],
)
def test_intervals_hold_where_smoothing_errs(counts: NDArray[np.int64], epsilon: float, side: int) -> None:
    assert coverage(counts, epsilon, side, releases=12) >= 0.94


def test_the_fullest_cells_are_held_where_noise_does_not_hide_them() -> None:
    held = []
    for seed in range(5):
        table = release_of(PLANE, PEAKS, 0.05, seed, vc.Adaptive()).marginal("a", "b")
        held.append(np.mean(((table.low <= PEAKS) & (table.high >= PEAKS))[PEAKS == 500]))
    assert np.mean(held) >= 0.9


FLAT = np.full((64, 64), 20)


@pytest.mark.parametrize("estimator", ["least_squares", "best", "observed"])
@pytest.mark.parametrize(("split", "threshold", "passes"), [(0.9, 3.0, 0), (0.5, 3.0, 1)])
def test_single_cells_that_growing_picked_out_of_the_noise_are_held(
    estimator: str, split: float, threshold: float, passes: int
) -> None:
    held: list[bool] = []
    strategy = vc.Adaptive(partition="grow", split=split, threshold=threshold, smooth=passes)
    for seed in range(10):
        release = release_of(PLANE, FLAT, 0.3, seed, strategy)
        operator = release.record.measurements[1].operator
        assert isinstance(operator, RegionCounts)
        lone = np.argwhere(operator.sizes[operator.chosen] == 1)
        if len(lone):
            found = release.answer(vc.Workload.ranges(PLANE, lone, lone), estimator=estimator)
            held += list((found.low <= 20) & (found.high >= 20))
    assert len(held) >= 10
    assert np.mean(held) >= 0.9


@pytest.mark.parametrize("partition", ["grow", "kd", "blocks"])
@pytest.mark.parametrize("estimator", ["least_squares", "best"])
def test_a_question_has_one_answer_however_it_is_asked(partition: str, estimator: str) -> None:
    release = release_of(SCHEMA, SMOOTH, 0.5, 5, vc.Adaptive(partition=partition, split=0.5, threshold=1.0, smooth=1))
    asked = {"age": 20, "hours": (8, 40)}
    alone = release.count(**asked, estimator=estimator)
    listed = release.answer(vc.Workload(SCHEMA, [asked, {}]), estimator=estimator)[0]
    grouped = release.marginal("age", where={"hours": (8, 40)}, estimator=estimator)[20]
    by_sql = release.count("SELECT COUNT(*) FROM t WHERE hours BETWEEN 8 AND 40 GROUP BY age", estimator=estimator)[20]
    split = release.marginal("age", where="hours BETWEEN 8 AND 40 AND (age < 30 OR age > 40)", estimator=estimator)[20]
    for other in (listed, grouped, by_sql, split):
        for name in ("value", "low", "high", "stddev"):
            assert getattr(other, name) == pytest.approx(getattr(alone, name), rel=1e-6)


def test_large_shares_of_many_regions_are_counted_and_not_bounded() -> None:
    blocks = np.kron(np.random.default_rng(0).integers(0, 400, (6, 8)), np.ones((8, 8), dtype=np.int64))
    release = release_of(SCHEMA, blocks, 0.5, 1, vc.KdTree(split=0.5))
    regions = release.record.measurements[1]
    assert isinstance(regions.operator, RegionCounts)
    assert regions.operator.regions > 20
    everything = release.answer(vc.Workload(SCHEMA, [{}]), estimator="least_squares")
    totals_alone = np.sqrt(regions.operator.regions) * regions.noise.stddev
    assert everything.stddev[0] <= 1.31 * totals_alone


@pytest.mark.parametrize("condition", [None, "hours < 5 OR hours > 20"])
@pytest.mark.parametrize("partition", ["grow", "blocks"])
def test_distribution_functions_have_the_noise_of_their_prefixes(partition: str, condition: str | None) -> None:
    release = release_of(SCHEMA, SMOOTH, 0.5, 6, vc.Adaptive(partition=partition, split=0.5))
    groups = release._estimate("least_squares").grouped(read_query(SCHEMA, condition or {}), [0])
    variances = groups.prefix_variances(1, 0)
    for age in (0, 20, 47):
        text = f"age <= {age}" + (f" AND ({condition})" if condition else "")
        assert np.sqrt(variances[age]) == pytest.approx(release.count(text, estimator="least_squares").stddev)
    assert np.sqrt(groups.variance_of(np.ones(48))) == pytest.approx(np.sqrt(variances[-1]))


def test_a_total_of_large_scale_beside_cells_of_small_has_no_far_too_wide_interval() -> None:
    release = release_of(PLANE, FLAT, 7, 1, vc.Adaptive(side=64))
    answer = release.count(estimator="least_squares")
    assert (answer.high - answer.low) / 2 <= 2.6 * answer.stddev


def test_cubes_too_large_for_smooth_tables_are_refused_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    release = release_of(SCHEMA, SMOOTH, 1, 1, vc.Adaptive())
    monkeypatch.setattr(shrunken, "available_memory", lambda: 1000)
    with pytest.raises(CapacityError, match="use estimator='least_squares'"):
        release.count(age=3)
    assert release.count(age=3, estimator="least_squares").value == pytest.approx(SMOOTH[3].sum(), abs=60)


@pytest.mark.filterwarnings("ignore:every cell became a region")
@pytest.mark.parametrize("partition", ["grow", "kd"])
def test_noise_that_rounds_to_none_still_makes_a_release(partition: str) -> None:
    release = release_of(SCHEMA, ROUGH, 2000, 1, vc.Adaptive(partition=partition, split=0.5))
    for estimator in ("best", "least_squares", "observed"):
        answer = release.count(age=3, hours=(2, 9), estimator=estimator)
        assert (answer.value, answer.low, answer.high) == pytest.approx((ROUGH[3, 2:10].sum(),) * 3)


@pytest.mark.parametrize("shape", [(1,), (7,), (64, 96), (5, 1, 300)])
@pytest.mark.parametrize("bits", [0, 1, 4, 9])
def test_sampled_queries_fit_the_cube_and_have_about_their_size(shape: tuple[int, ...], bits: int) -> None:
    low, high = queries_of_size(shape, bits, 300)
    assert (low >= 0).all()
    assert (high < np.array(shape)).all()
    sizes = (high - low + 1).prod(axis=1)
    assert np.median(np.abs(np.log2(sizes) - min(bits, np.log2(np.prod(shape))))) <= 0.6


def test_large_cubes_are_judged_by_boxes_all_over_them() -> None:
    boxes = sample_boxes((256, 256, 16))
    assert len(boxes) == 6
    assert sum(np.prod(shape) for _, shape in boxes) <= 2**16
    assert sample_boxes((64, 96)) == [((0, 0), (64, 96))]


def test_all_cells_equal_are_answered() -> None:
    for partition in ("blocks", "grow", "kd"):
        release = release_of(SCHEMA, np.full((48, 64), 7), 1, 6, vc.Adaptive(partition=partition, split=0.5))
        assert release.count(age=(0, 9)).value == pytest.approx(7 * 640, rel=0.1)


def test_a_region_for_every_cell_is_allowed_and_warned_about() -> None:
    with pytest.warns(UserWarning, match="every cell became a region of its own"):
        vc.release(vc.Cube(SCHEMA, ROUGH), 50, vc.Adaptive(partition="grow", split=0.5, threshold=1e-6))
