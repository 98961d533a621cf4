"""The exact posterior of a count: golden values, quadrature and sums that share no code with it, and simulation."""

import math
import time
from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.signal import lfilter

from veilcube.analyst.study.observations import MOST_INTEGERS, posterior
from veilcube.errors import PrivacyError, QueryError
from veilcube.laws.laplace_sums import laplace_sum

# ISPE, section 4.2: y5 + y6, and y13 - y8 - y9.
CELLS = -15.4486 + 41.0775
REST = -5.2668 - (-2.9380 + 50.6616)

Observations = list[tuple[float, dict[float, int]]]

VARIED: list[Observations] = [
    [(3.0, {2: 1})],
    [(0.0, {1: 1}), (2.0, {1: 1}), (9.0, {3: 2})],
    [(CELLS, {20: 2}), (REST, {20: 3, 19: 2, 3: 1})],
    [(0.0, {1000: 1, 1: 1}), (3.0, {2: 1, 100: 30})],
    [(0.0, {1: 1, 1.0001: 1}), (5.0, {1: 7, 0.99: 4})],
    [(-40.0, {1: 4}), (40.0, {2: 4})],
    [(0.0, {1: 60}), (5.0, {0.25: 3}), (-1.0, {4: 1})],
]


def integrated(observations: Observations) -> tuple[float, float, float]:
    """Mean, standard deviation and density at the first value by adaptive quadrature of the product of densities."""
    laws = [(value, laplace_sum(noises)) for value, noises in observations]
    reach = 100 + max(50 * law.largest_scale + 10 * math.sqrt(law.variance) for _, law in laws)
    grid = np.linspace(-reach, reach, 100_001) + laws[0][0]
    log_product = sum(law.log_density(value - grid) for value, law in laws)
    top = float(log_product.max())
    kept = grid[log_product > top - 45]
    cuts = sorted({*np.linspace(kept[0], kept[-1], 60).tolist(), *(value for value, _ in observations)})

    def moment(power: int, centre: float) -> float:
        def integrand(theta: float) -> float:
            height = sum(float(law.log_density(value - theta)) for value, law in laws) - top
            return (theta - centre) ** power * math.exp(height)

        inside = [(a, b) for a, b in pairwise(cuts) if kept[0] <= a and b <= kept[-1]]
        return math.fsum(quad(integrand, a, b, epsabs=0, epsrel=1e-12)[0] for a, b in inside)

    mass = moment(0, 0.0)
    mean = laws[0][0] + moment(1, laws[0][0]) / mass
    at_first = math.exp(sum(float(law.log_density(value - laws[0][0])) for value, law in laws) - top) / mass
    return mean, math.sqrt(moment(2, mean) / mass), at_first


def enumerated(observations: Observations, reach: int = 600) -> tuple[np.ndarray, np.ndarray]:
    """All integers near zero and their posterior probabilities, from probabilities convolved by positive filters."""
    theta = np.arange(-reach, reach + 1)
    chances = np.ones(theta.size)
    for value, noises in observations:
        noise = np.zeros(6 * reach + 1)
        noise[3 * reach] = 1
        for scale, count in noises.items():
            p = math.exp(-1 / scale)
            for _ in range(count):
                noise = lfilter([1 - p], [1, -p], noise)
                noise = lfilter([1 - p], [1, -p], noise[::-1])[::-1]
        chances = chances * noise[int(value) - theta + 3 * reach]
    return theta, chances / chances.sum()


