"""Workloads: the constructors of the contract, and what they refuse."""

import numpy as np
import pytest

from veilcube.errors import QueryError
from veilcube.query import Workload
from veilcube.schema import Nominal, Ordinal, Schema

SCHEMA = Schema([Ordinal("age", 17, 90), Nominal("sex", ["Female", "Male"])])


def test_ranges_keep_inclusive_cell_indices() -> None:
    workload = Workload.ranges(SCHEMA, [[0, 0], [3, 1]], [[73, 1], [3, 1]])
    assert len(workload) == 2
    assert workload.high.tolist() == [[73, 1], [3, 1]]
    with pytest.raises(ValueError, match="read-only"):
        workload.low[0, 0] = 5


def test_ranges_do_not_alias_the_callers_arrays() -> None:
    low = np.zeros((1, 2), dtype=np.int64)
    workload = Workload.ranges(SCHEMA, low, low + 1)
    low[0, 0] = 9
    assert workload.low[0, 0] == 0


def test_prefixes_end_at_every_cell() -> None:
    workload = Workload.prefixes(Schema([Ordinal("x", 1, 4)]))
    assert workload.low.ravel().tolist() == [0, 0, 0, 0]
    assert workload.high.ravel().tolist() == [0, 1, 2, 3]


def test_random_ranges_have_uniform_lengths_and_fit() -> None:
    schema = Schema([Ordinal("x", 1, 10)])
    workload = Workload.random_ranges(schema, 50_000, seed=3)
    lengths = (workload.high - workload.low + 1).ravel()
    assert np.abs(np.bincount(lengths, minlength=11)[1:] / 50_000 - 0.1).max() < 0.01
    assert workload.low.min() == 0
    assert workload.high.max() == 9
    again = Workload.random_ranges(schema, 50_000, seed=3)
    np.testing.assert_array_equal(workload.low, again.low)


def test_marginals_hold_every_cell_of_every_choice() -> None:
    schema = Schema([Ordinal("a", 1, 3), Ordinal("b", 1, 4), Ordinal("c", 1, 5)])
    assert len(Workload.marginals(schema, 2)) == 12 + 15 + 20
    assert len(Workload.marginals(schema, 0)) == 1
    assert len(Workload.marginals(schema, 3)) == 60


def test_from_sql_expands_groups() -> None:
    workload = Workload.from_sql(SCHEMA, ["age < 30", "SELECT sex, COUNT(*) FROM t GROUP BY sex"])
    assert workload.low.tolist() == [[0, 0], [0, 0], [0, 1]]
    assert workload.high.tolist() == [[12, 1], [73, 0], [73, 1]]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Workload(SCHEMA, []), "at least one"),
        (lambda: Workload(SCHEMA, {"age": 3}), "list"),
        (lambda: Workload(SCHEMA, "age = 20"), "list"),
        (lambda: Workload(SCHEMA, ["SELECT sex, COUNT(*) FROM t GROUP BY sex"]), "GROUP BY"),
        (lambda: Workload.ranges(SCHEMA, [[2, 0]], [[1, 1]]), "inverted"),
        (lambda: Workload.ranges(SCHEMA, [[0, 0]], [[74, 1]]), "leaves the cube"),
        (lambda: Workload.ranges(SCHEMA, [[0]], [[1]]), "shape"),
        (lambda: Workload.ranges(SCHEMA, [[0.5, 0]], [[1, 1]]), "whole numbers"),
        (lambda: Workload.marginals(SCHEMA, 3), "do not exist"),
        (lambda: Workload.random_ranges(SCHEMA, 0, seed=1), "between 1 and"),
        (lambda: Workload.prefixes(Schema([Ordinal("x", 1, 10**8)])), "between 1 and"),
    ],
)
def test_a_workload_that_makes_no_sense_is_refused(make: object, words: str) -> None:
    with pytest.raises(QueryError, match=words):
        make()
