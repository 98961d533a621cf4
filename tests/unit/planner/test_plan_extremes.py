"""Plans at the extremes: targets that another strategy reaches with less, and domains beyond all memory."""

import sys

import pytest

from veilcube.errors import PlanError
from veilcube.planner import plan
from veilcube.query import Workload
from veilcube.schema import Nominal, Ordinal, Schema

PEOPLE = Schema([Ordinal("age", 17, 90), Ordinal("hours", 0, 99), Nominal("sex", ["Female", "Male"])])


@pytest.mark.parametrize("error", [50.0, 20.0, 5.0, 1.0, 0.9])
def test_no_strategy_reaches_an_error_with_less_than_auto_plans(error: float) -> None:
    # Without questions nothing is compared for three attributes: what is planned there is an upper bound.
    found = plan(PEOPLE, error=error, workload=Workload.random_ranges(PEOPLE, 500, seed=0))
    for name in ("identity", "tree"):
        try:
            other = plan(PEOPLE, strategy=name, error=error, workload=found.workload)
        except PlanError:
            continue
        assert found.epsilon <= other.epsilon
    assert found.expected_error == min(candidate.expected_error for candidate in found.candidates)


def test_tables_of_more_cells_than_integers_count_are_planned() -> None:
    vast = Schema([Ordinal("t", 0, 10**10), Ordinal("u", 0, 10**10)])
    assert plan(vast).strategy.name == "marginals"


def test_a_domain_beyond_all_memory_is_refused_in_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def exhausting(*_: object, **__: object) -> None:
        raise MemoryError

    monkeypatch.setattr(sys.modules["veilcube.planner.planning"], "candidates_for", exhausting)
    with pytest.raises(PlanError, match=r"14,800 cells is too large to plan.*; use wider bins"):
        plan(PEOPLE)
