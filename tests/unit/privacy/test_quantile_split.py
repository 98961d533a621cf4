"""Splits of quantiles: which draws there are, what places cost, and rows spread over slots."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from support.rank_laws import small_tables, with_one_more
from veilcube.errors import QueryError, TableError
from veilcube.privacy.quantile_split import QuantileSplit, slots_for, split_costs, spread_rows


@pytest.mark.parametrize("number", [1, 2, 3, 6, 7, 8, 99])
def test_every_quantile_is_drawn_once_after_those_it_lies_between(number: int) -> None:
    split = QuantileSplit.read([Fraction(i, number + 1) for i in range(1, number + 1)])
    drawn: set[int] = set()
    for node in split.nodes:
        assert {node.after, node.before} - {None} <= drawn
        assert node.after is None or node.after < node.index
        assert node.before is None or node.index < node.before
        drawn.add(node.index)
    assert drawn == set(range(number))
    assert max(node.level for node in split.nodes) + 1 == split.levels == number.bit_length()


def test_nodes_of_one_level_never_overlap() -> None:
    split = QuantileSplit.read([i / 100 for i in range(1, 100)])
    for level in range(split.levels):
        spans = sorted(
            (-1 if node.after is None else node.after, 99 if node.before is None else node.before)
            for node in split.nodes
            if node.level == level
        )
        assert all(first[1] <= second[0] for first, second in pairwise(spans))


def test_a_share_is_the_quantile_within_its_node() -> None:
    split = QuantileSplit.read(["1/10", "1/5", "9/10"])
    assert [node.share for node in split.nodes] == [Fraction(1, 5), Fraction(1, 2), Fraction(7, 8)]
    assert [node.is_last for node in split.nodes] == [False, True, True]


@pytest.mark.parametrize("slots", [1, 2, 8])
def test_a_row_more_in_a_value_is_a_row_more_in_one_of_its_slots(slots: int) -> None:
    before = spread_rows(np.arange(40), slots).reshape(40, slots)
    after = spread_rows(np.arange(40) + 1, slots).reshape(40, slots)
    assert (before.sum(axis=1) == np.arange(40)).all()
    assert ((after - before).sum(axis=1) == 1).all()
    assert (after >= before).all()
    assert (before.max(axis=1) - before.min(axis=1)).max() <= 1


def test_about_a_million_slots_are_used() -> None:
    assert [slots_for(cells) for cells in (1, 100, 1 << 19, 1 << 20, 1 << 23)] == [1 << 20, 1 << 13, 2, 1, 1]


@pytest.mark.parametrize("share", ["1/10", "1/2", "3/4"])
def test_one_row_changes_no_miss_by_more_than_the_sensitivity(share: str) -> None:
    (node,) = QuantileSplit.read([share]).nodes
    largest = Fraction(0)
    for counts in small_tables(4, 4):
        for other in with_one_more(counts):
            misses = [[_miss(table, place, node.share) for place in range(4)] for table in (counts, other)]
            largest = max(largest, *(abs(a - b) for a, b in zip(*misses, strict=True)))
    assert largest == node.sensitivity


def test_costs_are_misses_less_the_least_one() -> None:
    (node,) = QuantileSplit.read(["2/5"]).nodes
    for counts in small_tables(4, 4):
        costs = split_costs(np.array(counts), node, "1/2")
        misses = [_miss(counts, place, node.share) for place in range(4)]
        expected = [(miss - min(misses)) * Fraction(1, 2) / (2 * node.sensitivity) for miss in misses]
        assert [amount * costs.rate for amount in costs.amounts.tolist()] == expected


def test_too_many_rows_are_refused() -> None:
    with pytest.raises(TableError, match=r"at most 2\*\*41 rows"):
        spread_rows(np.array([2**41, 1]), 2)


@pytest.mark.parametrize(
    "quantiles", [[], [0], [1], [0.5, 0.5], [0.6, 0.4], ["x"], [-0.1], [float("nan")], 0.5, [None]]
)
def test_quantiles_that_are_none_are_refused(quantiles: object) -> None:
    with pytest.raises(QueryError, match="quantiles must be 1 to 10,000 shares"):
        QuantileSplit.read(quantiles)  # type: ignore[arg-type]


def _miss(counts: tuple[int, ...], place: int, share: Fraction) -> Fraction:
    wanted = share * sum(counts)
    below = sum(counts[:place])
    return max(below - wanted, wanted - below - counts[place], Fraction(0))
