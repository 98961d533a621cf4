"""Plans at the extremes: targets that another strategy reaches with less, and domains beyond all memory."""

import re
import sys

import pyarrow as pa
import pytest

from veilcube.errors import CapacityError, PlanError
from veilcube.planner import Marginals, plan
from veilcube.query import Workload
from veilcube.schema import Nominal, Ordinal, Schema
from veilcube.session import release
from veilcube.system import memory

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


def test_tables_of_more_cells_than_integers_count_are_refused_by_their_size() -> None:
    vast = Schema([Ordinal("t", 0, 10**10), Ordinal("u", 0, 10**10)])
    with pytest.raises(CapacityError, match=r"releasing 20,000,000,002 cells .*; no table of its attributes is small"):
        plan(vast)
    with pytest.raises(CapacityError, match="releasing 100,000,000,020,000,000,001 cells"):
        plan(vast, strategy="marginals")


LONG = Schema([Ordinal("t", 1, 10**6), Ordinal("u", 1, 10**6)])
FIVE = Schema([Ordinal(f"x{number}", 1, 1000) for number in range(5)])
LINE = Schema([Ordinal("t", 1, 10**12)])
RANGES = [{"x0": (1, 9)}, {"x1": (3, 700)}]


@pytest.mark.parametrize(("schema", "name"), [(LONG, "marginals"), (FIVE, "grouped tables")], ids=["two", "five"])
def test_auto_counts_tables_where_the_cube_does_not_fit_and_says_so(schema: Schema, name: str) -> None:
    for promise in ({"epsilon": 1}, {"rho": "1/10"}):
        made = plan(schema, **promise)
        assert made.strategy.name == name
        assert "more than this machine can hold, so tables of attributes are counted in its place" in made.reason
        assert made.to_dict()["reason"] == made.reason
        assert "coarser" not in made.reason


def test_auto_does_so_for_named_questions_too() -> None:
    for schema, queries in ((LONG, [{"t": (1, 9)}, {"u": (3, 700)}]), (FIVE, RANGES)):
        made = plan(schema, workload=Workload(schema, queries))
        assert made.strategy.name in ("marginals", "grouped tables")
        assert "so tables of attributes are counted" in made.reason


def test_how_much_fits_depends_on_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    wide = Schema([Ordinal("t", 1, 5000), Ordinal("u", 1, 5000)])
    monkeypatch.setattr(memory, "_machine_memory", lambda: 2**33)
    assert plan(wide).reason == ""
    monkeypatch.setattr(memory, "_machine_memory", lambda: 2**28)
    assert plan(wide).strategy.name == "marginals"


def test_one_attribute_that_no_machine_holds_is_refused_in_one_sentence() -> None:
    for strategy in ("auto", "identity", "wavelet", "grouped tables", Marginals(k=1)):
        with pytest.raises(CapacityError, match=r"releasing 1,000,000,000,000 cells needs .* wider bins"):
            plan(LINE, strategy=strategy)


@pytest.mark.parametrize("strategy", ["identity", "tree", "wavelet", "marginals"])
def test_a_plan_is_refused_as_the_release_would_be(strategy: str) -> None:
    rows = pa.table({"t": [1, 2], "u": [3, 4]})
    with pytest.raises(CapacityError) as planned:
        plan(LONG, strategy=strategy)
    with pytest.raises(CapacityError) as released:
        release(rows, epsilon=1, strategy=strategy, schema=LONG)
    assert _without_memory(planned) == _without_memory(released)


def _without_memory(refused: pytest.ExceptionInfo[CapacityError]) -> str:
    """What is left at the moment differs from one moment to the next."""
    return re.sub(r"only [0-9.,]+ GiB", "", str(refused.value))


def test_tables_in_place_of_a_cube_are_released_and_answer() -> None:
    rows = pa.table({"t": [5] * 3000, "u": [10**6] * 3000})
    made = plan(LONG, epsilon=1)
    found = release(rows, schema=LONG, plan=made)
    answer = found.count(t=5)
    assert answer.low <= 3000 <= answer.high
    assert answer.high - answer.low < 20
    assert made.compare(found).is_kept


def test_a_domain_beyond_all_memory_is_refused_in_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def exhausting(*_: object, **__: object) -> None:
        raise MemoryError

    monkeypatch.setattr(sys.modules["veilcube.planner.planning"], "candidates_for", exhausting)
    with pytest.raises(PlanError, match=r"14,800 cells is too large to plan.*; use wider bins"):
        plan(PEOPLE)
