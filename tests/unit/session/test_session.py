"""Where both sides meet: nothing is charged for what fails, and nothing private comes out."""

from pathlib import Path

import duckdb
import numpy as np
import pytest

import veilcube as vc
from veilcube.errors import BudgetExceededError, CapacityError, LedgerError, PlanError, TableError

SCHEMA = vc.Schema([vc.Ordinal("age", 1, 20)])
CUBE = vc.Cube(SCHEMA, np.arange(20))


@pytest.fixture
def ledger(tmp_path: Path) -> vc.Ledger:
    ledger = vc.Ledger(f"sqlite:///{tmp_path / 'budget.db'}")
    ledger.create("people", 1)
    return ledger


def test_a_release_is_charged_and_says_where(ledger: vc.Ledger) -> None:
    release = vc.release(CUBE, epsilon="3/10", ledger=ledger, dataset="people", analyst="ana")
    (charge,) = ledger.history("people")
    assert str(charge.epsilon) == "3/10"
    assert charge.analyst == "ana"
    assert release.privacy.charged_to is not None
    assert "people" in release.privacy.words


def test_over_budget_is_refused_whole(ledger: vc.Ledger) -> None:
    vc.release(CUBE, epsilon=0.7, ledger=ledger, dataset="people")
    with pytest.raises(BudgetExceededError, match=r"0\.3"):
        vc.release(CUBE, epsilon=0.4, ledger=ledger, dataset="people")
    assert len(ledger.history("people")) == 1
    vc.release(CUBE, epsilon=0.3, ledger=ledger, dataset="people")
    assert ledger.budget("people").left == 0


def test_what_fails_before_the_noise_costs_nothing(ledger: vc.Ledger, tmp_path: Path) -> None:
    account = {"ledger": ledger, "dataset": "people"}
    (tmp_path / "people.csv").write_text("age\n99\n")
    with pytest.raises(TableError):
        vc.release(str(tmp_path / "people.csv"), schema=SCHEMA, **account)
    with pytest.raises(TableError, match="schema"):
        vc.release(str(tmp_path / "people.csv"), **account)
    with pytest.raises(TableError, match="brings its own"):
        vc.release(CUBE, schema=SCHEMA, **account)
    with pytest.raises(vc.VeilcubeError):
        vc.release(CUBE, epsilon=float("nan"), **account)
    with pytest.raises(PlanError, match="another schema"):
        vc.release(CUBE, plan=vc.plan(vc.Schema([vc.Ordinal("age", 1, 3)])), **account)
    with pytest.raises(PlanError, match="protects one person"):
        vc.release(CUBE, plan=vc.plan(SCHEMA, person="id", max_rows=2), **account)
    with pytest.raises(LedgerError):
        vc.release(CUBE, ledger=ledger, dataset="nobody")
    assert ledger.history("people") == []


def test_ledger_and_dataset_go_together(ledger: vc.Ledger) -> None:
    with pytest.raises(LedgerError, match="go together"):
        vc.release(CUBE, ledger=ledger)
    with pytest.raises(LedgerError, match="go together"):
        vc.release(CUBE, dataset="people")