class TestGoldenValues:
    def test_the_worked_example_with_equal_budgets(self) -> None:
        belief = posterior([(CELLS, {20: 2}), (REST, {20: 3})])
        assert belief.mean == pytest.approx(-5.81882, abs=5e-9)
        assert belief.stddev == pytest.approx(33.2228844, abs=5e-8)
        assert belief.interval(0.95) == pytest.approx((-73.6423108, 55.6517829), abs=6e-8)

    def test_the_worked_example_with_twice_the_budget_for_the_partition(self) -> None:
        belief = posterior([(CELLS, {20: 2}), (REST, {20: 2, 10: 1})])
        assert belief.mean == pytest.approx(-11.2155755, abs=6e-8)
        assert belief.stddev == pytest.approx(32.3297484, abs=5e-8)
        assert belief.interval(0.95) == pytest.approx((-74.9219211, 49.6093112), abs=6e-8)

    @pytest.mark.parametrize(("terms", "point"), [(1, 2.99573227), (2, 4.11300328), (3, 4.968596), (4, 5.6925713)])
    def test_the_97_5_percent_points_of_summed_noise(self, terms: int, point: float) -> None:
        low, high = posterior([(0, {1: terms})]).interval(0.95)
        assert (low, high) == pytest.approx((-point, point), abs=6e-9)

    @pytest.mark.parametrize(("terms", "x", "expected"), [(2, 1, 0.724090419121), (4, 3, 0.867753099648)])
    def test_distribution_functions_of_summed_noise(self, terms: int, x: float, expected: float) -> None:
        assert posterior([(0, {1: terms})]).cdf(x) == pytest.approx(expected, abs=6e-13)


class TestContinuous:
    @pytest.mark.parametrize("observations", VARIED, ids=str)
    def test_equals_adaptive_quadrature(self, observations: Observations) -> None:
        mean, stddev, density = integrated(observations)
        belief = posterior(observations)
        assert belief.mean == pytest.approx(mean, abs=1e-9 * stddev)
        assert belief.stddev == pytest.approx(stddev, rel=1e-9)
        assert float(belief.density(observations[0][0])) == pytest.approx(density, rel=1e-9)

    @pytest.mark.parametrize("observations", VARIED, ids=str)
    @pytest.mark.parametrize("level", [1e-6, 0.5, 0.95, 0.999999, 1 - 1e-12])
    def test_the_interval_leaves_equal_tails(self, observations: Observations, level: float) -> None:
        belief = posterior(observations)
        low, high = belief.interval(level)
        tail = (1 - level) / 2
        assert belief.cdf(low) == pytest.approx(tail, rel=1e-7)
        assert belief.cdf(high) == pytest.approx(1 - tail, abs=1e-13)

    @pytest.mark.parametrize("level", [0.5, 0.999999, 1 - 1e-12])
    def test_tails_keep_their_digits(self, level: float) -> None:
        """One Laplace noise has its quantiles in closed form, however far out."""
        low, high = posterior([(0, {7: 1})]).interval(level)
        exact = -7 * math.log1p(-level)
        assert (low, high) == pytest.approx((-exact, exact), rel=1e-10)

    def test_one_observation_has_its_value_and_the_noises_stddev(self) -> None:
        for noises in ({20: 1}, {3: 40}, {5: 2, 4.9: 3}, {1: 10**6}):
            belief = posterior([(17.25, noises)])
            assert belief.mean == pytest.approx(17.25, abs=1e-9 * belief.stddev)
            assert belief.stddev == pytest.approx(math.sqrt(laplace_sum(noises).variance), rel=1e-10)

    def test_shifting_and_stretching_all_observations_shifts_and_stretches_the_posterior(self) -> None:
        belief = posterior([(3, {2: 2}), (9, {2: 1, 5: 1})])
        moved = posterior([(100 + 3e3, {2e3: 2}), (100 + 9e3, {2e3: 1, 5e3: 1})])
        assert moved.mean == pytest.approx(100 + 1e3 * belief.mean, rel=1e-12)
        assert moved.stddev == pytest.approx(1e3 * belief.stddev, rel=1e-12)
        np.testing.assert_allclose(moved.interval(0.9), 100 + 1e3 * np.array(belief.interval(0.9)), rtol=1e-11)

    @pytest.mark.parametrize("gap", [1e3, 1e6, 1e12])
    def test_observations_that_contradict_each_other_lose_no_digits(self, gap: float) -> None:
        """Two Laplace noises of one scale: level in between, with an exponential of rate 2 on either side."""
        belief = posterior([(0, {1: 1}), (gap, {1: 1})])
        mass = gap + 1
        second = (gap**3 / 12 + 2 * (gap**2 / 8 + gap / 4 + 1 / 4)) / mass
        assert belief.mean == pytest.approx(gap / 2, rel=1e-12)
        assert belief.stddev == pytest.approx(math.sqrt(second), rel=1e-9)
        assert belief.interval(0.5)[0] == pytest.approx(0.25 * mass - 0.5, rel=1e-9)

    def test_a_sharp_observation_far_from_a_vague_one_wins(self) -> None:
        belief = posterior([(0, {1e-3: 1}), (1e9, {1e3: 5})])
        assert abs(belief.mean) < 1e-8
        assert belief.stddev == pytest.approx(1e-3 * math.sqrt(2), rel=1e-5)

    def test_many_equal_observations_narrow_the_posterior(self) -> None:
        values = np.random.default_rng(2).laplace(5, 1, 400)
        belief = posterior([(float(value), {1: 1}) for value in values])
        assert belief.mean == pytest.approx(float(np.median(values)), abs=0.1)
        assert belief.stddev == pytest.approx(1 / 20, rel=0.25)

    def test_the_order_of_observations_does_not_matter(self) -> None:
        observations = VARIED[1]
        forward, backward = posterior(observations), posterior(observations[::-1])
        assert forward.mean == pytest.approx(backward.mean, abs=1e-12)
        assert forward.interval(0.8) == pytest.approx(backward.interval(0.8), abs=1e-11)


