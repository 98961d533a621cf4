"""Joint noise has the law that is proved of it, and a scale 3% off is noticed at every height.

What is proved in docs/proofs/joint-noise.md is tested here.
"""

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from support.seeded import SeededWords
from veilcube.curator.sampling import joint, joint_laplace
from veilcube.errors import PrivacyError
from veilcube.laws.noise import DiscreteLaplace

SCALES = [Fraction(3), Fraction(5, 2), Fraction(7, 3), Fraction(4)]
TREES = 200_000
FARTHEST = 80
MOST_DEVIATIONS = 4.0


def law_of_each_height(scales: list[Fraction]) -> list[np.ndarray]:
    """Return the exact law of one node's noise at every height, by sums over both halves and over all outside."""
    grid = np.abs(np.arange(-FARTHEST, FARTHEST + 1))
    factors = [np.exp(-grid / float(scale)) for scale in scales]

    def summed(one: np.ndarray, other: np.ndarray) -> np.ndarray:
        return np.convolve(one, other)[FARTHEST : 3 * FARTHEST + 1]

    inside = [factors[0]]
    for factor in factors[1:]:
        inside.append(factor * summed(inside[-1], inside[-1]))
    laws, outside = [], np.ones(grid.size)
    for height in range(len(scales) - 1, -1, -1):
        laws.append(inside[height] * outside)
        if height:
            outside = summed(outside * factors[height], inside[height - 1])
    return [law / law.sum() for law in reversed(laws)]


def deviations(leaves: np.ndarray, scales: list[Fraction]) -> list[float]:
    """Return by how many standard errors the mean size of one node's noise misses its law, at each height."""
    found, grid = [], np.abs(np.arange(-FARTHEST, FARTHEST + 1))
    for height, law in enumerate(law_of_each_height(scales)):
        sizes = np.abs(leaves[:, : 2**height].sum(axis=1))
        mean = float(law @ grid)
        found.append((sizes.mean() - mean) / np.sqrt((law @ grid**2 - mean**2) / sizes.size))
    return found


@pytest.mark.parametrize("heights", [1, 2, 3, 4])
def test_every_height_has_its_exact_law(heights: int) -> None:
    scales = SCALES[:heights]
    leaves = joint_laplace(scales, TREES, source=SeededWords(heights))
    assert max(map(abs, deviations(leaves, scales))) < MOST_DEVIATIONS
    assert max(map(abs, deviations(leaves[:, ::-1], scales))) < MOST_DEVIATIONS


def test_a_pair_has_the_proved_joint_law() -> None:
    scales = [Fraction(2), Fraction(3, 2)]
    leaves = joint_laplace(scales, TREES, source=SeededWords(8))
    near = np.arange(-4, 5)
    grid = np.arange(-60, 61)
    whole = np.exp(-(np.abs(grid[:, None]) + np.abs(grid)) / 2 - np.abs(grid[:, None] + grid) / 1.5)
    whole /= whole.sum()
    inside = whole[56:65, 56:65]
    counts = np.array([[(leaves == (a, b)).all(axis=1).sum() for b in near] for a in near])
    observed = np.append(counts.ravel(), TREES - counts.sum())
    expected = TREES * np.append(inside.ravel(), 1 - inside.sum())
    assert stats.chisquare(observed, expected).pvalue > 1e-4


@pytest.mark.parametrize("factor", [Fraction(97, 100), Fraction(103, 100)], ids=["too little", "too much"])
@pytest.mark.parametrize("height", range(4))
def test_a_scale_three_percent_off_is_noticed_at_every_height(height: int, factor: Fraction) -> None:
    wrong = [scale * factor if number == height else scale for number, scale in enumerate(SCALES)]
    leaves = np.concatenate([joint_laplace(wrong, TREES, source=SeededWords(seed)) for seed in range(3)])
    assert abs(deviations(leaves, SCALES)[height]) > MOST_DEVIATIONS


def test_no_node_is_noisier_than_independent_noise_of_its_scale() -> None:
    grid = np.abs(np.arange(-FARTHEST, FARTHEST + 1))
    for scale, law in zip(SCALES, law_of_each_height(SCALES), strict=True):
        alone = DiscreteLaplace(scale).pmf(np.arange(-FARTHEST, FARTHEST + 1))
        for least in range(1, 30):
            assert law[grid >= least].sum() <= alone[grid >= least].sum() + 1e-12


def test_how_the_tape_is_cut_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = joint_laplace(SCALES, 50, source=SeededWords(3))
    for words in (1, 7, 4096, 2**18):
        monkeypatch.setattr(joint, "WORDS_PER_REFILL", words)
        np.testing.assert_array_equal(joint_laplace(SCALES, 50, source=SeededWords(3)), whole)


def test_sums_far_beyond_a_sharp_scale_are_rejected_and_not_an_overflow() -> None:
    leaves = joint_laplace([Fraction(10**3), Fraction(2**20, 2**57 - 1)], 3, source=SeededWords(5))
    np.testing.assert_array_equal(leaves.sum(axis=1), 0)


@pytest.mark.parametrize("scales", [[], [Fraction(1)] * 14, [Fraction(0)], [Fraction(-1), Fraction(1)]])
def test_scales_that_make_no_tree_are_refused(scales: list[Fraction]) -> None:
    with pytest.raises(PrivacyError):
        joint_laplace(scales, 2)
