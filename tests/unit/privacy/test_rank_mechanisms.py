"""The laws of the rank mechanisms against brute force in rational arithmetic, and their privacy, table by table.

With epsilon = 2 ln 2 every coin has a probability 2^-g, so all probabilities are fractions: the oracles below and the
privacy check are exact, and the doubles of ``rank_distribution`` are held to them.
"""

import math
from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from itertools import combinations_with_replacement, permutations

import numpy as np
import pytest

from veilcube.errors import PrivacyError, QueryError, TableError
from veilcube.privacy.rank_mechanisms import rank_distribution, rank_shortfalls

METHODS = ["permute-and-flip", "exponential"]
TWO_LOG_2 = 2 * math.log(2)
Table = tuple[int, ...]


def tables(domain: int, most_rows: int) -> Iterator[Table]:
    for rows in range(most_rows + 1):
        for values in combinations_with_replacement(range(domain), rows):
            yield tuple(values.count(value) for value in range(domain))


def with_one_more(counts: Table) -> Iterator[Table]:
    for value in range(len(counts)):
        yield (*counts[:value], counts[value] + 1, *counts[value + 1 :])


def shortfalls_by_definition(counts: Table, rank: int) -> list[int]:
    data = [value for value, count in enumerate(counts) for _ in range(count)]
    above = [sum(x > value for x in data) for value in range(len(counts))]
    at_least = [sum(x >= value for x in data) for value in range(len(counts))]
    return [max(a - (rank - 1), rank - b, 0) for a, b in zip(above, at_least, strict=True)]


@cache
def coins(counts: Table, rank: int) -> tuple[Fraction, ...]:
    shortfalls = shortfalls_by_definition(counts, rank)
    return tuple(Fraction(1, 2 ** (shortfall - min(shortfalls))) for shortfall in shortfalls)


@cache
def exact_permute_and_flip(heads: tuple[Fraction, ...]) -> tuple[Fraction, ...]:
    """P(r) = p_r Σ over sets of coins visited before r; by the polynomial Π_{j≠r} (1 - p_j t) integrated over t."""
    chances = []
    for chosen, head in enumerate(heads):
        polynomial = [Fraction(1)]
        for other, tails in enumerate(heads):
            if other != chosen:
                shifted = [Fraction(0), *(-tails * c for c in polynomial)]
                polynomial = [a + b for a, b in zip([*polynomial, Fraction(0)], shifted, strict=True)]
        chances.append(head * sum((c / (power + 1) for power, c in enumerate(polynomial)), Fraction(0)))
    return tuple(chances)


def exact_exponential(heads: tuple[Fraction, ...]) -> tuple[Fraction, ...]:
    return tuple(head / sum(heads) for head in heads)


def exact_law(counts: Table, rank: int, method: str) -> tuple[Fraction, ...]:
    heads = coins(counts, rank)
    return exact_exponential(heads) if method == "exponential" else exact_permute_and_flip(heads)


def permute_and_flip_by_enumeration(heads: tuple[Fraction, ...]) -> list[Fraction]:
    chances = [Fraction(0)] * len(heads)
    orders = list(permutations(range(len(heads))))
    for order in orders:
        nobody_yet = Fraction(1, len(orders))
        for value in order:
            chances[value] += nobody_yet * heads[value]
            nobody_yet *= 1 - heads[value]
    return chances


def test_the_exponential_law_of_a_maximum_has_the_published_golden_values() -> None:
    # ERRATA: domain 1..6, data (2, 3, 3, 5), epsilon 1, k 1.
    expected = [0.0425842788, 0.0702096062, 0.1908494967, 0.1908494967, 0.3146576248, 0.1908494967]
    assert rank_distribution([0, 1, 2, 0, 1, 0], 1, method="exponential") == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize("rank", [1, 2, 3, 5])
def test_shortfalls_are_those_of_the_definition(rank: int) -> None:
    for counts in tables(domain=4, most_rows=4):
        assert rank_shortfalls(counts, rank).tolist() == shortfalls_by_definition(counts, rank)


@pytest.mark.parametrize("counts", [(1,), (0, 0), (0, 1, 2, 0, 1), (3, 0, 0, 2, 1, 4), (5, 0, 0, 0, 0, 0)])
@pytest.mark.parametrize("rank", [1, 3])
def test_permute_and_flip_has_the_law_of_all_orders_enumerated(counts: Table, rank: int) -> None:
    by_orders = permute_and_flip_by_enumeration(coins(counts, rank))
    assert tuple(by_orders) == exact_permute_and_flip(coins(counts, rank))
    assert rank_distribution(counts, TWO_LOG_2, rank) == pytest.approx([float(p) for p in by_orders], rel=1e-12)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("rank", [1, 2, 4])