class TestDiscrete:
    @pytest.mark.parametrize(
        "observations",
        [
            [(0, {1: 1}), (3, {0.5: 2})],
            [(3, {0.1: 2000})],
            [(26, {20: 2}), (-53, {20: 3})],
            [(0, {5: 2}), (7, {2: 3, 8: 1})],
            [(0, {1: 2}), (90, {1: 2})],
            [(0, {3: 1, 2.9: 2}), (5, {0.2: 30}), (1, {10: 1})],
        ],
        ids=str,
    )
    def test_equals_the_enumerated_posterior(self, observations: Observations) -> None:
        theta, chances = enumerated(observations)
        belief = posterior(observations, discrete=True)
        mean = float(chances @ theta)
        stddev = math.sqrt(chances @ (theta - mean) ** 2)
        assert belief.mean == pytest.approx(mean, abs=1e-10 * stddev)
        assert belief.stddev == pytest.approx(stddev, rel=1e-10)
        near = np.abs(theta - mean) < 8 * stddev
        np.testing.assert_allclose(belief.density(theta[near]), chances[near], rtol=1e-9)
        assert belief.cdf(math.floor(mean)) == pytest.approx(float(chances[theta <= mean].sum()), abs=1e-11)

    @pytest.mark.parametrize("level", [0.5, 0.9, 0.95, 0.9999])
    def test_the_interval_is_the_smallest_with_at_most_the_tail_on_either_side(self, level: float) -> None:
        observations: Observations = [(0, {5: 2}), (7, {2: 3, 8: 1})]
        theta, chances = enumerated(observations)
        low, high = posterior(observations, discrete=True).interval(level)
        tail = (1 - level) / 2
        assert float(chances[theta < low].sum()) <= tail < float(chances[theta <= low].sum())
        assert float(chances[theta > high].sum()) <= tail < float(chances[theta >= high].sum())

    def test_a_scale_near_zero_leaves_the_value(self) -> None:
        belief = posterior([(3, {0.02: 1})], discrete=True)
        assert belief.mean == 3
        assert belief.interval(0.999) == (3, 3)

    def test_differs_from_the_continuous_law_at_small_scales_and_not_at_large_ones(self) -> None:
        small: Observations = [(0, {1: 1}), (3, {0.5: 2})]
        assert abs(posterior(small, discrete=True).mean - posterior(small).mean) > 0.1
        large: Observations = [(0, {4000: 2}), (900, {3000: 1})]
        discrete, continuous = posterior(large, discrete=True), posterior(large)
        assert discrete.stddev == pytest.approx(continuous.stddev, rel=1e-7)
        assert discrete.interval(0.95) == pytest.approx(continuous.interval(0.95), abs=1.0)

    def test_nothing_lies_between_the_integers(self) -> None:
        belief = posterior([(3, {2: 2})], discrete=True)
        assert belief.density([2.5, 3.0]).tolist() == [0.0, float(belief.density(3))]

    def test_too_many_integers_are_refused_with_the_way_out(self) -> None:
        with pytest.raises(QueryError, match=f"at most {MOST_INTEGERS:,} integers"):
            posterior([(0, {1e7: 1})], discrete=True)

    def test_a_value_between_the_integers_is_refused(self) -> None:
        with pytest.raises(QueryError, match="an observed value is whole"):
            posterior([(0.5, {1: 1})], discrete=True)


