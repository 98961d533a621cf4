"""Noise on what is measured about a cap has the scale that was promised, which noise that is 3% off has not.

What is proved in docs/proofs/cap.md is tested here.
"""

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

from support.seeded import SeededWords
from veilcube.analyst.cap.noise import reach, rough_reach
from veilcube.curator.ledger import Receipt
from veilcube.curator.mechanisms import ExcessMechanism, PersonsMechanism
from veilcube.curator.persons import PersonRows
from veilcube.curator.sampling import discrete_laplace
from veilcube.privacy import Neighbours, PrivacyUnit
from veilcube.record import ExcessBins, RowBins
from veilcube.system import Integers

DRAWS = 130_000  # five standard errors of the mean size: 1.4%, less than half of the 3% to be found
EPSILON = Fraction(1, 20)
Sampler = Callable[[Fraction, tuple[int, ...]], Integers]


def off_by(percent: int) -> Sampler:
    source = SeededWords(23)
    return lambda scale, shape: discrete_laplace(scale * (100 + percent) / 100, shape, source=source)


def persons_with(*rows: int) -> PersonRows:
    persons = PersonRows()
    persons.add(pa.array(rows))
    return persons


def is_right(errors: np.ndarray, scales: np.ndarray) -> bool:
    """Tell whether noises have their scales: sizes in units of what is expected, Σ|x| P(x) = 1/sinh(1/scale)."""
    sizes = np.abs(errors) * np.sinh(1 / scales)
    return bool(abs(sizes.mean() - 1) < 5 / np.sqrt(sizes.size))


@pytest.mark.parametrize(("percent", "right"), [(0, True), (3, False), (-3, False)])
@pytest.mark.parametrize("neighbours", list(Neighbours))
def test_noise_beyond_the_cap_has_the_scales_of_its_bins(percent: int, right: bool, neighbours: Neighbours) -> None:
    bins, persons, draw = ExcessBins(3, 10**6), persons_with(1, 4, 9, 19, 30), off_by(percent)
    mechanism = ExcessMechanism(bins, EPSILON, neighbours, PrivacyUnit.person("who", 3))
    exact = persons.measured_by(bins)
    errors = np.array(
        [
            mechanism.measure(persons, Receipt.uncharged(mechanism.claim), draw).values - exact
            for _ in range(DRAWS // exact.size)
        ]
    )
    times = 1 if neighbours is Neighbours.ADD_REMOVE else 2
    assert is_right(errors, times * np.array(bins.sensitivities) / float(EPSILON)) is right


@pytest.mark.parametrize(("percent", "right"), [(0, True), (3, False), (-3, False)])
def test_noise_on_rows_per_person_has_the_scale_that_was_promised(percent: int, right: bool) -> None:
    bins, persons, draw = RowBins(10_000), persons_with(1, 1, 50, 200), off_by(percent)
    mechanism = PersonsMechanism(bins, EPSILON, Neighbours.ADD_REMOVE, PrivacyUnit.whole_person("who"))
    exact = persons.measured_by(bins)
    errors = np.array(
        [
            mechanism.measure(persons, Receipt.uncharged(mechanism.claim), draw).values - exact
            for _ in range(DRAWS // exact.size)
        ]
    )
    assert is_right(errors, np.full(exact.size, 1 / float(EPSILON))) is right


@pytest.mark.parametrize("ends", [(1,), (1, 2), (1, 2, 3, 5, 10, 20), (1, 2, 4, 7, 14, 28, 55)])
@pytest.mark.parametrize("chance", [0.05, 0.01])
def test_sums_of_unlike_noise_reach_as_far_as_is_said(ends: tuple[int, ...], chance: float) -> None:
    draws = 200_000
    scales = np.array(ends) / float(EPSILON)
    noise = np.stack([discrete_laplace(Fraction(end) / EPSILON, (draws,), source=SeededWords(end)) for end in ends])
    for cut in (0, *ends[:-1]):
        weights = np.maximum(1 - cut / np.array(ends), 0.0)
        over = float((weights @ noise > reach(weights, scales, chance)).mean())
        # Never more often than said; and no less than nine tenths of it, or intervals would be wider than need be.
        assert over < chance + 4 * np.sqrt(chance / draws)
        assert over > 0.9 * chance - 4 * np.sqrt(chance / draws)
        assert float((weights @ noise > rough_reach(weights, scales, chance)).mean()) < chance
