"""The exact posterior of questions about an adaptive release."""

import numpy as np
import pytest

import veilcube as vc
from support.releases import release_of
from veilcube.errors import QueryError

SCHEMA = vc.Schema([vc.Ordinal("age", 0, 7), vc.Ordinal("hours", 0, 11)])
COUNTS = np.random.default_rng(0).integers(0, 60, (8, 12))


def test_a_question_inside_a_region_has_the_papers_two_observations() -> None:
    release = release_of(SCHEMA, COUNTS, 0.05, 1, vc.Adaptive(split=0.4, side=4))
    cells, regions = release.record.measurements
    inside, label = np.s_[0:2, 1:3], regions.operator.chosen[0, 1]
    assert (regions.operator.chosen[inside] == label).all()
    region = regions.operator.chosen == label
    own = cells.values[inside].sum()
    rest = cells.values[region].sum() - own
    b1, b2 = float(cells.noise.scale), float(regions.noise.scale)
    expected = vc.posterior([(own, {b1: 4}), (regions.values[label] - rest, {b2: 1, b1: int(region.sum()) - 4})])
    found = release.count(age=(0, 1), hours=(1, 2), estimator="observed")
    assert (found.value, found.stddev) == (pytest.approx(expected.mean), pytest.approx(expected.stddev))
    assert (found.low, found.high) == pytest.approx(expected.interval(0.95))


def test_a_whole_region_is_seen_by_its_total_and_by_its_cells() -> None:
    release = release_of(SCHEMA, COUNTS, 0.1, 2, vc.Adaptive(split=0.5, side=12))
    cells, regions = release.record.measurements
    b1, b2 = float(cells.noise.scale), float(regions.noise.scale)
    assert b1 == b2
    expected = vc.posterior([(cells.values.sum(), {b1: 96}), (regions.values[0], {b2: 1})])
    assert release.count(estimator="observed").value == pytest.approx(expected.mean)


def test_small_scales_use_the_noise_that_was_drawn() -> None:
    release = release_of(SCHEMA, COUNTS, 5, 3, vc.Adaptive(split=0.5, side=4))
    answer = release.count(age=3, hours=4, estimator="observed")
    assert answer.low == round(answer.low)
    assert answer.high == round(answer.high)
    assert abs(answer.value - COUNTS[3, 4]) < 6


def test_a_small_scale_beside_a_large_one_is_taken_for_whole_noise() -> None:
    release = release_of(SCHEMA, COUNTS, 1.5, 9, vc.Adaptive(split=0.99, side=4))
    cells, regions = release.record.measurements
    small, large = float(cells.noise.scale), float(regions.noise.scale)
    assert small < 1
    assert large > 20
    label = regions.operator.chosen[3, 4]
    region = regions.operator.chosen == label
    own = int(cells.values[3, 4])
    others = int(regions.values[label] - cells.values[region].sum() + own)
    seen = [(own, {small: 1}), (others, {small: int(region.sum()) - 1, large: 1})]
    expected, found = vc.posterior(seen, discrete=True), release.count(age=3, hours=4, estimator="observed")
    assert (found.value, found.stddev) == (pytest.approx(expected.mean), pytest.approx(expected.stddev))
    assert (found.low, found.high) == expected.interval(0.95)


def test_it_is_near_least_squares_within_a_region() -> None:
    release = release_of(SCHEMA, COUNTS, 0.2, 4, vc.Adaptive(split=0.5, side=4))
    queries = vc.Workload(SCHEMA, [{"age": (a, a + 1), "hours": (h, h + 1)} for a in (0, 4) for h in (0, 4, 8)])
    exact, plain = (release.answer(queries, estimator=name) for name in ("observed", "least_squares"))
    assert (np.abs(exact.value - plain.value) < 0.5 * plain.stddev).all()
    assert (exact.stddev < 1.2 * plain.stddev).all()


def test_intervals_hold_as_often_as_they_say_on_blocks() -> None:
    queries = vc.Workload.random_ranges(SCHEMA, 60, seed=5)
    truth = np.array([
        COUNTS[tuple(slice(a, b + 1) for a, b in zip(low, high, strict=True))].sum()
        for low, high in zip(queries.low, queries.high, strict=True)
    ])  # fmt: skip
    held = []
    for seed in range(12):
        answers = release_of(SCHEMA, COUNTS, 0.05, seed, vc.Adaptive(split=0.5, side=4)).answer(
            queries, estimator="observed"
        )
        held.append(np.mean((answers.low <= truth) & (truth <= answers.high)))
    assert 0.92 <= np.mean(held) <= 0.98


def test_noise_that_is_hardly_there_leaves_the_counts_as_they_are() -> None:
    release = release_of(SCHEMA, COUNTS, 1000, 8, vc.Adaptive(split=0.5, side=4))
    answer = release.count(age=3, hours=4, estimator="observed")
    assert (answer.value, answer.low, answer.high) == (COUNTS[3, 4],) * 3


def test_unions_and_groups_are_answered() -> None:
    release = release_of(SCHEMA, COUNTS, 1, 6, vc.Adaptive(partition="grow", split=0.5))
    assert release.count("age = 3 OR hours = 2", estimator="observed").value == pytest.approx(
        COUNTS[3].sum() + COUNTS[:, 2].sum() - COUNTS[3, 2], abs=60
    )
    assert release.marginal("age", estimator="observed").value.sum() == pytest.approx(COUNTS.sum(), rel=0.1)


def test_too_many_questions_are_pointed_to_least_squares() -> None:
    release = release_of(SCHEMA, COUNTS, 1, 7, vc.Adaptive())
    with pytest.raises(QueryError, match="use estimator='least_squares' for more"):
        release.answer(vc.Workload.random_ranges(SCHEMA, 2_001, seed=1), estimator="observed")
