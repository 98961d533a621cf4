"""Distributive queries: what is refused on made-up partitions, and what the ready-made ones compute."""

import numpy as np
import pytest

import veilcube as vc
from veilcube.errors import QueryError
from veilcube.query.distributive import DistributiveQuery, cell_numbers

NUMBERS = np.arange(1, 20)


def rows_in(_: np.ndarray, rows: np.ndarray) -> int:
    return int(rows.sum())


def test_the_ready_made_queries_are_distributive_and_right() -> None:
    numbers, rows = np.array([2, 3, 5, 9]), np.array([1, 0, 4, 2])
    queries = {
        7: DistributiveQuery.count(),
        2 + 4 * 5 + 2 * 6: DistributiveQuery.sum(0, 6),
        9: DistributiveQuery.max(range(1, 12)),
        2: DistributiveQuery.min(range(1, 12)),
    }
    for expected, query in queries.items():
        query.require_distributive(NUMBERS)
        assert query.value_of(numbers, rows) == expected


def test_scores_of_a_maximum_are_the_rank_utility() -> None:
    scores = DistributiveQuery.max(range(1, 7)).scores_of(np.array([2, 3, 5]), np.array([1, 2, 1]))
    assert scores.tolist() == [-4, -3, -1, -1, 0, -1]


def test_scores_of_extremes_follow_their_definition_whatever_the_order_of_cells() -> None:
    generator = np.random.default_rng(5)
    for _ in range(30):
        numbers, rows = generator.permutation(np.arange(-6, 7)), generator.integers(0, 3, 13)
        domain = np.unique(generator.integers(-9, 10, 6))
        above = [rows[numbers > value].sum() for value in domain]
        below = [rows[numbers < value].sum() for value in domain]
        none_up = [rows[numbers >= value].sum() == 0 for value in domain]
        none_down = [rows[numbers <= value].sum() == 0 for value in domain]
        largest = DistributiveQuery.max(domain.tolist()).scores_of(numbers, rows)
        smallest = DistributiveQuery.min(domain.tolist()).scores_of(numbers, rows)
        assert largest.tolist() == [-int(a if a else n) for a, n in zip(above, none_up, strict=True)]
        assert smallest.tolist() == [-int(b if b else n) for b, n in zip(below, none_down, strict=True)]


@pytest.mark.timeout(20)
def test_extremes_of_many_cells_among_many_values_are_quick() -> None:
    query = DistributiveQuery.max(range(2**18))
    numbers = np.arange(2**18)
    for _ in range(5):
        assert query.value_of(numbers, np.ones(2**18, np.int64)) == 2**18 - 1


def test_a_merge_of_far_results_is_still_tried_for_its_order() -> None:
    assert DistributiveQuery(rows_in, max, 1).is_monotone([10**30, 0], [10**30 + 9, 5])
    assert not DistributiveQuery(rows_in, lambda a, b: a - b, 1).is_monotone([10**30, 0], [10**30 + 9, 5])
    assert not DistributiveQuery(rows_in, max, 1).is_monotone([0, 0], [2**64, 5])


def test_counts_and_sums_are_linear_and_others_are_not() -> None:
    assert DistributiveQuery.count().is_linear
    assert DistributiveQuery.sum(-5, 5).is_linear
    assert not DistributiveQuery.max(range(5)).is_linear
    assert not DistributiveQuery(lambda _, rows: int(rows.sum() > 0), lambda a, b: a | b, 1).is_linear


@pytest.mark.parametrize(
    ("query", "problem"),
    [
        (DistributiveQuery(rows_in, lambda a, b: a - b, 1), "not associative"),
        (DistributiveQuery(rows_in, lambda a, b: (a + b) // 2, 1), "not associative"),
        (DistributiveQuery(rows_in, max, 1), "not distributive"),
        (DistributiveQuery(lambda numbers, rows: int(numbers @ rows), lambda a, b: a + b, 1), "declared sensitivity"),
        (DistributiveQuery(lambda _, rows: float(rows.sum()), lambda a, b: a + b, 1), "whole numbers"),  # type: ignore[arg-type, return-value]
        (DistributiveQuery(rows_in, max, 1, range(3)), "one whole score for each"),
    ],
)
def test_a_query_that_breaks_its_promise_on_samples_is_refused(query: DistributiveQuery, problem: str) -> None:
    with pytest.raises(QueryError, match=problem) as refusal:
        query.require_distributive(NUMBERS)
    assert ". " not in str(refusal.value)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ((None, max, 1), "needs a function"),
        ((rows_in, max, 0), "sensitivity"),
        ((rows_in, max, 1.5), "sensitivity"),
        ((rows_in, max, 1, []), "domain is empty"),
        ((rows_in, max, 1, [3, 1]), "ascending"),
        ((rows_in, max, 1, [0.5]), "whole numbers"),
        ((rows_in, max, 1, "anything"), "'unlimited' or a list"),
        ((rows_in, max, 1, [2**70]), r"between -2\*\*61 and 2\*\*61"),
        ((rows_in, max, 1, [-(2**63), 0]), r"between -2\*\*61 and 2\*\*61"),
        ((rows_in, max, 1, "unlimited", object()), "name of a distributive query"),
    ],
)
def test_a_query_that_is_not_well_formed_is_refused(arguments: tuple[object, ...], problem: str) -> None:
    with pytest.raises(QueryError, match=problem):
        DistributiveQuery(*arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize("bounds", [(5, 1), (0, float("inf")), (float("nan"), 1), (True, 5)])
def test_bounds_that_are_inverted_or_infinite_are_refused(bounds: tuple[int, int]) -> None:
    with pytest.raises(QueryError, match="two finite whole numbers"):
        DistributiveQuery.sum(*bounds)


def test_cells_without_whole_numbers_are_numbered_from_0() -> None:
    assert cell_numbers(vc.Ordinal("age", 17, 19)).tolist() == [17, 18, 19]
    assert cell_numbers(vc.Ordinal("pay", edges=[0, 10, 50])).tolist() == [0, 1]
    assert cell_numbers(vc.Nominal("sex", ["F", "M"])).tolist() == [0, 1]


def test_a_release_answers_a_linear_query_as_it_does_a_sum() -> None:
    schema = vc.Schema([vc.Ordinal("age", 0, 9), vc.Nominal("sex", ["F", "M"])])
    release = vc.release(vc.Cube(schema, np.full(schema.shape, 30)), epsilon=1, strategy=vc.Identity())
    ours, theirs = release.distributive(vc.DistributiveQuery.sum(0, 9), "age"), release.sum("age")
    assert (ours.value, ours.low, ours.high) == pytest.approx((theirs.value, theirs.low, theirs.high))
    assert release.distributive(vc.DistributiveQuery.count(), "age").value == pytest.approx(release.count().value)


def test_a_release_refuses_a_query_whose_parts_do_not_add_up() -> None:
    schema = vc.Schema([vc.Ordinal("age", 0, 9)])
    release = vc.release(vc.Cube(schema, np.full(10, 30)), epsilon=1, strategy=vc.Identity())
    with pytest.raises(QueryError, match="whose parts add up"):
        release.distributive(vc.DistributiveQuery.max(range(10)), "age")
