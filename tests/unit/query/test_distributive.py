"""Distributive queries: what is refused on made-up partitions, and what the ready-made ones compute."""

from dataclasses import replace

import numpy as np
import pytest

import veilcube as vc
from veilcube.errors import QueryError
from veilcube.query.cell_numbers import cell_numbers
from veilcube.query.distributive import DistributiveQuery

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


@pytest.mark.timeout(200)
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


def test_cells_stand_for_their_numbers_and_bins_for_their_middles() -> None:
    assert cell_numbers(vc.Ordinal("age", 17, 19)).numbers.tolist() == [17, 18, 19]
    pay = cell_numbers(vc.Ordinal("pay", edges=[0, 10_000, 20_000, 50_000]))
    assert (pay.numbers.tolist(), pay.parts_of_one) == ([5_000, 15_000, 35_000], 1)
    tenths = cell_numbers(vc.Ordinal("size", edges=[0, 0.1, 0.5]))
    assert (tenths.numbers.tolist(), tenths.parts_of_one) == ([1, 6], 20)
    assert (tenths.low.tolist(), tenths.high.tolist()) == ([0, 2], [2, 10])


def test_edges_with_too_many_digits_are_refused() -> None:
    with pytest.raises(QueryError, match="too many digits"):
        cell_numbers(vc.Ordinal("x", edges=[0, 1e-15, 1e6]))


@pytest.mark.parametrize(
    "attribute", [vc.Nominal("sex", ["F", "M"]), vc.Ordinal("since", "2020-01", "2020-06", unit="month")]
)
def test_only_queries_of_rows_are_answered_about_names_and_dates(attribute: vc.Nominal | vc.Ordinal) -> None:
    schema = vc.Schema([attribute])
    release = vc.release(vc.Cube(schema, np.full(schema.shape, 30)), epsilon=10)
    for query in (DistributiveQuery.sum(0, 9), DistributiveQuery(lambda n, rows: int(n[:1] @ rows[:1]), max, 9)):
        with pytest.raises(QueryError, match=r"stand for no number|whose parts add up"):
            release.distributive(query, attribute.name)
    with pytest.raises(QueryError, match=r"holds (names|dates), which stand for no number"):
        DistributiveQuery.max(range(9)).fitted(cell_numbers(attribute))
    for query in (DistributiveQuery.count(), DistributiveQuery(rows_in, lambda a, b: a + b, 1)):
        assert release.distributive(query, attribute.name).value == pytest.approx(30 * schema.cells, abs=5)


@pytest.mark.parametrize("edges", [[0, 10_000, 20_000, 50_000], [0, 1, 2, 5], [0, 0.25, 1.5, 2]])
def test_a_release_sums_bins_by_their_middles_as_it_does_without_parts(edges: list[float]) -> None:
    schema = vc.Schema([vc.Ordinal("pay", edges=edges)])
    release = vc.release(vc.Cube(schema, np.array([100, 1_000, 1_100])), epsilon=1)
    ours, theirs = release.distributive(DistributiveQuery.sum(0, 50_000), "pay"), release.sum("pay")
    assert (ours.value, ours.stddev) == pytest.approx((theirs.value, theirs.stddev))
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high))


def test_a_query_of_ones_own_needs_middles_that_are_whole() -> None:
    query = DistributiveQuery(lambda numbers, rows: int(numbers @ rows), lambda a, b: a + b, 100)
    whole, halves = (cell_numbers(vc.Ordinal("x", edges=edges)) for edges in ([0, 2, 4], [0, 1, 2]))
    assert query.fitted(whole) is query
    with pytest.raises(QueryError, match="middles of the bins are not whole numbers"):
        query.fitted(halves)


@pytest.mark.timeout(100)
def test_a_domain_is_never_gone_through() -> None:
    ages = cell_numbers(vc.Ordinal("age", 17, 90))
    for query in (DistributiveQuery.max(range(10**9)), DistributiveQuery.min(range(-(10**18), 10**18, 7))):
        fitted = query.fitted(ages)
        fitted.require_distributive(ages.numbers)
        assert len(fitted.output) <= 74
    assert DistributiveQuery.max(range(10**9)).fitted(ages).output == tuple(range(17, 91))
    for bad in (range(10**30), range(10, 0, -1), range(0), iter(int, 1)):
        with pytest.raises(QueryError, match="domain"):
            DistributiveQuery.max(bad)  # type: ignore[arg-type]
    with pytest.raises(QueryError, match="at most 1,048,576"):
        DistributiveQuery(rows_in, max, 1, range(10**9))


def test_values_that_are_left_out_never_beat_those_that_are_kept() -> None:
    generator = np.random.default_rng(8)
    for _ in range(200):
        numbers = np.unique(generator.integers(-8, 9, 5))
        domain = np.unique(generator.integers(-12, 13, int(generator.integers(1, 9)))).tolist()
        parts = int(generator.integers(1, 4))
        cells = replace(cell_numbers(vc.Ordinal("x", 0, 1)), numbers=numbers, parts_of_one=parts)
        rows = generator.integers(0, 3, numbers.size)
        for make in (DistributiveQuery.max, DistributiveQuery.min):
            kept, every = make(domain).fitted(cells), make([value * parts for value in domain])
            assert set(kept.output) <= set(every.output)
            assert kept.scores_of(numbers, rows).max() == every.scores_of(numbers, rows).max()
            same = dict(zip(every.output, every.scores_of(numbers, rows).tolist(), strict=True))
            assert [same[value] for value in kept.output] == kept.scores_of(numbers, rows).tolist()


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
