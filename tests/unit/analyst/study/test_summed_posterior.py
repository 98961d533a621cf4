"""Sums of counts with posteriors of their own, against convolutions written out."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

import veilcube as vc
from veilcube.analyst.study.observations import Posterior
from veilcube.analyst.study.summed_posterior import SummedPosterior

SMALL = [[(12, {1.5: 2}), (9, {1.5: 1, 3.0: 1})], [(-4, {1.5: 1}), (3, {3.0: 1})], [(100, {0.4: 3}), (101, {5.0: 1})]]


def written_out(beliefs: list[Posterior], reach: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the integers and the chances of the sum, by convolving whole arrays of chances."""
    first, chances = 0, np.ones(1)
    for belief in beliefs:
        points = np.arange(round(belief.mean) - reach, round(belief.mean) + reach + 1)
        first, chances = first + int(points[0]), np.convolve(chances, belief.density(points))
    return first + np.arange(chances.size), chances


@pytest.mark.parametrize("level", [0.5, 0.95, 0.999999])
@pytest.mark.parametrize("many", [2, 3])
def test_whole_counts_are_convolved_exactly(many: int, level: float) -> None:
    beliefs = [vc.posterior(seen, discrete=True) for seen in SMALL[:many]]
    points, chances = written_out(beliefs, 300)
    found, running = SummedPosterior(beliefs), np.cumsum(chances)
    mean = float(chances @ points)
    assert found.mean == pytest.approx(mean, abs=1e-9)
    assert found.stddev == pytest.approx(float(np.sqrt(chances @ (points - mean) ** 2)), rel=1e-9)
    tail = (1 - level) / 2
    low = points[np.searchsorted(running, tail, side="right")]
    high = points[::-1][np.searchsorted(np.cumsum(chances[::-1]), tail, side="right")]
    assert found.interval(level) == (low, high)


@pytest.mark.parametrize("scales", [(20.0, 20.0), (1.0, 300.0), (40.0, 7.0)])
def test_densities_are_convolved_to_a_millionth(scales: tuple[float, float]) -> None:
    first = vc.posterior([(25.6, {scales[0]: 2}), (-52.9, {scales[0]: 3})])
    second = vc.posterior([(1000.25, {scales[1]: 1}), (990.0, {scales[1]: 1})])
    found, tail = SummedPosterior([first, second]), 0.025
    bends = [1000.25, 990.0]
    ends = first.interval(1 - 1e-13)

    def share_below(x: float) -> float:
        """Integrate the first density times the second distribution function, in pieces between its bends."""
        corners = sorted({*ends, 25.6, -52.9, *(min(max(x - bend, ends[0]), ends[1]) for bend in bends)})
        pieces = pairwise(corners)
        return sum(
            quad(lambda a: float(first.density(a)) * second.cdf(x - a), low, high, epsabs=1e-11, limit=200)[0]
            for low, high in pieces
        )

    low, high = found.interval(1 - 2 * tail)
    assert share_below(low) == pytest.approx(tail, abs=1e-6)
    assert share_below(high) == pytest.approx(1 - tail, abs=1e-6)


def test_many_parts_are_nearly_normal_around_the_sum_of_their_means() -> None:
    beliefs = [vc.posterior([(i % 7, {20.0: 2}), (i % 11, {30.0: 1})]) for i in range(400)]
    found = SummedPosterior(beliefs)
    low, high = found.interval(0.9)
    assert found.mean == pytest.approx(sum(belief.mean for belief in beliefs))
    assert (low, high) == pytest.approx(norm.interval(0.9, found.mean, found.stddev), abs=0.01 * found.stddev)


def test_whole_counts_too_wide_for_a_lattice_of_integers_agree_with_densities() -> None:
    seen = [[(500, {900.0: 4}), (0, {900.0: 1, 700.0: 1})], [(7, {900.0: 2}), (90, {700.0: 1})]]
    whole, dense = (
        SummedPosterior([vc.posterior(each, discrete=is_whole) for each in seen]) for is_whole in (True, False)
    )
    assert whole.interval(0.95) == pytest.approx(dense.interval(0.95), abs=1e-3 * dense.stddev)


def test_one_part_is_itself() -> None:
    belief = vc.posterior(SMALL[0], discrete=True)
    assert SummedPosterior([belief]).interval(0.9) == belief.interval(0.9)