def test_a_table_is_counted_and_released_in_one_call(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("age\n" + "7\n" * 500)
    release = vc.release(str(tmp_path / "people.csv"), epsilon=5, schema=SCHEMA)
    assert release.count(age=7).value == pytest.approx(500, abs=20)


def test_a_person_unit_makes_more_noise_and_says_so(tmp_path: Path) -> None:
    (tmp_path / "visits.csv").write_text("id,age\n1,7\n1,8\n1,9\n2,7\n")
    release = vc.release(
        str(tmp_path / "visits.csv"), epsilon=1, strategy="identity", schema=SCHEMA, person="id", max_rows=2
    )
    assert release.plan["scale"] == "2"
    assert "one person ('id', at most 2 rows of each)" in release.privacy.words
    assert "at most 2 rows per person" in release.counted


def test_a_plan_and_another_price_beside_it_are_refused(ledger: vc.Ledger) -> None:
    plan = vc.plan(SCHEMA, epsilon="1/2", strategy="identity")
    with pytest.raises(PlanError, match="another epsilon"):
        vc.release(CUBE, epsilon=0.01, plan=plan, ledger=ledger, dataset="people")
    assert ledger.history("people") == []
    assert vc.release(CUBE, epsilon=0.5, plan=plan).privacy.epsilon == plan.epsilon
    assert vc.release(CUBE, strategy="auto", neighbours="add-remove", plan=plan).plan["strategy"] == {
        "name": "identity"
    }
    with pytest.raises(PlanError, match="another epsilon"):
        vc.release(CUBE, neighbours="replace", plan=plan)


def test_a_release_that_could_not_be_saved_is_refused_before_it_is_charged(ledger: vc.Ledger) -> None:
    with pytest.raises(vc.VeilcubeError):
        vc.release(vc.Cube(vc.Schema([vc.Nominal("name", ["\ud800x", "b"])]), [1, 2]), ledger=ledger, dataset="people")
    assert ledger.history("people") == []


def test_a_schema_may_be_named_by_its_file(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("age\n7\n")
    SCHEMA.to_toml(tmp_path / "people.toml")
    assert vc.count(str(tmp_path / "people.csv"), str(tmp_path / "people.toml")).schema == SCHEMA
    assert vc.plan(tmp_path / "people.toml", epsilon=1).schema == SCHEMA
    with pytest.raises(vc.VeilcubeError, match="schema"):
        vc.plan(42)


def test_two_releases_of_one_cube_differ() -> None:
    schema = vc.Schema([vc.Ordinal("x", 1, 1000)])
    cube = vc.Cube(schema, np.zeros(1000, dtype=np.int64))
    first, second = (vc.release(cube, epsilon=0.1).to_xarray().values for _ in range(2))
    assert (first != second).mean() > 0.9


def test_a_cube_shows_none_of_its_counts() -> None:
    counts = np.full(20, 987_654_321)
    assert "987" not in repr(vc.Cube(SCHEMA, counts)) + str(vc.Cube(SCHEMA, counts))


@pytest.mark.parametrize("counts", [np.zeros(19, int), np.full(20, -1), np.zeros(20), np.full(20, 2**60)])
def test_counts_that_are_no_counts_are_refused(counts: np.ndarray) -> None:
    with pytest.raises(TableError) as refusal:
        vc.Cube(SCHEMA, counts)
    assert str(2**60) not in str(refusal.value)


def test_a_cube_too_large_for_memory_is_refused_before_it_is_made(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,b,c\n1,1,1\n")
    schema = vc.Schema([vc.Ordinal(name, 1, 100_000) for name in "abc"])
    with pytest.raises(CapacityError, match=r"GiB.*coarser bins"):
        vc.count(str(tmp_path / "t.csv"), schema)


def test_a_table_of_a_database_is_released_as_it_is_counted(tmp_path: Path) -> None:
    path = tmp_path / "visits.duckdb"
    with duckdb.connect(str(path)) as database:
        database.execute("CREATE TABLE visits AS SELECT 30 + i % 3 AS age FROM range(90) t(i)")
    schema = vc.Schema([vc.Ordinal("age", 30, 32)])
    made = vc.release(f"duckdb:///{path}", epsilon=10**6, schema=schema, table="visits", strategy="identity")
    assert made.count(age=31).value == pytest.approx(30)
    with pytest.raises(vc.VeilcubeError, match="table="):
        vc.release(f"duckdb:///{path}", epsilon=1, schema=schema)
    with pytest.raises(vc.VeilcubeError, match="brings its own"):
        vc.release(vc.Cube(schema, [1, 2, 3]), epsilon=1, table="visits")
