"""Sharpened noise has the law that is proved of it, together with the noise before, and a scale 3% off is noticed.

What is proved in docs/proofs/sharpened-noise.md is tested here.
"""

from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from support.seeded import SeededWords
from veilcube.curator.sampling import discrete_laplace, joint as sharpened, sharpened_laplace
from veilcube.errors import PrivacyError
from veilcube.laws.noise import DiscreteLaplace, SharpenedLaplace

BEFORE, ADDED = Fraction(5, 2), Fraction(7, 3)
SAMPLES = 300_000
MOST_DEVIATIONS = 4.0


def drawn(before: Fraction, added: Fraction, declared: Fraction = BEFORE) -> tuple[NDArray, NDArray]:
    """Return noise and what takes its place, drawn in the belief that the first has the declared scale."""
    source = SeededWords(11)
    first = discrete_laplace(before, SAMPLES, source=source)
    return first, sharpened_laplace(first, [declared], added, source=source)


def deviations(noise: NDArray, scale: Fraction) -> float:
    """Return by how many standard errors the mean size of noise misses that of a law."""
    p = np.exp(-1 / float(scale))
    mean = 2 * p / (1 - p**2)
    return float((np.abs(noise).mean() - mean) / np.sqrt((DiscreteLaplace(scale).variance - mean**2) / noise.size))


def law_of_pairs(before: Fraction, added: Fraction, reach: int) -> NDArray[np.float64]:
    """Return P(noise = a, sharper noise = b) by going through all that may be drawn, for sizes up to ``reach``."""
    farthest = 60
    numbers = np.arange(farthest)
    old, new = (np.exp(-1 / float(scale)) for scale in (before, added))
    of_old, of_new = (1 - old) * old**numbers, (1 - new) * new**numbers
    # P(the earlier of the clock at g and a fresh one = k): it stays at g, or the fresh one comes first.
    tail = 1 - np.cumsum(of_new) + of_new
    shrunk = np.where(numbers[:, None] == numbers, tail[:, None], 0.0)
    shrunk += np.where(numbers < numbers[:, None], of_new, 0.0)
    table = np.zeros((2 * reach + 1, 2 * reach + 1))
    for rise in range(farthest):
        for fall in range(max(rise - reach, 0), min(rise + reach + 1, farthest)):
            both = of_old[rise] * of_old[fall] * np.outer(shrunk[rise], shrunk[fall])
            for b in range(-reach, reach + 1):
                table[rise - fall + reach, b + reach] += np.trace(both, offset=-b)
    return table


def test_the_old_noise_is_the_new_one_plus_noise_that_does_not_depend_on_it() -> None:
    reach, before, added = 6, Fraction(3, 2), Fraction(2)
    table = law_of_pairs(before, added, reach)
    sharper = SharpenedLaplace.of(before, added)
    places = np.arange(-reach, reach + 1)
    given_new = table / sharper.pmf(places)
    # P(old = a | new = b) depends on a - b alone.
    for shift in range(-reach, reach + 1):
        along = np.diagonal(given_new, offset=shift)
        np.testing.assert_allclose(along, along[0], rtol=1e-7)


def test_both_values_together_cost_what_the_sharper_one_costs() -> None:
    reach, before, added = 6, Fraction(3, 2), Fraction(2)
    table = np.log(law_of_pairs(before, added, reach))
    losses = np.abs(table[1:, 1:] - table[:-1, :-1])  # one row more moves both values by one
    rate = float(1 / SharpenedLaplace.of(before, added).scale)
    assert losses.max() == pytest.approx(rate, rel=1e-6)
    assert rate == pytest.approx(float(1 / before + 1 / added))


def test_pairs_are_drawn_from_the_proved_law() -> None:
    first, second = drawn(BEFORE, ADDED)
    reach = 4
    table = law_of_pairs(BEFORE, ADDED, reach)
    near = (np.abs(first) <= reach) & (np.abs(second) <= reach)
    counts = np.zeros_like(table)
    np.add.at(counts, (first[near] + reach, second[near] + reach), 1)
    observed = np.append(counts.ravel(), SAMPLES - near.sum())
    expected = SAMPLES * np.append(table.ravel(), 1 - table.sum())
    assert stats.chisquare(observed, expected).pvalue > 1e-4


@pytest.mark.parametrize("factor", [Fraction(97, 100), Fraction(103, 100)], ids=["too little", "too much"])
@pytest.mark.parametrize("wrong", ["before", "added"])
def test_a_scale_three_percent_off_is_noticed(wrong: str, factor: Fraction) -> None:
    before, added = (BEFORE * factor, ADDED) if wrong == "before" else (BEFORE, ADDED * factor)
    scale = SharpenedLaplace.of(BEFORE, ADDED).scale
    assert abs(deviations(drawn(BEFORE, ADDED)[1], scale)) < MOST_DEVIATIONS
    assert abs(deviations(drawn(before, added)[1], scale)) > MOST_DEVIATIONS


def test_noise_may_be_sharpened_again_and_again() -> None:
    source, scales = SeededWords(3), [Fraction(40), Fraction(30), Fraction(20), Fraction(10)]
    noise = discrete_laplace(scales[0], SAMPLES, source=source)
    for number in range(1, len(scales)):
        before = noise
        noise = sharpened_laplace(before, scales[:number], scales[number], source=source)
        rate = sum(1 / scale for scale in scales[: number + 1])
        assert abs(deviations(noise, 1 / rate)) < MOST_DEVIATIONS
        correlation = np.corrcoef(np.abs(before - noise), np.abs(noise))[0, 1]
        assert abs(correlation) < MOST_DEVIATIONS / np.sqrt(SAMPLES)


def test_sharper_noise_lies_between_fresh_clocks_of_what_was_added() -> None:
    """However noise came to be chosen, sharpening bounds it: what guaranteed intervals rest on."""
    far = sharpened_laplace(np.full(SAMPLES, 1000), [BEFORE], ADDED, source=SeededWords(4))
    for least in range(1, 12):
        share = np.exp(-least / float(ADDED))
        assert (far >= least).mean() <= share + MOST_DEVIATIONS * np.sqrt(share / SAMPLES)
        assert (-far >= least).mean() <= share + MOST_DEVIATIONS * np.sqrt(share / SAMPLES)


def test_how_the_tape_is_cut_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    noise = discrete_laplace(20, 500, source=SeededWords(1))
    whole = sharpened_laplace(noise, [Fraction(20)], Fraction(7), source=SeededWords(2))
    for words in (40, 97, 2**15):
        monkeypatch.setattr(sharpened, "WORDS_PER_REFILL", words)
        again = sharpened_laplace(noise, [Fraction(20)], Fraction(7), source=SeededWords(2))
        np.testing.assert_array_equal(again, whole)


@pytest.mark.parametrize(("scales", "added"), [([Fraction(0)], Fraction(1)), ([Fraction(1)], Fraction(-1))])
def test_scales_that_are_none_are_refused(scales: list[Fraction], added: Fraction) -> None:
    with pytest.raises(PrivacyError):
        sharpened_laplace(np.zeros(2, np.int64), scales, added)


def test_noise_at_the_ends_of_64_bits_stays_within_fresh_clocks() -> None:
    far = np.array([2**63 - 1, -(2**63) + 1] * 200)
    sharper = sharpened_laplace(far, [Fraction(2**57)], Fraction(2**57), source=SeededWords(6))
    assert (np.abs(sharper) < 64 * 2.0**57).all()
    with pytest.raises(OverflowError):
        sharpened_laplace(np.array([-(2**63)]), [Fraction(1)], Fraction(1))
