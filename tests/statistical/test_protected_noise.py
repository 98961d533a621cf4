"""The noise of protected tables has the scale that was promised, and intervals hold as often as they say.

Each check must also fail for noise that is 3% off, or it would prove nothing.
"""

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import veilcube as vc
from support.seeded import SeededWords
from veilcube.curator.mechanisms import Samplers
from veilcube.curator.protected.desk import Desk
from veilcube.curator.protected.rows import PrivateRows
from veilcube.curator.protected.table import ProtectedTable
from veilcube.curator.sampling import discrete_gaussian, discrete_laplace
from veilcube.laws import DiscreteGaussian, DiscreteLaplace
from veilcube.privacy import Neighbours

PARTS = 120_000
EPSILON = Fraction(1, 20)
# Five standard errors of the mean size of Laplace noise over this many parts: 1.4%, five less than the 3% to be found.
ERRORS = 5 / np.sqrt(PARTS)
SCHEMA = vc.Schema([vc.Ordinal("part", 1, PARTS), vc.Ordinal("age", 10, 13)])
COUNTS = np.random.default_rng(5).integers(0, 60, SCHEMA.shape)
TOTALS = COUNTS.sum(axis=1)
SUMS = (COUNTS * np.arange(10, 14)).sum(axis=1)

Sampler = Callable[[Fraction, tuple[int, ...]], NDArray[np.int64]]


def off_by(percent: int) -> Sampler:
    source = SeededWords(17)
    return lambda scale, shape: discrete_laplace(scale * (100 + percent) / 100, shape, source=source)


def gaussian_off_by(percent: int) -> Sampler:
    source = SeededWords(19)
    return lambda squared, shape: discrete_gaussian(squared * Fraction(100 + percent, 100) ** 2, shape, source=source)


def protected(folder: Path, percent: int = 0, *, in_rho: bool = False) -> ProtectedTable:
    """Protect the table, its noise drawn with a scale or a sigma that is some percent off."""
    ledger = vc.Ledger(folder / "budget.db")
    ledger.create("people", **({"rho": 10} if in_rho else {"epsilon": 10}))
    cube = vc.Cube(SCHEMA, COUNTS)
    rows = PrivateRows(cube, cube.schema, cube.unit)
    samplers = Samplers(off_by(percent), gaussian_off_by(percent))
    return ProtectedTable.whole(Desk(rows, ledger, "people", Neighbours.ADD_REMOVE, None, samplers))


def has_scale(errors: NDArray[np.float64], scale: Fraction) -> bool:
    """Tell whether the mean size of noise is that of a scale: Σ|x| P(x) = 1/sinh(1/scale)."""
    expected = 1 / np.sinh(float(1 / scale))
    return bool(abs(np.abs(errors).mean() / expected - 1) < ERRORS)


@pytest.mark.parametrize(("percent", "is_right"), [(0, True), (3, False), (-3, False)])
def test_counts_and_sums_have_the_noise_that_was_promised(tmp_path: Path, percent: int, is_right: bool) -> None:
    parts = protected(tmp_path, percent).partition("part")
    counts = parts.noisy_count(epsilon=EPSILON)
    assert has_scale(counts.value - TOTALS, 1 / EPSILON) is is_right
    sums = parts.noisy_sum("age", epsilon=EPSILON)
    assert has_scale(sums.value - SUMS, 13 / EPSILON) is is_right


@pytest.mark.parametrize(("percent", "is_right"), [(0, True), (3, False), (-3, False)])
def test_counts_and_sums_for_a_rho_have_the_noise_that_was_promised(
    tmp_path: Path, percent: int, is_right: bool
) -> None:
    parts = protected(tmp_path, percent, in_rho=True).partition("part")
    for found, truth, squared in (
        (parts.noisy_count(rho="1/200"), TOTALS, 1),
        (parts.noisy_sum("age", rho="1/200"), SUMS, 13**2),
    ):
        law = DiscreteGaussian(Fraction(100 * squared))
        assert (abs(np.std(found.value - truth) / law.stddev - 1) < ERRORS) == is_right
        assert found.stddev[0] == law.stddev


@pytest.mark.parametrize("price", [{"epsilon": EPSILON}, {"rho": Fraction(1, 200)}], ids=["laplace", "gaussian"])
@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999])
def test_intervals_of_counts_hold_exactly_as_often_as_the_law_says(
    tmp_path: Path, confidence: float, price: dict[str, Fraction]
) -> None:
    in_rho = "rho" in price
    found = protected(tmp_path, in_rho=in_rho).partition("part").noisy_count(**price, confidence=confidence)
    width = int(found.high[0] - found.value[0])
    law = DiscreteGaussian(Fraction(100)) if in_rho else DiscreteLaplace(1 / EPSILON)
    chance = float(law.pmf(np.arange(-width, width + 1)).sum())
    assert chance >= confidence > float(law.pmf(np.arange(1 - width, width)).sum())
    covered = np.mean((found.low <= TOTALS) & (found.high >= TOTALS))
    assert abs(covered - chance) < 5 * np.sqrt(chance * (1 - chance) / PARTS)
    assert found.stddev[0] == pytest.approx(np.std(found.value - TOTALS), rel=ERRORS * 2)


@pytest.mark.parametrize("price", [{"epsilon": EPSILON}, {"rho": Fraction(1, 200)}], ids=["laplace", "gaussian"])
@pytest.mark.parametrize(("confidence", "most"), [(0.8, 0.83), (0.95, 0.96)])
def test_intervals_of_means_hold_whatever_the_counts_are(
    tmp_path: Path, confidence: float, most: float, price: dict[str, Fraction]
) -> None:
    table = protected(tmp_path, in_rho="rho" in price)
    found = table.partition("part").noisy_mean("age", **price, confidence=confidence)
    truth = SUMS / np.maximum(TOTALS, 1)
    covered = np.mean((found.low <= truth) & (truth <= found.high))
    assert confidence - 5 * np.sqrt(confidence * (1 - confidence) / PARTS) <= covered <= most


def test_means_from_two_sums_beat_half_the_budget_for_each(tmp_path: Path) -> None:
    found = protected(tmp_path).partition("part").noisy_mean("age", epsilon=1)
    is_large = TOTALS > 60
    error = np.sqrt(np.mean((found.value - SUMS / np.maximum(TOTALS, 1))[is_large] ** 2))
    # With half of epsilon each: noise of scale 2 * 3/2 on Σ(v - middle), of scale 2 on the count; share is the mean's.
    share = (SUMS / np.maximum(TOTALS, 1) - 11.5) / 1.5
    split = np.sqrt(np.mean((2 * 3**2 * (1 + share**2) / TOTALS.clip(1) ** 2)[is_large]))
    assert error < 0.75 * split
