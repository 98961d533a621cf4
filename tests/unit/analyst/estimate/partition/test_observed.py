"""The exact posterior of questions about an adaptive release."""

import numpy as np
import pytest

import veilcube as vc
from support.releases import gaussian_release_of, release_of
from veilcube.analyst.study.observations import Posterior
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


def parts_of(release: vc.Release, inside: np.ndarray) -> list[Posterior]:
    """Return the posterior of the part of a question in each region that it meets, by the paper's rule."""
    cells, regions = release.record.measurements
    b1, b2 = float(cells.noise.scale), float(regions.noise.scale)
    found = []
    for label in np.unique(regions.operator.chosen[inside]):
        region = regions.operator.chosen == label
        own, rest = cells.values[region & inside].sum(), cells.values[region & ~inside].sum()
        others: dict[float, int] = {b2: 1}
        if (region & ~inside).any():
            others[b1] = others.get(b1, 0) + int((region & ~inside).sum())
        seen = [(int(own), {b1: int((region & inside).sum())}), (int(regions.values[label] - rest), others)]
        found.append(vc.posterior(seen, discrete=b1 <= 20))
    return found


@pytest.mark.parametrize("epsilon", [0.05, 2.0])
@pytest.mark.parametrize("partition", ["blocks", "kd"])
def test_a_question_across_regions_is_the_sum_of_its_parts(partition: str, epsilon: float) -> None:
    release = release_of(SCHEMA, COUNTS, epsilon, 1, vc.Adaptive(partition=partition, split=0.5))
    generator = np.random.default_rng(3)
    for _ in range(6):
        age, hours = np.sort(generator.integers(0, 8, 2)), np.sort(generator.integers(0, 12, 2))
        inside = np.zeros(COUNTS.shape, dtype=bool)
        inside[age[0] : age[1] + 1, hours[0] : hours[1] + 1] = True
        parts = parts_of(release, inside)
        found = release.count(age=tuple(age.tolist()), hours=tuple(hours.tolist()), estimator="observed")
        assert found.value == pytest.approx(sum(part.mean for part in parts))
        widening = found.stddev / np.sqrt(sum(part.stddev**2 for part in parts))
        assert widening == pytest.approx(1.0) if partition == "blocks" else 1.1 <= widening <= 1.3


def test_a_question_across_regions_is_as_accurate_as_least_squares() -> None:
    # 256 cells of 50 in four blocks, a question for the first block and one cell more.
    schema, counts = vc.Schema([vc.Ordinal("a", 0, 255)]), np.full(256, 50)
    errors: dict[str, list[float]] = {"observed": [], "least_squares": []}
    held = []
    for seed in range(40):
        release = release_of(schema, counts, 0.2, seed, vc.Adaptive(partition="blocks", split=0.5, side=64))
        for name, missed in errors.items():
            answer = release.count(a=(0, 64), estimator=name)
            missed.append(answer.value - 65 * 50)
            held.append(answer.low <= 65 * 50 <= answer.high)
    exact, plain = (np.sqrt(np.mean(np.square(missed))) for missed in errors.values())
    assert exact <= 1.1 * plain
    assert np.mean(held) >= 0.85


def test_too_many_regions_are_pointed_to_least_squares() -> None:
    schema = vc.Schema([vc.Ordinal("a", 0, 2999)])
    release = release_of(schema, np.zeros(3000, dtype=np.int64), 0.1, 7, vc.Adaptive(partition="blocks", side=1))
    with pytest.raises(QueryError, match="at most 10,000 in all; use estimator='least_squares' for more"):
        release.answer(vc.Workload(schema, [{}] * 4), estimator="observed")


def chances_of_sum(sigma_squared: float, terms: int, points: np.ndarray) -> np.ndarray:
    """Return the probabilities of a sum of discrete Gaussian noises by convolving them one by one."""
    one = np.exp(-np.square(points) / (2 * sigma_squared))
    law = one / one.sum()
    for _ in range(terms - 1):
        law = np.convolve(law, one / one.sum())[points.size // 2 : -(points.size // 2)]
    return law


@pytest.mark.parametrize("rho", ["1/2", "1/8", "1/200"])
def test_under_gaussian_noise_it_is_the_posterior_of_all_whole_counts_listed(rho: str) -> None:
    release = gaussian_release_of(SCHEMA, COUNTS, rho, 1, vc.Adaptive(split=0.4, side=4))
    cells, regions = release.record.measurements
    s1, s2 = float(cells.noise.parameter), float(regions.noise.parameter)
    inside, label = np.s_[0:2, 1:3], regions.operator.chosen[0, 1]
    region = regions.operator.chosen == label
    own = int(cells.values[inside].sum())
    others = int(regions.values[label] - cells.values[region].sum() + own)
    reach = 60 + int(12 * np.sqrt(region.sum() * s1 + s2))
    points = np.arange(-reach, reach + 1)
    first = chances_of_sum(s1, 4, points)
    second = np.convolve(chances_of_sum(s1, int(region.sum()) - 4, points), chances_of_sum(s2, 1, points))[reach:-reach]
    counts = own + points[reach // 4 : -(reach // 4)]
    chances = first[own - counts + reach] * second[np.clip(others - counts + reach, 0, points.size - 1)]
    chances /= chances.sum()
    mean = chances @ counts
    found = release.count(age=(0, 1), hours=(1, 2), estimator="observed")
    assert (found.value, found.stddev) == (
        pytest.approx(mean, abs=1e-6),
        pytest.approx(np.sqrt(chances @ np.square(counts - mean)), rel=1e-3),
    )
    upto = np.cumsum(chances)
    assert (found.low, found.high) == (counts[np.argmax(upto > 0.025)], counts[np.argmax(upto >= 0.975)])
