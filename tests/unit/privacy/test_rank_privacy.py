"""Privacy of every ranked answer on every small table: exact log-ratios of output laws between neighbours.

What is proved in docs/proofs/rank.md is tested here.
"""

from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from functools import cache

import numpy as np
import pytest

import veilcube as vc
from support.protected import recorded_table
from support.rank_laws import Table, small_tables, split_law, with_one_exchanged, with_one_more
from veilcube.planner.quantiles import plan_quantiles
from veilcube.privacy.quantile_split import QuantileSplit
from veilcube.privacy.rank_mechanisms import rank_distribution

Laws = Mapping[Table, np.ndarray]
Relation = Callable[[Table], Iterator[Table]]

HAIR = 1 + 1e-11
DOMAIN, MOST_ROWS = 6, 5


def worst_ratio(laws: Laws, neighbours: Relation) -> float:
    """Return the largest absolute log-ratio over all neighbours among the tables."""
    pairs = ((law, laws[other]) for counts, law in laws.items() for other in neighbours(counts) if other in laws)
    return max(float(np.abs(here - there).max()) for here, there in pairs)


@cache
def rank_laws(epsilon: float, rank: int, method: str) -> Laws:
    """Return the logarithms of the law of every table of up to 5 records on a domain of 6."""
    return {
        counts: np.log(rank_distribution(counts, epsilon, rank, method)) for counts in small_tables(DOMAIN, MOST_ROWS)
    }


@pytest.mark.parametrize("neighbours", [with_one_more, with_one_exchanged])
@pytest.mark.parametrize("method", ["tilted", "permute-and-flip", "exponential"])
@pytest.mark.parametrize("epsilon", [0.05, 0.2, 1])
def test_no_neighbour_changes_a_maximum_or_minimum_by_more_than_epsilon(
    epsilon: float, method: str, neighbours: Relation
) -> None:
    laws = rank_laws(epsilon, 1, method)
    turned = {counts[::-1]: law for counts, law in laws.items()}
    worst = worst_ratio(laws, neighbours)
    assert 0 < worst <= epsilon * HAIR
    assert worst_ratio(turned, neighbours) <= epsilon * HAIR


def test_the_check_notices_a_tilt_whose_two_shares_add_up_to_more_than_epsilon() -> None:
    assert worst_ratio(rank_laws(0.2, 1, "tilted"), with_one_more) > 0.2 / 1.2


@pytest.mark.parametrize("neighbours", [with_one_more, with_one_exchanged])
@pytest.mark.parametrize("rank", [2, 5])
def test_no_neighbour_changes_a_rank_by_more_than_epsilon(rank: int, neighbours: Relation) -> None:
    assert 0.4 < worst_ratio(rank_laws(0.9, rank, "permute-and-flip"), neighbours) <= 0.9 * HAIR


@pytest.mark.parametrize("quantile", ["1/10", "1/4", "1/2", "4/5"])
def test_no_row_changes_a_quantile_by_more_than_epsilon(quantile: str) -> None:
    split = QuantileSplit.read([quantile])

    laws = {
        counts: np.log([chance for _, chance in sorted(split_law(counts, split, [Fraction(7, 10)], slots=1).items())])
        for counts in small_tables(DOMAIN, MOST_ROWS)
    }
    assert 0.3 < worst_ratio(laws, with_one_more) <= 0.7 * HAIR
    # An exchanged row is two steps, so the promise for it is half as strong.
    assert worst_ratio(laws, with_one_exchanged) <= 1.4 * HAIR


@pytest.mark.parametrize("slots", [1, 2])
@pytest.mark.parametrize("quantiles", [["1/3", "2/3"], ["1/4", "1/2", "3/4"], ["1/10", "1/5", "9/10"]])
def test_no_row_changes_several_quantiles_by_more_than_the_sum_of_the_levels(quantiles: list[str], slots: int) -> None:
    plan = plan_quantiles(4, quantiles, "4/5", method="split")
    laws = {counts: split_law(counts, plan.split, plan.budgets, slots) for counts in small_tables(4, 3)}
    assert sum(plan.budgets) == Fraction(4, 5)
    worst = 0.0
    for counts, law in laws.items():
        assert sum(law.values()) == pytest.approx(1)
        for other in with_one_more(counts):
            if other in laws:
                assert law.keys() == laws[other].keys()
                worst = max(worst, *(abs(np.log(chance / laws[other][answer])) for answer, chance in law.items()))
    assert 0.3 < worst <= 0.8 * HAIR


def sums_of_every_small_table(lowest: int, relation: str, epsilon: Fraction) -> dict[Table, tuple[int, Fraction]]:
    """Return the exact sum of every table, and the scale of the noise that a protected table would add to it."""
    schema = vc.Schema([vc.Ordinal("age", lowest, lowest + DOMAIN - 1)])
    found = {}
    for counts in small_tables(DOMAIN, MOST_ROWS):
        table, published = recorded_table(vc.Cube(schema, np.array(counts)), relation)
        table.noisy_sum("age", epsilon=epsilon)
        found[counts] = published[0].exact[0], published[0].scales[0]
    return found


@pytest.mark.parametrize(("relation", "neighbours"), [("add-remove", with_one_more), ("replace", with_one_exchanged)])
@pytest.mark.parametrize("lowest", [0, -2, 3])
def test_no_neighbour_changes_a_noisy_sum_by_more_than_epsilon(
    lowest: int, relation: str, neighbours: Relation
) -> None:
    """With exact fractions: log P(y) is -|y - sum|/scale up to a constant that no table changes."""
    epsilon = Fraction(1, 3)
    sums = sums_of_every_small_table(lowest, relation, epsilon)
    assert len({scale for _, scale in sums.values()}) == 1
    worst = Fraction(0)
    for counts, (here, scale) in sums.items():
        assert here == sum((lowest + place) * count for place, count in enumerate(counts))
        for there, _ in (sums[other] for other in neighbours(counts) if other in sums):
            worst = max(
                worst, *(abs(abs(y - here) - abs(y - there)) / scale for y in (here - 1, here, there, there + 1))
            )
    assert worst == epsilon
