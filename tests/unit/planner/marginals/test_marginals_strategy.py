"""Marginals: the budget divided among the tables, and refusal of what they cannot answer."""

import itertools

import numpy as np
import pytest

from veilcube.errors import PlanError
from veilcube.planner import Marginals, plan
from veilcube.query import Workload
from veilcube.schema import Ordinal, Schema

SCHEMA = Schema([Ordinal("a", 1, 30), Ordinal("b", 1, 5), Ordinal("c", 1, 2)])


def test_the_division_is_no_worse_than_any_small_one() -> None:
    workload = Workload.marginals(SCHEMA, 2)
    found = plan(SCHEMA, 0.01, Marginals(2), workload).expected_error
    others = [
        plan(SCHEMA, 0.01, Marginals(2, multipliers), workload).expected_error
        for multipliers in itertools.product((1, 2, 3, 4), repeat=3)
    ]
    assert found <= 1.004 * min(others)
    assert found < 0.97 * plan(SCHEMA, 0.01, Marginals(2, (1, 1, 1)), workload).expected_error


def test_without_a_workload_its_own_tables_are_planned_for() -> None:
    chosen = plan(SCHEMA, 1, "marginals")
    assert len(chosen.workload) == 30 * 5 + 30 * 2 + 5 * 2
    assert chosen.strategy.k == 2
    assert chosen.operator.multipliers == Marginals(2).operator(SCHEMA).multipliers


def test_large_tables_are_planned_for_by_a_sample_of_their_cells() -> None:
    schema = Schema([Ordinal("a", 1, 800), Ordinal("b", 1, 500), Ordinal("c", 1, 3)])
    workload = Marginals(2).natural_workload(schema)
    assert len(workload) < 800 * 500
    narrowed = workload.high - workload.low + 1 == 1
    assert set(narrowed.sum(axis=1).tolist()) == {2}
    assert np.mean(narrowed[:, 0] & narrowed[:, 1]) == pytest.approx(800 * 500 / (800 * 503 + 1500), abs=0.01)


def test_tables_over_all_attributes_are_the_identity() -> None:
    workload = Workload.marginals(SCHEMA, 3)
    full, plain = plan(SCHEMA, 1, Marginals(3), workload), plan(SCHEMA, 1, "identity", workload)
    np.testing.assert_allclose(full.stddev(workload), plain.stddev(workload))


def test_a_workload_beyond_the_tables_is_refused() -> None:
    with pytest.raises(PlanError, match=r"cannot answer the workload.*at most 2"):
        plan(SCHEMA, 1, Marginals(2), Workload.marginals(SCHEMA, 3))


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"k": 0}, "at least 1"),
        ({"k": True}, "at least 1"),
        ({"k": 4}, "do not exist"),
        ({"k": 2, "multipliers": (1, 1)}, "need 3 whole multipliers"),
        ({"k": 2, "multipliers": (1, 0, 1)}, "need 3 whole multipliers"),
    ],
)
def test_what_makes_no_sense_is_refused(asked: dict[str, object], words: str) -> None:
    with pytest.raises(PlanError, match=words):
        Marginals(**asked).operator(SCHEMA)


def test_too_many_tables_are_refused() -> None:
    with pytest.raises(PlanError, match="more than 2,000"):
        Marginals(6).operator(Schema([Ordinal(f"a{number}", 0, 1) for number in range(20)]))