def test_no_row_changes_the_log_probability_of_an_answer_by_more_than_epsilon(rank: int, method: str) -> None:
    for counts in tables(domain=6, most_rows=4):
        law = exact_law(counts, rank, method)
        for neighbour in with_one_more(counts):
            for here, there in zip(law, exact_law(neighbour, rank, method), strict=True):
                assert here <= 4 * there
                assert there <= 4 * here


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("epsilon", [0.05, 1, 6])
@pytest.mark.parametrize("rank", [1, 3])
def test_the_doubles_keep_the_promise_on_every_small_table(rank: int, epsilon: float, method: str) -> None:
    laws = {counts: np.log(rank_distribution(counts, epsilon, rank, method)) for counts in tables(6, most_rows=5)}
    worst = max(
        float(np.abs(law - laws[neighbour]).max())
        for counts, law in laws.items()
        for neighbour in with_one_more(counts)
        if neighbour in laws
    )
    assert 0.5 * epsilon < worst <= epsilon * (1 + 1e-12)


def test_the_privacy_check_would_notice_a_rate_that_is_not_halved() -> None:
    laws = [np.log(rank_distribution(counts, 2, method="exponential")) for counts in [(0, 1, 0), (0, 1, 1)]]
    assert float(np.abs(laws[0] - laws[1]).max()) > 1


@pytest.mark.parametrize("method", METHODS)
def test_doubles_agree_with_fractions_on_a_wide_domain(method: str) -> None:
    counts = tuple(np.random.default_rng(5).poisson(0.3, 40).tolist())
    expected = [float(p) for p in exact_law(counts, 4, method)]
    assert rank_distribution(counts, TWO_LOG_2, 4, method) == pytest.approx(expected, rel=1e-11)


@pytest.mark.parametrize("epsilon", [1e-6, 1e-3, 0.1, 50])
@pytest.mark.parametrize("size", [1, 2, 300, 5_000])
def test_permute_and_flip_probabilities_add_up_to_one(epsilon: float, size: int) -> None:
    counts = np.random.default_rng(size).integers(0, 5, size)
    law = rank_distribution(counts, epsilon, 1 + size // 3)
    assert law.sum() == pytest.approx(1, abs=1e-11)
    assert law.min() >= 0


def test_permute_and_flip_never_expects_a_larger_shortfall() -> None:
    for counts in tables(domain=5, most_rows=4):
        shortfalls = rank_shortfalls(counts, 2)
        expected = [float(rank_distribution(counts, 0.7, 2, method) @ shortfalls) for method in METHODS]
        assert expected[0] <= expected[1] + 1e-12


def test_an_empty_table_gives_every_value_a_chance_by_rank_alone() -> None:
    assert rank_distribution([0, 0, 0], 1) == pytest.approx([1 / 3] * 3)


def test_numbers_of_rows_beyond_exponents_of_doubles_do_no_harm() -> None:
    assert rank_distribution([2**52, 1, 2**51], "1000000").tolist() == [0, 0, 1]


@pytest.mark.parametrize(
    ("counts", "problem"),
    [
        ([[1, 2], [3, 4]], TableError),
        ([[1], [2, 3]], TableError),
        ([], QueryError),
        ([1, -1], TableError),
        ([1.5, 2], TableError),
        (["a"], TableError),
        ([2**54, 1], TableError),
        ([2**53, 2**53], TableError),
        (7, TableError),
    ],
)
def test_bad_counts_are_refused_without_quoting_them(counts: object, problem: type[Exception]) -> None:
    with pytest.raises(problem, match=r"ranked attribute|domain of a rank is empty") as refusal:
        rank_distribution(counts, 1)  # type: ignore[arg-type]
    assert not any(str(number) in str(refusal.value) for number in (2**54, -1, 1.5))


@pytest.mark.parametrize("rank", [0, -1, 1.5, True, None, "first", 2**60])
def test_a_rank_that_is_no_place_in_an_order_is_refused(rank: object) -> None:
    with pytest.raises(QueryError, match="rank must be a whole number from 1"):
        rank_distribution([1, 2], 1, rank)  # type: ignore[arg-type]


def test_an_unknown_method_is_refused() -> None:
    with pytest.raises(QueryError, match="use 'permute-and-flip' or 'exponential'"):
        rank_distribution([1, 2], 1, method="noisy")


@pytest.mark.parametrize("epsilon", [0, -1, float("nan"), float("inf"), "much"])
def test_an_epsilon_that_is_no_positive_number_is_refused(epsilon: float | str) -> None:
    with pytest.raises(PrivacyError, match="epsilon must be"):
        rank_distribution([1, 2], epsilon)
