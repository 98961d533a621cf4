"""How often parities are learned from noisy histograms, and how often confidence in them is earned."""

from fractions import Fraction

import numpy as np
import pytest

from support.parities import PAPER, parity_table, released
from veilcube.analyst.study.parity import learn_parity, learn_parity_by_elimination
from veilcube.laws.noise import DiscreteLaplace


def test_the_transform_learns_the_papers_vector_at_epsilon_two_thousandths() -> None:
    exact = parity_table(PAPER, rows=100_000, seed=4)
    found = [learn_parity(released(exact, 500, seed)).vector == PAPER for seed in range(300)]
    assert np.mean(found) >= 0.99


def test_the_transform_is_right_more_often_than_elimination() -> None:
    exact = parity_table(PAPER, rows=100_000, seed=5)
    histograms = [released(exact, 1000, seed) for seed in range(20)]
    by_transform = sum(learn_parity(counts).vector == PAPER for counts in histograms)
    by_elimination = sum(
        learn_parity_by_elimination(counts, votes=300, seed=1).vector == PAPER for counts in histograms
    )
    assert by_transform > by_elimination


@pytest.mark.parametrize("knows_noise", [True, False])
@pytest.mark.parametrize("scale", [500, 1000, 1600, 4000])
def test_the_confidence_is_earned(scale: int, knows_noise: bool) -> None:
    exact = parity_table(PAPER, rows=100_000, seed=6)
    noise = DiscreteLaplace(Fraction(scale)) if knows_noise else None
    learned = [learn_parity(released(exact, scale, seed), noise) for seed in range(150)]
    right = np.mean([one.vector == PAPER for one in learned])
    assert np.mean([one.confidence for one in learned]) <= right + 0.03
    sure = [one.vector == PAPER for one in learned if one.confidence >= 0.9]
    assert np.mean(sure or [True]) >= 0.9


def test_rows_without_any_parity_give_no_confidence() -> None:
    generator = np.random.default_rng(8)
    histograms = [generator.multinomial(10_000, np.full(256, 1 / 256)) for _ in range(50)]
    assert np.mean([learn_parity(counts).confidence for counts in histograms]) < 0.2
