"""The exact sampler of ranks against its law, and against laws whose epsilon is 3% off, which it must not fit.

What is proved in docs/proofs/rank.md is tested here.
"""

from fractions import Fraction
from functools import cache

import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats

from support.seeded import SeededWords
from veilcube.curator.sampling import rank as rank_module
from veilcube.curator.sampling.rank import draw_rank, draw_ranks
from veilcube.errors import PrivacyError, QueryError, TableError
from veilcube.privacy.rank_mechanisms import rank_distribution

METHODS = ["permute-and-flip", "exponential"]
PLAUSIBLE = 1e-4
IMPOSSIBLE = 1e-6
DRAWS = 400_000
# Answers with probabilities around a tenth that lie several rows away: there a change of epsilon shows most.
COUNTS = (2, 1, 3, 1, 2, 1, 4)
CASES = [(Fraction(4, 5), 1), (Fraction(1), 3), (Fraction(7, 3), 2), (Fraction(3, 10), 5)]


@cache
def observed(epsilon: Fraction, rank: int, method: str) -> npt.NDArray[np.int64]:
    draws = draw_ranks(COUNTS, epsilon, DRAWS, rank, method, source=SeededWords(8128))
    return np.bincount(draws, minlength=len(COUNTS))


def p_value(epsilon: Fraction, rank: int, method: str, stretch: Fraction = Fraction(1)) -> float:
    expected = DRAWS * rank_distribution(COUNTS, epsilon * stretch, rank, method)
    seen = observed(epsilon, rank, method)
    common = expected >= 10
    expected = np.append(expected[common], expected[~common].sum())
    seen = np.append(seen[common], seen[~common].sum())
    kept = expected > 0
    return float(stats.chisquare(seen[kept], expected[kept]).pvalue)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("epsilon", "rank"), CASES)
def test_draws_have_the_law_of_rank_distribution(epsilon: Fraction, rank: int, method: str) -> None:
    assert p_value(epsilon, rank, method) > PLAUSIBLE


@pytest.mark.parametrize("stretch", [Fraction(97, 100), Fraction(103, 100)])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("epsilon", "rank"), CASES)
def test_the_check_fails_for_an_epsilon_3_percent_off(
    epsilon: Fraction, rank: int, method: str, stretch: Fraction
) -> None:
    assert p_value(epsilon, rank, method, stretch) < IMPOSSIBLE


def test_the_check_tells_the_two_mechanisms_apart() -> None:
    expected = DRAWS * rank_distribution(COUNTS, 1, 3, "exponential")
    assert stats.chisquare(observed(Fraction(1), 3, "permute-and-flip"), expected).pvalue < IMPOSSIBLE


@pytest.mark.parametrize("method", METHODS)
def test_draws_do_not_depend_on_how_the_tape_is_cut(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = draw_ranks(COUNTS, "1/3", 500, 2, method, source=SeededWords(3))
    monkeypatch.setattr(rank_module, "WORDS_FOR_A_SHORT_DRAW", 1)
    monkeypatch.setattr(rank_module, "WORDS_PER_REFILL", 1)
    assert draw_ranks(COUNTS, "1/3", 500, 2, method, source=SeededWords(3)).tolist() == whole.tolist()


@pytest.mark.parametrize("method", METHODS)
def test_each_draw_is_independent_of_the_one_before(method: str) -> None:
    draws = draw_ranks(COUNTS, Fraction(4, 5), DRAWS, 2, method, source=SeededWords(99))
    pairs = np.bincount(draws[::2] * len(COUNTS) + draws[1::2], minlength=len(COUNTS) ** 2)
    law = rank_distribution(COUNTS, Fraction(4, 5), 2, method)
    assert stats.chisquare(pairs, DRAWS / 2 * np.outer(law, law).ravel()).pvalue > PLAUSIBLE


@pytest.mark.parametrize("method", METHODS)
def test_the_system_source_draws_values_of_the_domain(method: str) -> None:
    drawn = {draw_rank(COUNTS, 0.01, method=method) for _ in range(300)}
    assert drawn == set(range(len(COUNTS)))


def test_a_hopeless_value_is_never_drawn_and_a_sure_one_always() -> None:
    assert set(draw_ranks([2**52, 0, 1], "1000000000", 50, source=SeededWords(1)).tolist()) == {2}


def test_an_epsilon_of_many_digits_is_rounded_down_to_one_that_can_be_drawn() -> None:
    a_hair_above_one = Fraction(10**30 + 1, 10**30)
    drawn, at_one = (draw_ranks(COUNTS, epsilon, 100, source=SeededWords(4)) for epsilon in (a_hair_above_one, 1))
    assert drawn.tolist() == at_one.tolist()


def test_no_draws_can_be_asked_for() -> None:
    assert draw_ranks(COUNTS, 1, 0).size == 0


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (([], 1, 1), QueryError),
        (([-1], 1, 1), TableError),
        (([1, 2], 0, 1), PrivacyError),
        (([1, 2], Fraction(1, 2**60 + 1), 1), PrivacyError),
        (([1, 2], 1, -1), PrivacyError),
        (([1, 2], 1, 1.5), PrivacyError),
        (([1, 2], 1, 1, 0), QueryError),
        (([1, 2], 1, 1, 1, "laplace"), QueryError),
    ],
)
def test_bad_input_is_refused(arguments: tuple[object, ...], problem: type[Exception]) -> None:
    with pytest.raises(problem) as refusal:
        draw_ranks(*arguments)  # type: ignore[arg-type]
    assert ". " not in str(refusal.value)
