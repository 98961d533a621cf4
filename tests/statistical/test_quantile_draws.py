"""Draws of whole splits and of the tilted mechanism against their laws, and against wrong ones that must not fit.

A single draw is told from one whose epsilon is 3% off; whole splits, which take longer, from budgets that are 10% off.

What is proved in docs/proofs/rank.md is tested here.
"""

from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from scipy import stats

from support.rank_laws import split_law
from support.seeded import SeededWords
from veilcube.curator.mechanisms.protected.quantiles import draw_quantiles
from veilcube.curator.sampling.rank import draw_ranks
from veilcube.privacy.quantile_split import QuantileSplit
from veilcube.privacy.rank_mechanisms import rank_distribution

COUNTS = np.array([3, 1, 2, 4])
SPLIT = QuantileSplit.read(["1/4", "1/2", "3/4"])
BUDGETS = (Fraction(3, 2), Fraction(2))
DRAWS, SLOTS = 60_000, 2
PLAUSIBLE, IMPOSSIBLE = 1e-4, 1e-6


@cache
def observed() -> dict[tuple[int, ...], int]:
    source = SeededWords(8128)
    found: dict[tuple[int, ...], int] = {}
    for _ in range(DRAWS):
        answer = tuple(draw_quantiles(COUNTS, SPLIT, BUDGETS, slots=SLOTS, source=source))
        found[answer] = found.get(answer, 0) + 1
    return found


def p_value(stretch: Fraction) -> float:
    law = split_law(COUNTS, SPLIT, [budget * stretch for budget in BUDGETS], SLOTS)
    expected = np.array([DRAWS * chance for chance in law.values()])
    seen = np.array([observed().get(answer, 0) for answer in law])
    common = expected >= 10
    expected = np.append(expected[common], expected[~common].sum())
    seen = np.append(seen[common], seen[~common].sum())
    kept = expected > 0
    return float(stats.chisquare(seen[kept], expected[kept]).pvalue)


@pytest.mark.slow
def test_draws_of_a_split_have_its_law() -> None:
    assert p_value(Fraction(1)) > PLAUSIBLE


@pytest.mark.slow
@pytest.mark.parametrize("stretch", [Fraction(90, 100), Fraction(110, 100)])
def test_the_check_fails_for_a_budget_that_is_off(stretch: Fraction) -> None:
    assert p_value(stretch) < IMPOSSIBLE


@pytest.mark.parametrize("epsilon", [Fraction(1, 20), Fraction(1, 30)])
def test_draws_of_the_tilted_mechanism_have_its_law(epsilon: Fraction) -> None:
    counts = [30, 20, 40, 10, 15, 5, 2]
    draws = draw_ranks(counts, epsilon, 400_000, 1, "tilted", source=SeededWords(5))
    seen = np.bincount(draws, minlength=len(counts))
    right, wrong = (400_000 * rank_distribution(counts, epsilon * s, 1, "tilted") for s in (1, Fraction(103, 100)))
    assert stats.chisquare(seen, right).pvalue > PLAUSIBLE
    assert stats.chisquare(seen, wrong * right.sum() / wrong.sum()).pvalue < IMPOSSIBLE