class TestBadInput:
    def test_no_observation(self) -> None:
        with pytest.raises(QueryError, match="at least one observation"):
            posterior([])

    @pytest.mark.parametrize("value", [math.nan, math.inf, 1e300, True, "5", None])
    def test_a_value_that_is_not_finite(self, value: object) -> None:
        with pytest.raises(QueryError, match="an observed value must be a finite number"):
            posterior([(value, {1: 1})])  # type: ignore[list-item]

    @pytest.mark.parametrize("observation", [5, (1,), (1, {1: 1}, 2), {"value": 1}])
    def test_an_observation_that_is_no_pair(self, observation: object) -> None:
        with pytest.raises(QueryError, match="an observation must be a pair"):
            posterior([observation])  # type: ignore[list-item]

    @pytest.mark.parametrize("noises", [{0: 1}, {-2: 1}, {math.nan: 1}, {1: 0}, {1: 1.5}, {1: -1}, {}, None])
    def test_noises_that_make_no_sense(self, noises: dict[float, int]) -> None:
        with pytest.raises(PrivacyError):
            posterior([(0, noises)])

    @pytest.mark.parametrize("level", [0, 1, -0.1, 95, math.nan, True])
    def test_a_level_outside_0_and_1(self, level: float) -> None:
        with pytest.raises(QueryError, match="level must lie strictly between 0 and 1"):
            posterior([(0, {1: 1})]).interval(level)


def test_a_posterior_takes_milliseconds() -> None:
    observations: Observations = [(CELLS, {20: 2}), (REST, {20: 2, 10: 1})]
    posterior(observations)
    fastest = math.inf
    for _ in range(20):
        start = time.perf_counter()
        posterior(observations).interval(0.95)
        fastest = min(fastest, time.perf_counter() - start)
    assert fastest < 0.05


@pytest.mark.parametrize(
    "value", [10**400, -(10**5000), float("inf"), float("nan")], ids=["1e400", "-1e5000", "inf", "nan"]
)
def test_values_beyond_all_floats_are_refused_in_one_sentence(value: float) -> None:
    with pytest.raises(QueryError, match="an observed value must be a finite number"):
        posterior([(value, {1: 1})])


@pytest.mark.parametrize("observations", [None, 5])
def test_what_is_no_list_of_observations_is_refused(observations: object) -> None:
    with pytest.raises(QueryError, match="observations must be a list of pairs"):
        posterior(observations)


def test_the_distribution_function_is_asked_for_at_numbers_only() -> None:
    belief = posterior([(1, {1: 1})])
    for point in (float("nan"), "a", None, True):
        with pytest.raises(QueryError, match="asked for at a number"):
            belief.cdf(point)
    assert (belief.cdf(float("-inf")), belief.cdf(10**400), belief.cdf(-(10**400))) == (0.0, 1.0, 0.0)
